"""Transactions whose coordinator, leaders and groups are different brokers, some of which die."""

import itertools
import threading
import time

import confluent_kafka
import pytest
from asking import until
from confluent_kafka import KafkaException, TopicPartition

pytestmark = pytest.mark.timeout(300)
PARTITIONS = 6
SECONDS = 120
# With the other strategy librdkafka 2.16 forgets the brokers that it waits for, and waits for ever.
LASTING = {"metadata.recovery.strategy": "none", "reconnect.backoff.max.ms": 200}
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


def coordinator_of(cluster, transactional_id):
    def ask():
        answer = cluster.call("FindCoordinator", 4, {"key_type": 1, "coordinator_keys": [transactional_id]})
        return answer["coordinators"][0]
    return until(ask, f"a coordinator of {transactional_id}", lambda c: c["error_code"] == 0)["node_id"]


def names_at(ask, prefix, broker, count):
    """Names for which `ask` tells that broker."""
    names = (f"{prefix}-{number}" for number in itertools.count())
    return list(itertools.islice((name for name in names if ask(name) == broker), count))


def ids_at(cluster, prefix, broker, count=1):
    return names_at(lambda name: coordinator_of(cluster, name), prefix, broker, count)


def ids_on_all(cluster, prefix):
    """A transactional id with a coordinator in each broker."""
    return [name for broker in cluster.brokers for name in ids_at(cluster, prefix, broker)]


def create_spread(cluster, topic):
    cluster.create_well(topic, PARTITIONS)
    cluster.await_leaders(topic, lambda led: set(led) == set(cluster.brokers))


