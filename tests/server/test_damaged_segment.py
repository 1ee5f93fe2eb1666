"""A segment that a disk changed, shortened or lost: its own partition says so, nothing else suffers."""

import json
import os
import pathlib
import time
import urllib.request

import confluent_kafka
import kafka
import kafka.errors
import pytest
from kafka_wire.connection import Connection

DAMAGED, NEIGHBOUR = "damaged", "neighbour"
RECORDS = 200
BATCHES = 20


def produce(kaas, topic, records):
    producer = confluent_kafka.Producer({"bootstrap.servers": kaas.bootstrap, "acks": "all"})
    for i, value in enumerate(records):
        producer.produce(topic, value, partition=0)
        if (i + 1) % (RECORDS // BATCHES) == 0:
            assert producer.flush(60) == 0
    assert producer.flush(60) == 0


def values(topic):
    return [f"{topic} {i:04}".encode() * 20 for i in range(RECORDS)]


def segment_of(kaas, topic) -> pathlib.Path:
    files = [file for file in (kaas.directory / "data").glob(f"{topic}.*/0/*/*.log") if file.stat().st_size > 0]
    assert len(files) == 1, files
    return files[0]


def health(kaas):
    with urllib.request.urlopen(f"http://127.0.0.1:{kaas.health_port}/healthz", timeout=10) as answer:
        return json.load(answer)


def ready(kaas):
    with urllib.request.urlopen(f"http://127.0.0.1:{kaas.health_port}/readyz", timeout=10) as answer:
        return answer.status == 200


def consume(kaas, partitions, done):
    """What a consumer of these partitions got, and the errors of each, until `done(got, errors)`."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": kaas.bootstrap, "group.id": "readers"})
    got, errors = {topic: [] for topic, _ in partitions}, {topic: set() for topic, _ in partitions}
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset) for topic, offset in partitions])
    deadline = time.monotonic() + 60
    while not done(got, errors):
        assert time.monotonic() < deadline, (errors, {topic: len(all_) for topic, all_ in got.items()})
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error():
            if message.topic() in errors:
                errors[message.topic()].add(message.error().code())
        else:
            got[message.topic()].append(message.value())
    consumer.close()
    return got, errors


def damage(kaas, how) -> int:
    """Gives how many records are before the damage."""
    segment = segment_of(kaas, DAMAGED)
    size = segment.stat().st_size
    batch, whole = size // BATCHES, RECORDS // BATCHES
    if how == "gone":
        segment.unlink()
        return 0
    if how == "shortened":
        os.truncate(segment, size - 100)
        return RECORDS - whole
    at = 7 * batch + {"body": batch // 2, "header": 25}[how]
    with segment.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))
    return 7 * whole


@pytest.mark.parametrize("how", ["body", "header", "shortened", "gone"])
def test_only_its_own_partition_suffers_and_says_so(kaas, how):
    with Connection(kaas.bootstrap) as connection:
        connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [
            {"name": topic, "num_partitions": 1, "replication_factor": 1} for topic in (DAMAGED, NEIGHBOUR)]})
    for topic in (DAMAGED, NEIGHBOUR):
        produce(kaas, topic, values(topic))
    kaas.stop()
    before = damage(kaas, how)
    kaas.start()
    assert health(kaas)["partitions_damaged"] == 0

    got, errors = consume(
        kaas, [(DAMAGED, 0), (NEIGHBOUR, 0)],
        lambda got, errors: errors[DAMAGED] and len(got[NEIGHBOUR]) == RECORDS and len(got[DAMAGED]) == before)
    assert got[NEIGHBOUR] == values(NEIGHBOUR)
    assert got[DAMAGED] == values(DAMAGED)[:before]
    assert errors == {DAMAGED: {confluent_kafka.KafkaError.INVALID_MSG}, NEIGHBOUR: set()}

    # Java's clients and kafka-python raise it.
    reader = kafka.KafkaConsumer(bootstrap_servers=kaas.bootstrap)
    place = kafka.TopicPartition(DAMAGED, 0)
    reader.assign([place])
    reader.seek(place, before)
    with pytest.raises(kafka.errors.CorruptRecordError):
        for _ in range(600):
            reader.poll(100)
    reader.close()

    assert health(kaas)["partitions_damaged"] == 1
    assert health(kaas)["status"] == "degraded"
    assert ready(kaas)
    lines = [line for line in kaas.log().splitlines() if "cannot be read" in line]
    assert len(lines) == 1, lines
    assert "00000000000000000000.log" in lines[0] and DAMAGED in lines[0]
    assert "cannot be finished" not in kaas.log()

    # It is led and takes records, which are read behind the damage.
    produce(kaas, DAMAGED, [b"later"])
    assert consume(kaas, [(DAMAGED, RECORDS)], lambda got, _: got[DAMAGED])[0][DAMAGED] == [b"later"]


def test_a_file_that_shrinks_below_a_running_broker_is_named(kaas):
    with Connection(kaas.bootstrap) as connection:
        connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [
            {"name": topic, "num_partitions": 1, "replication_factor": 1} for topic in (DAMAGED, NEIGHBOUR)]})
    for topic in (DAMAGED, NEIGHBOUR):
        produce(kaas, topic, values(topic))
    os.truncate(segment_of(kaas, DAMAGED), 0)
    got, errors = consume(kaas, [(DAMAGED, 0), (NEIGHBOUR, 0)],
                          lambda got, errors: errors[DAMAGED] and len(got[NEIGHBOUR]) == RECORDS)
    assert got[NEIGHBOUR] == values(NEIGHBOUR)
    assert got[DAMAGED] == []
    cut = [line for line in kaas.log().splitlines() if "its connection is cut" in line]
    assert len(cut) == 1 and "00000000000000000000.log at 0" in cut[0], cut
    assert health(kaas)["partitions_damaged"] == 1
