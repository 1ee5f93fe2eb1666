"""kafka-transactions: list, describe, describe-producers, find-hanging, abort, forceTerminateTransaction."""

import re
import time

import confluent_kafka
import pytest
from kafka_wire import batch
from kafka_wire.connection import Connection

pytestmark = pytest.mark.timeout(180)
# A transaction that its coordinator knows nothing of, as older clients could leave, takes a leader that
# does not ask.
HANGS = {"transaction.partition.verification.enable": "false"}


@pytest.fixture
def transactions(kaas_factory, tools):
    """kafka-transactions against a broker of the test's own; `transactions.broker`."""
    broker = kaas_factory(HANGS)

    def run(*arguments, code=0):
        got, printed = tools.run("kafka-transactions", "--bootstrap-server", broker.bootstrap, *arguments)
        assert got == code, printed
        return printed
    run.broker = broker
    return run


def rows(shown):
    """The lines of a table, whose columns end with tabs, as dictionaries."""
    lines = [[cell.strip() for cell in line.split("\t")] for line in shown.splitlines() if "\t" in line]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def producer(broker, name, **more):
    made = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name,
                                     "transaction.timeout.ms": 60000, "log_level": 0, **more})
    made.init_transactions(30)
    return made


def open_transaction(broker, name, topic):
    made = producer(broker, name)
    made.begin_transaction()
    made.produce(topic, value="open", partition=0)
    assert made.flush(30) == 0
    return made


def create(broker, name):
    with Connection(broker.bootstrap) as connection:
        answer = connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [
            {"name": name, "num_partitions": 1, "replication_factor": 1}]})
        assert answer["topics"][0]["error_code"] == 0, answer
        return answer["topics"][0]["topic_id"]


def await_state(transactions, name, state):
    """Nor is a transaction complete when that is answered."""
    deadline = time.monotonic() + 20
    while True:
        [found] = rows(transactions("describe", "--transactional-id", name))
        if found["TransactionState"] == state:
            return
        assert time.monotonic() < deadline, found


def await_end_offsets(broker, topic, uncommitted, committed):
    """The markers of a transaction come after the answer to who ended it."""
    deadline = time.monotonic() + 20
    while (found := (end_offset(broker, topic, 0), end_offset(broker, topic, 1))) != (uncommitted, committed):
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def end_offset(broker, topic, isolation):
    with Connection(broker.bootstrap) as connection:
        answer = connection.call("ListOffsets", 7, {"replica_id": -1, "isolation_level": isolation, "topics": [
            {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]})
        return answer["topics"][0]["partitions"][0]["offset"]


def test_transactions_are_listed_and_described(transactions):
    broker = transactions.broker
    create(broker, "t")
    open_transaction(broker, "open-1", "t").abort_transaction(30)
    live = open_transaction(broker, "open-2", "t")
    await_state(transactions, "open-1", "CompleteAbort")
    listed = {row["TransactionalId"]: row for row in rows(transactions("list"))}
    assert listed["open-2"]["TransactionState"] == "Ongoing" and listed["open-2"]["Coordinator"] == "1"
    assert rows(transactions("list", "--duration-filter", "600000")) == []
    assert [row["TransactionalId"] for row in rows(transactions(
        "list", "--transactional-id-pattern", ".*-2"))] == ["open-2"]

    [described] = rows(transactions("describe", "--transactional-id", "open-2"))
    assert described["TransactionState"] == "Ongoing" and described["TransactionTimeoutMs"] == "60000"
    assert described["TopicPartitions"] == "t-0" and int(described["TransactionDurationMs"]) >= 0
    [at] = [row for row in rows(transactions("describe-producers", "--topic", "t", "--partition", "0"))
            if row["ProducerId"] == described["ProducerId"]]
    assert at["ProducerEpoch"] == described["ProducerEpoch"]
    # A record and its abort marker stand before.
    assert at["CurrentTransactionStartOffset"] == "2" and at["LastSequence"] == "0"
    live.commit_transaction(30)
    await_state(transactions, "open-2", "CompleteCommit")
    [described] = rows(transactions("describe", "--transactional-id", "open-2"))
    assert described["TopicPartitions"] == ""
    assert "the ID could not be found" in transactions("describe", "--transactional-id", "none", code=1)


def test_a_hanging_transaction_is_found_and_aborted(transactions):
    broker = transactions.broker
    topic_id = create(broker, "t")
    known = open_transaction(broker, "known", "t")
    # A record of a transaction that no coordinator has begun; a day old, so that it may be taken for hanging.
    hanging = batch.Batch([b"hanging"], attributes=0x10, producer_id=77777, producer_epoch=0, base_sequence=0)
    with Connection(broker.bootstrap) as connection:
        answer = connection.call("Produce", 11, {
            "transactional_id": "unknown", "acks": -1, "timeout_ms": 30000, "topic_data": [{
                "name": "t", "partition_data": [{"index": 0, "records": hanging.build()}]}]})
    assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, (answer, topic_id)
    known.commit_transaction(30)
    await_end_offsets(broker, "t", 3, 1)  # committed readers are held up

    [found] = rows(transactions("find-hanging", "--broker-id", "1"))
    assert (found["Topic"], found["Partition"], found["ProducerId"], found["StartOffset"]) == ("t", "0", "77777", "1")
    transactions("abort", "--topic", "t", "--partition", "0", "--start-offset", "1")
    await_end_offsets(broker, "t", 4, 4)
    assert rows(transactions("find-hanging", "--broker-id", "1")) == []
    assert "Could not find" in transactions("abort", "--topic", "t", "--partition", "0", "--start-offset", "1",
                                            code=1)


def test_a_transaction_is_terminated_by_force(transactions):
    broker = transactions.broker
    create(broker, "t")
    fenced = open_transaction(broker, "stuck", "t")
    transactions("forceTerminateTransaction", "--transactionalId", "stuck")
    assert re.search("Complete|Empty", transactions("list"))
    with pytest.raises(confluent_kafka.KafkaException, match="[Ff]enced|epoch"):
        fenced.commit_transaction(30)
    await_end_offsets(broker, "t", 2, 2)
