"""Coordinators' slots of the real broker on a file system that does harm (chaosfs.cc), under load.

Every test ends with a power cut, which loses all that was not synced; then every commit that was acknowledged must
be there. No test restarts a broker to heal it.
"""

import subprocess

import pytest
from asking import health, until
from broker import binary
from group_members import Committers
from steps import power_cut, refusals, rounds

pytestmark = pytest.mark.timeout(600)
SLOTS = "*/slot-*.jsonl"


def start(chaos, kaas_factory, journal):
    return kaas_factory({"log.dirs": str(chaos.mountpoint / "data"), "kaas.fsync.max.latency.ms": "1000",
                         "group.initial.rebalance.delay.ms": "0", "kaas.journal": journal})


@pytest.fixture(params=["on", "off"], ids=["journal", "plain"])
def broker(chaos, kaas_factory, request):
    return start(chaos, kaas_factory, request.param)


@pytest.fixture
def plain_broker(chaos, kaas_factory):
    """Without a journal a commit syncs the file of its slot; with one, that follows up to 5 s later."""
    return start(chaos, kaas_factory, "off")


def expect_nothing_lost(chaos, broker, committers):
    """After the committers have stopped."""
    power_cut(chaos, broker)
    committers.expect_all(committers.acknowledged)
    check = subprocess.run([binary(), "log", "check", chaos.mountpoint / "data"], capture_output=True,
                           text=True, check=False)
    assert check.returncode == 0, check.stdout + check.stderr


def test_a_power_cut_loses_no_acknowledged_commit(chaos, broker, request):
    with Committers(broker, 8) as committers:
        for _ in range(rounds(request, 4, 60)):
            committers.await_commits()
            acknowledged = dict(committers.acknowledged)
            power_cut(chaos, broker)
            committers.expect_all(acknowledged)
    expect_nothing_lost(chaos, broker, committers)


# Until it is noticed: the error of a write that the kernel had split shows as a short write, and the rest succeeds.
@pytest.mark.parametrize("fault", [
    f"fail fsync EIO -1 {SLOTS}",
    f"fail write EIO -1 {SLOTS}",
    f"fail write ENOSPC -1 {SLOTS}",
], ids=["fsync", "write", "space"])
def test_failed_calls_cost_slots_their_epochs_and_no_commit(chaos, plain_broker, request, fault):
    with Committers(plain_broker, 8) as committers:
        for _ in range(rounds(request, 2, 8)):
            committers.await_commits()
            said = plain_broker.log().count("has failed")
            chaos.tell(fault)
            until(lambda said=said: plain_broker.log().count("has failed") > said, "a slot's log has failed")
            chaos.tell("clear")
            committers.await_commits()
            until(lambda: health(plain_broker)["slots_offline"] == 0, "the slot is back")
    expect_nothing_lost(chaos, plain_broker, committers)


def test_a_volume_that_takes_nothing_for_a_while_takes_no_commit_and_heals(chaos, broker):
    with Committers(broker, 8) as committers:
        committers.await_commits()
        for operation in ("write", "create", "mkdir"):
            chaos.tell(f"fail {operation} ENOSPC -1 *")
        until(lambda: health(broker)["slots_offline"] > 0, "the broker says so")
        known, tried = dict(committers.acknowledged), refusals(chaos)
        until(lambda: refusals(chaos) >= tried + 2, "what retries, does so more than once")
        assert committers.acknowledged == known, "acknowledged on a full volume"
        chaos.tell("clear")
        committers.await_commits()
        until(lambda: health(broker)["status"] == "ok", "the broker is well again")
    expect_nothing_lost(chaos, broker, committers)


def test_a_hang_is_told_and_heals(chaos, plain_broker, request):
    with Committers(plain_broker, 8) as committers:
        for _ in range(rounds(request, 1, 10)):
            committers.await_commits()
            chaos.tell(f"hang fsync {SLOTS}")
            until(lambda: health(plain_broker)["status"] == "stalled", "the stall shows")
            chaos.tell("clear")
            committers.await_commits()
            until(lambda: health(plain_broker)["status"] == "ok", "the broker is well again")
    expect_nothing_lost(chaos, plain_broker, committers)