def persist(call, *arguments, seconds=SECONDS):
    """What fails in a way that passes is done again, as clients do."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return call(*arguments)
        except KafkaException as failed:
            if not failed.args[0].retriable() or time.monotonic() > deadline:
                raise


def producer_of(cluster, transactional_id):
    producer = confluent_kafka.Producer({
        "bootstrap.servers": cluster.bootstrap, "transactional.id": transactional_id, "linger.ms": 1,
        "transaction.timeout.ms": 60000, **LASTING})
    persist(producer.init_transactions, 20)
    return producer


def ends(cluster, topic, isolation):
    """End offset of each partition, to readers of that isolation."""
    found = {}
    for leader, partitions in cluster.led(topic).items():
        answer = cluster.call("ListOffsets", 7, {"replica_id": -1, "isolation_level": isolation, "topics": [{
            "name": topic, "partitions": [{"partition_index": p, "timestamp": -1} for p in partitions]}]}, leader)
        for one in answer["topics"][0]["partitions"]:
            assert one["error_code"] == 0, one
            found[one["partition_index"]] = one["offset"]
    return found


def committed_values(cluster, topic):
    """All that a reader of committed data gets, once nothing is open any more."""
    until(lambda: ends(cluster, topic, READ_COMMITTED) == ends(cluster, topic, READ_UNCOMMITTED),
          "no transaction is open")
    wanted = {p for p, end in ends(cluster, topic, READ_COMMITTED).items() if end > 0}
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": cluster.bootstrap, "group.id": f"reader of {topic}", "enable.auto.commit": False,
        "isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.partition.eof": True,
        **LASTING})
    consumer.assign([TopicPartition(topic, p, 0) for p in wanted])
    values, deadline = [], time.monotonic() + SECONDS
    try:
        while wanted:
            assert time.monotonic() < deadline, f"no end of {wanted} within {SECONDS} s"
            for message in consumer.consume(1000, 1):
                if message.error() is None:
                    values.append(message.value())
                elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    wanted.discard(message.partition())
    finally:
        consumer.close()
    return values


def test_transactions_end_in_partitions_of_every_broker(cluster_factory):
    cluster = cluster_factory(3)
    create_spread(cluster, "spread")
    wanted = []
    for transactional_id in ids_on_all(cluster, "spread"):
        producer = producer_of(cluster, transactional_id)
        for number in range(10):
            producer.begin_transaction()
            values = [f"{transactional_id}/{number}/{p}".encode() for p in range(PARTITIONS)]
            for partition, value in enumerate(values):
                producer.produce("spread", value, partition=partition)
            if number % 3 == 2:
                assert producer.flush(60) == 0
                producer.abort_transaction(60)
            else:
                producer.commit_transaction(60)
                wanted += values
    assert sorted(committed_values(cluster, "spread")) == sorted(wanted)


def test_a_second_producer_fences_the_first_at_leaders_of_every_broker(cluster_factory):
    cluster = cluster_factory(3)
    create_spread(cluster, "fenced")
    for transactional_id in ids_on_all(cluster, "fenced"):
        first = producer_of(cluster, transactional_id)
        first.begin_transaction()
        for partition in range(PARTITIONS):
            first.produce("fenced", b"of the first", partition=partition)
        assert first.flush(60) == 0
        producer_of(cluster, transactional_id)
        with pytest.raises(KafkaException) as refused:
            first.commit_transaction(60)
        assert refused.value.args[0].fatal()
    assert committed_values(cluster, "fenced") == []


class Transformer(threading.Thread):
    """Takes one partition of `source` to `sink`, in transactions of a few records; some are aborted."""

    def __init__(self, cluster, partition, transactional_id, group, end):
        super().__init__(daemon=True)
        self.cluster, self.transactional_id, self.group, self.end = cluster, transactional_id, group, end
        self.place = TopicPartition("source", partition)
        self.transactions = self.sessions = 0
        self.errors, self.failure = [], None
        self.deadline = time.monotonic() + SECONDS

    def run(self):
        try:
            while not self.session():
                assert time.monotonic() < self.deadline, f"not done within {SECONDS} s: {self.errors}"
        except BaseException as failure:
            self.failure = failure

    def session(self):
        """The life of one producer; True when all is done."""
        self.sessions += 1
        consumer = confluent_kafka.Consumer({
            "bootstrap.servers": self.cluster.bootstrap, "group.id": self.group,
            "enable.auto.commit": False, "isolation.level": "read_committed", "fetch.wait.max.ms": 50,
            "auto.offset.reset": "earliest", **LASTING})
        try:
            producer = producer_of(self.cluster, self.transactional_id)
            position = self.begin_at(consumer)
            while position < self.end:
                assert time.monotonic() < self.deadline, f"not done within {SECONDS} s: {self.errors}"
                try:
                    position = self.transaction(producer, consumer, position)
                except KafkaException as failed:
                    error = failed.args[0]
                    self.errors.append(str(error))
                    if error.fatal():
                        return False
                    persist(producer.abort_transaction, 20)
                    position = self.begin_at(consumer)
            return True
        except KafkaException as failed:
            self.errors.append(str(failed))
            return False
        finally:
            consumer.close()

    def begin_at(self, consumer):
        stored, = persist(consumer.committed, [self.place], 20)
        position = max(stored.offset, 0)
        consumer.assign([TopicPartition(self.place.topic, self.place.partition, position)])
        return position

    def transaction(self, producer, consumer, position):
        messages = [m for m in consumer.consume(5, 0.5) if m.error() is None]
        if not messages:
            return position
        assert messages[0].offset() >= position
        after = messages[-1].offset() + 1
        aborts = self.transactions % 8 == 7
        producer.begin_transaction()
        for message in messages:
            value = b"aborted" if aborts else message.value()
            producer.produce("sink", value, partition=(message.offset() * 7 + self.place.partition) % PARTITIONS)
        self.transactions += 1
        if aborts:
            producer.flush(20)
            persist(producer.abort_transaction, 20)
            return self.begin_at(consumer)
        offsets = [TopicPartition(self.place.topic, self.place.partition, after)]
        persist(producer.send_offsets_to_transaction, offsets, consumer.consumer_group_metadata(), 20)
        persist(producer.commit_transaction, 20)
        return after


def fill(cluster, topic, each):
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    values = []
    for partition in range(3):
        for number in range(each):
            values.append(f"{partition}/{number}".encode())
            producer.produce(topic, values[-1], partition=partition)
    assert producer.flush(60) == 0
    return values


def test_each_record_is_taken_over_once_while_the_coordinator_and_a_leader_die(shared_cluster):
    cluster = shared_cluster(3)
    each = 600
    create_spread(cluster, "source")
    create_spread(cluster, "sink")
    wanted = fill(cluster, "source", each)
    # The coordinator of the groups lives: librdkafka 2.16 waits for ever for one that was dead when it was named.
    coordinator, leader, groups = cluster.brokers
    ids = ids_at(cluster, "mover", coordinator, 3)
    readers = names_at(cluster.coordinator, "readers", groups, 3)
    movers = [Transformer(cluster, p, ids[p], readers[p], each) for p in range(3)]
    for mover in movers:
        mover.start()

    def await_progress(count):
        begun = sum(m.transactions for m in movers)
        until(lambda: sum(m.transactions for m in movers) >= begun + count or not any(m.is_alive() for m in movers),
              "transactions go on", seconds=SECONDS)

    try:
        await_progress(30)
        cluster.broker(coordinator).kill()
        await_progress(60)
        cluster.broker(coordinator).start()
        assert leader in cluster.led("sink")
        cluster.broker(leader).kill()
        await_progress(60)
        cluster.broker(leader).start()
    finally:
        for mover in movers:
            mover.join(SECONDS)
    for mover in movers:
        assert mover.failure is None, f"{mover.failure!r} after {mover.errors}"
        assert not mover.is_alive(), f"stands still after {mover.errors}"
    found = committed_values(cluster, "sink")
    assert b"aborted" not in found
    assert sorted(found) == sorted(wanted)
