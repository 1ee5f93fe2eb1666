"""Apache's kafka-dump-log reads every file of a partition that kaas writes, and agrees with `kaas log dump`.

Of a log that was released in good order, and of one that came back from the broker journal: its process was
killed and its segment cut to what its manifest vouches for, as a machine may leave it that dies. Compacted logs:
tests/compaction.
"""

import json
import pathlib
import re
import struct
import time

import pytest
from dump_log import expect_agreement
from kafka_wire.batch import CODECS, Batch
from kafka_wire.connection import Connection

pytestmark = pytest.mark.timeout(600)
TOPIC = "dumped"
NOT_LEADER = 6
SECONDS = 60
SUFFIXES = (".log", ".index", ".timeindex", ".snapshot")


def create(bootstrap):
    with Connection(bootstrap) as connection:
        answer = connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [{
            "name": TOPIC, "num_partitions": 1, "replication_factor": 1, "configs": [
                {"name": "internal.segment.bytes", "value": "4000"},
                {"name": "index.interval.bytes", "value": "300"}, {"name": "retention.ms", "value": "-1"}]}]})
        assert answer["topics"][0]["error_code"] == 0, answer


def send(connection, records):
    answer = connection.call("Produce", 9, {
        "transactional_id": None, "acks": -1, "timeout_ms": 30000, "topic_data": [
            {"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}]})
    return answer["responses"][0]["partition_responses"][0]["error_code"]


def produce(bootstrap, rounds, first):
    """Plain and idempotent batches, packed and not."""
    with Connection(bootstrap) as connection:
        for i in range(first, first + rounds):
            batch = Batch(values=[f"value-{i}-{j}".encode() * 3 for j in range(1 + i % 4)],
                          attributes=CODECS["gzip"] if i % 3 == 0 else 0)
            if i % 4 == 0:
                batch.producer_id, batch.producer_epoch, batch.base_sequence = 1000 + i, 0, 0
            deadline = time.monotonic() + SECONDS
            while (code := send(connection, batch.build())) == NOT_LEADER:  # it recovers
                assert time.monotonic() < deadline
            assert code == 0


def partition_of(kaas) -> pathlib.Path:
    [topic] = (kaas.directory / "data").glob(f"{TOPIC}.*")
    return topic / "0"


def expect_all_agree(partition):
    """Every file of every segment; of each kind there is one with something in it. The number of .log rows."""
    rows = expect_agreement(sorted(path for path in partition.rglob("*") if path.suffix in SUFFIXES))
    assert set(rows) == set(SUFFIXES) and all(rows.values()), rows
    return rows[".log"]


def newest_segment(partition):
    """The file that is appended to, its size, and how much of it the manifest vouches for."""
    manifest = max(partition.glob("*/manifest-*.jsonl"))
    end = 0
    for line in map(json.loads, manifest.read_text().splitlines()):
        if "roll" in line:
            end = 0
        if "active" in line:
            end = line["active"]["bytes"]
        if "synced" in line.get("log", {}):
            end = line.get("bytes", end)
    segment = max(manifest.parent.glob("*.log"))
    return segment, segment.stat().st_size, end


def await_checkpoint(partition):
    """From here on the journal alone answers for what comes."""
    deadline = time.monotonic() + SECONDS
    while True:
        _, size, vouched = newest_segment(partition)
        if size == vouched:
            return
        assert time.monotonic() < deadline, f"{vouched} of {size} bytes are vouched for"
        time.sleep(0.05)


def test_kafka_dump_log_agrees(kaas_factory):
    kaas = kaas_factory({"kaas.journal": "on"})
    create(kaas.bootstrap)
    produce(kaas.bootstrap, 60, 0)
    kaas.stop()
    partition = partition_of(kaas)
    released = expect_all_agree(partition)
    assert released > 60 * 2

    kaas.start()
    produce(kaas.bootstrap, 10, 60)
    await_checkpoint(partition)
    produce(kaas.bootstrap, 3, 70)
    kaas.kill()
    segment, size, vouched = newest_segment(partition)
    assert vouched < size
    with open(segment, "r+b") as file:
        file.truncate(vouched)
    kaas.start()
    produce(kaas.bootstrap, 1, 73)
    kaas.stop()
    assert re.search(r" [1-9]\d* came from the journal", kaas.log())
    # 1 to 4 records a batch, and a row each batch.
    assert expect_all_agree(partition) == released + sum(2 + i % 4 for i in range(60, 74))


def test_aborted_transactions_agree(tmp_path):
    """No API writes them yet; both read the same format."""
    path = tmp_path / "00000000000000000000.txnindex"
    path.write_bytes(b"".join(struct.pack(">hqqqq", 0, 7 + i, 10 * i, 10 * i + 5, 10 * i + 6) for i in range(3)))
    path.with_suffix(".log").write_bytes(b"")
    assert expect_agreement([path]) == {".txnindex": 3}
