"""A transactional producer that speaks the protocol itself: each step when a test wants it, and the same steps
from another process."""

import time
import uuid

from asking import PASSING, until
from kafka_wire.batch import Batch
from kafka_wire.connection import Connection

NONE = 0
READ_COMMITTED = 1


def call(broker, api, version, body):
    with Connection(broker.bootstrap) as connection:
        return connection.call(api, version, body)


def create(broker, topic, partitions=1):
    answer = call(broker, "CreateTopics", 7, {"timeout_ms": 30000, "topics": [
        {"name": topic, "num_partitions": partitions, "replication_factor": 1}]})
    assert answer["topics"][0]["error_code"] == NONE, answer


def end_offset(broker, topic, partition=0, isolation=READ_COMMITTED):
    answer = call(broker, "ListOffsets", 7, {"replica_id": -1, "isolation_level": isolation, "topics": [
        {"name": topic, "partitions": [{"partition_index": partition, "timestamp": -1}]}]})
    return answer["topics"][0]["partitions"][0]["offset"]


def await_end(broker, topic, offset, partition=0, isolation=READ_COMMITTED):
    until(lambda: end_offset(broker, topic, partition, isolation), f"the end of {topic}-{partition} to be {offset}",
          lambda found: found == offset)


def describe(broker, transactional_id):
    answer = call(broker, "DescribeTransactions", 0, {"transactional_ids": [transactional_id]})
    return answer["transaction_states"][0]


def await_state(broker, transactional_id, state):
    return until(lambda: describe(broker, transactional_id), f"{transactional_id} to be {state}",
                 lambda a: a["transaction_state"] == state)


class Producer:
    """One incarnation. Its epoch grows with each transaction (transaction version 2) unless `fixed`."""

    def __init__(self, broker, transactional_id=None, who=None, fixed=False, timeout_ms=60000):
        self.broker = broker
        self.id = transactional_id or f"txn-{uuid.uuid4().hex[:8]}"
        self.fixed = fixed
        self.timeout_ms = timeout_ms
        self.pid, self.epoch = who or self.init()
        self.sequences = {}

    def ask(self, api, version, body):
        return call(self.broker, api, version, body)

    def init(self, pid=-1, epoch=-1):
        until(lambda: self.ask("FindCoordinator", 4, {"key_type": 1, "coordinator_keys": [self.id]}),
              "a coordinator", lambda a: a["coordinators"][0]["error_code"] == NONE)
        answer = until(lambda: self.ask("InitProducerId", 5, {
            "transactional_id": self.id, "transaction_timeout_ms": self.timeout_ms, "producer_id": pid,
            "producer_epoch": epoch}), "a producer id", lambda a: a["error_code"] not in PASSING)
        assert answer["error_code"] == NONE, answer
        return answer["producer_id"], answer["producer_epoch"]

    def add(self, topic, partition):
        """Of a producer whose epoch stays; the error code."""
        answer = until(lambda: self.ask("AddPartitionsToTxn", 3, {
            "v3_and_below_transactional_id": self.id, "v3_and_below_producer_id": self.pid,
            "v3_and_below_producer_epoch": self.epoch,
            "v3_and_below_topics": [{"name": topic, "partitions": [partition]}]}),
            "a partition of the transaction", lambda a: self.added(a) not in PASSING)
        return self.added(answer)

    @staticmethod
    def added(answer):
        return answer["results_by_topic_v3_and_below"][0]["results_by_partition"][0]["partition_error_code"]

    def try_send(self, topic, values, partition=0):
        """The error code of a batch; one that is refused may be sent again."""
        sequence = self.sequences.get((topic, partition), 0)
        records = Batch(values=values, attributes=16, producer_id=self.pid, producer_epoch=self.epoch,
                        base_sequence=sequence, base_timestamp=int(time.time() * 1000)).build()
        answer = self.ask("Produce", 11 if self.fixed else 12, {
            "transactional_id": self.id, "acks": -1, "timeout_ms": 10000, "topic_data": [
                {"name": topic, "partition_data": [{"index": partition, "records": records}]}]})
        error = answer["responses"][0]["partition_responses"][0]["error_code"]
        if error == NONE:
            self.sequences[topic, partition] = sequence + len(values)
        return error

    def send(self, topic, values, partition=0):
        if self.fixed:
            assert self.add(topic, partition) == NONE
        retriable = PASSING | {19}
        error = until(lambda: self.try_send(topic, values, partition), "a batch", lambda e: e not in retriable)
        assert error == NONE

    def try_end(self, commit=True):
        return self.ask("EndTxn", 4 if self.fixed else 5, {
            "transactional_id": self.id, "producer_id": self.pid, "producer_epoch": self.epoch,
            "committed": commit})

    def end(self, commit=True):
        answer = until(lambda: self.try_end(commit), "the end", lambda a: a["error_code"] not in PASSING)
        assert answer["error_code"] == NONE, answer
        if not self.fixed:
            self.pid, self.epoch = answer["producer_id"], answer["producer_epoch"]
            self.sequences = {}
