"""kill -9 under a consumer group: its members go on without a rebalance, and no committed offset is lost.

Kill -9 keeps the page cache, so this tests the takeover of slots, not fsync; for that, tests/chaos cuts the power.
"""

import pytest
from group_members import Committers, Member, prepare

ROUNDS = 4
LONG_ROUNDS = 40
pytestmark = pytest.mark.timeout(600)


def rounds_of(request) -> int:
    return LONG_ROUNDS if request.config.getoption("--long") else ROUNDS


@pytest.mark.parametrize("instance", [None, "static-1"], ids=["dynamic", "static"])
def test_a_member_goes_on_after_kill_9_without_a_rebalance(kaas_factory, request, instance):
    kaas = kaas_factory({"group.initial.rebalance.delay.ms": "0"})
    prepare(kaas, "g")
    member = Member(kaas, "g", instance)
    member.join()
    assert member.sync((member.identity["member_id"], b"all of it")) == b"all of it"
    for offset in range(rounds_of(request)):
        member.commit(offset)
        kaas.kill()
        kaas.start()
        assert member.heartbeat() == 0
        assert member.sync() == b"all of it"
        assert member.committed() == offset


def test_no_acknowledged_commit_is_lost_by_kill_9(kaas_factory, request):
    kaas = kaas_factory({"group.initial.rebalance.delay.ms": "0"})
    with Committers(kaas, 8) as committers:
        for _ in range(rounds_of(request)):
            committers.await_commits()
            acknowledged = dict(committers.acknowledged)
            kaas.kill()
            kaas.start()
            committers.expect_all(acknowledged)
    committers.expect_all(committers.acknowledged)
