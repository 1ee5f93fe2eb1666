"""kill -9 under load, again and again: what was acknowledged is there, in order, and once.

Kill -9 keeps the page cache, so this tests restart and recovery, not fsync; for that, tests/chaos cuts the
power.
"""

import pytest
from ledger import Writer, expect_complete

ROUNDS = 4
LONG_ROUNDS = 60
pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_what_was_acknowledged_survives_kill_9(kaas, request, idempotent):
    rounds = LONG_ROUNDS if request.config.getoption("--long") else ROUNDS
    with Writer(kaas.bootstrap, "ledger", idempotent) as writer:
        for _ in range(rounds):
            writer.await_acknowledgement()
            writer.await_acknowledgement()
            kaas.kill()
            kaas.start()
        writer.await_acknowledgement()
    expect_complete(kaas.bootstrap, "ledger", writer, idempotent)
