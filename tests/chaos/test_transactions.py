"""The power fails at each step of a transaction's end: decision, markers, completion. What was decided is done by
the broker itself once the power is back; what was not, its producer may still decide.

Directory `a` has the coordinators' slots, `b` and `c` a partition each, so that a test can hold up one step.
"""

import contextlib
import pathlib
import sys
import threading

import pytest
from asking import health, until
from kafka_wire.connection import Closed, Connection
from steps import power_cut

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "transactions"))
from wire import Producer, await_end, await_state, call, create, describe, end_offset  # noqa: E402

pytestmark = pytest.mark.timeout(300)
TOPIC = "ledger"
SLOTS = "*/a/__cluster/txns/*"
VALUES = [b"one", b"two", b"three"]


def start(chaos, kaas_factory, **settings):
    """Without a journal, each file has its own sync, and can be held up by name."""
    directories = {name: str(chaos.mountpoint / name) for name in "abc"}
    broker = kaas_factory({"log.dirs": ",".join(directories.values()), "kaas.journal": "off",
                           "cordoned.log.dirs": directories["a"], **settings})
    create(broker, TOPIC, 2)
    return broker


@pytest.fixture
def broker(chaos, kaas_factory):
    return start(chaos, kaas_factory)


@pytest.fixture
def producer(broker):
    """With a transaction open in both partitions, which are in a directory each."""
    return begin_transaction(broker)


def begin_transaction(broker):
    producer = Producer(broker)
    for partition in (0, 1):
        producer.send(TOPIC, VALUES, partition)
    return producer


def homes(chaos):
    """By directory, the glob of the partition's log that is there."""
    found = {path.relative_to(chaos.mountpoint).parts[0]: path.name
             for path in chaos.mountpoint.glob(f"[bc]/{TOPIC}.*/?")}
    assert set(found) == {"b", "c"}, found
    return {name: f"*/{name}/{TOPIC}.*.log" for name in found}


def end_unanswered(producer, commit):
    """Asks for the end; the broker dies before it answers."""
    def ask():
        with contextlib.suppress(OSError, Closed):
            producer.try_end(commit)
    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def expect_ended(broker, producer, commit):
    """Everything is decided in both partitions, once in effect, and the id goes on."""
    await_state(broker, producer.id, "CompleteCommit" if commit else "CompleteAbort")
    for partition in (0, 1):
        newest = end_offset(broker, TOPIC, partition, isolation=0)
        assert newest > len(VALUES), "a marker is missing"
        await_end(broker, TOPIC, newest, partition)
        answer = call(broker, "Fetch", 11, {
            "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "isolation_level": 1, "topics": [
                {"topic": TOPIC, "partitions": [{"partition": partition, "fetch_offset": 0,
                                                 "partition_max_bytes": 1 << 20}]}]})
        found = answer["responses"][0]["partitions"][0]
        assert [bool(found["aborted_transactions"])] == [not commit], found["aborted_transactions"]
    heir = Producer(broker, producer.id)
    heir.send(TOPIC, VALUES)
    heir.end()
    await_state(broker, producer.id, "CompleteCommit")
    assert end_offset(broker, TOPIC) == end_offset(broker, TOPIC, isolation=0)


both_ways = pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])


@both_ways
def test_before_the_decision_is_durable(chaos, broker, producer, commit):
    chaos.tell(f"hang fsync {SLOTS}")
    asking = end_unanswered(producer, commit)
    until(lambda: describe_unanswered(broker, producer), "the slot to hang")
    power_cut(chaos, broker, heal=True)
    asking.join()
    await_state(broker, producer.id, "Ongoing")
    assert end_offset(broker, TOPIC) == 0
    producer.end(commit)
    expect_ended(broker, producer, commit)


def describe_unanswered(broker, producer):
    """What is told of a transaction is durable; here it cannot be."""
    with Connection(broker.bootstrap, timeout=1) as connection:
        try:
            connection.call("DescribeTransactions", 0, {"transactional_ids": [producer.id]})
        except TimeoutError:
            return True
    return False


@both_ways
def test_a_stall_of_the_slot_leaves_nothing_half_way(chaos, kaas_factory, commit):
    broker = start(chaos, kaas_factory, **{"kaas.fsync.max.latency.ms": "1000"})
    producer = begin_transaction(broker)
    chaos.tell(f"hang fsync {SLOTS}")
    asking = end_unanswered(producer, commit)
    until(lambda: health(broker)["slots_offline"], "the slot to be given up")
    asking.join()
    chaos.tell("clear")
    producer.end(commit)
    expect_ended(broker, producer, commit)


@both_ways
@pytest.mark.parametrize("held", ["b", "c", "bc"])
def test_before_the_markers_are_durable(chaos, broker, producer, commit, held):
    where = homes(chaos)
    for name in held:
        chaos.tell(f"hang fsync {where[name]}")
    producer.end(commit)
    assert describe(broker, producer.id)["transaction_state"].startswith("Prepare")
    power_cut(chaos, broker, heal=True)
    expect_ended(broker, producer, commit)


@both_ways
def test_before_the_completion_is_durable(chaos, broker, producer, commit):
    for glob in homes(chaos).values():
        chaos.tell(f"delay fsync 500000 {glob}")
    producer.end(commit)
    chaos.tell(f"hang fsync {SLOTS}")
    for partition in (0, 1):
        await_end(broker, TOPIC, len(VALUES) + 1, partition)
    power_cut(chaos, broker, heal=True)
    expect_ended(broker, producer, commit)


def test_again_and_again_at_any_moment(chaos, broker, request):
    """Power cuts under transactions; then each value of a transaction that was told to be committed is there."""
    producer = Producer(broker)
    told = []
    for round_number in range(20 if request.config.getoption("--long") else 4):
        for number in range(round_number * 3 + 1):
            value = b"%d-%d" % (round_number, number)
            for partition in (0, 1):
                producer.send(TOPIC, [value], partition)
            producer.end(number % 3 != 2)
            if number % 3 != 2:
                told.append(value)
        power_cut(chaos, broker, heal=True)
        await_state(broker, producer.id, "CompleteCommit" if number % 3 != 2 else "CompleteAbort")
    for partition in (0, 1):
        newest = end_offset(broker, TOPIC, partition, isolation=0)
        await_end(broker, TOPIC, newest, partition)
        assert newest >= 2 * len(told)
