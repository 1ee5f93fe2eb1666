"""One broker with more partitions than it may have descriptors."""

import contextlib
import os
import resource
import subprocess

import broker as kaas_broker
import pytest
from kafka_wire.batch import Batch, headers
from kafka_wire.connection import Connection

PARTITIONS = 500
DESCRIPTORS = 256
NOT_LEADER_OR_FOLLOWER = 6


@pytest.fixture
def few_descriptors():
    """Processes started meanwhile have so few, soft and hard."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    original = subprocess.Popen

    def limited(*args, **more):
        return original(*args, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)), **more)
    with contextlib.ExitStack() as cleanup:
        patch = cleanup.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(kaas_broker.subprocess, "Popen", limited)
        yield
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)


def produce(connection, value, partitions=range(PARTITIONS)):
    """A batch to each; gives those that refused it by error code."""
    records = Batch(values=[value]).build()
    answer = connection.call("Produce", 9, {
        "transactional_id": None, "acks": -1, "timeout_ms": 60000, "topic_data": [
            {"name": "many", "partition_data": [{"index": p, "records": records} for p in partitions]}]})
    codes = {p["index"]: p["error_code"] for p in answer["responses"][0]["partition_responses"]}
    return {index: code for index, code in codes.items() if code != 0}


def fetch(connection, partition, offset=0):
    answer = connection.call("Fetch", 11, {
        "replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "isolation_level": 0,
        "session_id": 0, "session_epoch": -1, "forgotten_topics_data": [], "rack_id": "", "topics": [
            {"topic": "many", "partitions": [
                {"partition": partition, "current_leader_epoch": -1, "fetch_offset": offset, "log_start_offset": -1,
                 "partition_max_bytes": 1 << 20}]}]})
    data = answer["responses"][0]["partitions"][0]
    assert data["error_code"] == 0, data
    return [header.base_offset for header in headers(data["records"] or b"")]


def test_more_partitions_than_descriptors(few_descriptors, kaas_factory):
    kaas = kaas_factory()
    with Connection(kaas.bootstrap, timeout=60) as connection:
        answer = connection.call("CreateTopics", 7, {"timeout_ms": 60000, "topics": [
            {"name": "many", "num_partitions": PARTITIONS, "replication_factor": 1}]})
        assert answer["topics"][0]["error_code"] == 0
        for round_number in range(2):
            assert produce(connection, b"%d" % round_number) == {}
        assert all(fetch(connection, p) == [0, 1] for p in range(PARTITIONS))
        assert len(os.listdir(f"/proc/{kaas.pid}/fd")) < DESCRIPTORS * 3 // 4
    kaas.stop()
    kaas.start()
    with Connection(kaas.bootstrap, timeout=60) as connection:
        left = range(PARTITIONS)
        while left:  # those that are not open yet say so
            left = produce(connection, b"again", left)
            assert set(left.values()) <= {NOT_LEADER_OR_FOLLOWER}
        assert all(fetch(connection, p) == [0, 1] for p in range(PARTITIONS)), "a read stays within a segment"
        assert all(fetch(connection, p, 2) == [2] for p in range(PARTITIONS))
