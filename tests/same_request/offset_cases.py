"""ListOffsets, OffsetForLeaderEpoch, InitProducerId."""

import uuid

from harness import Subject, case
from kafka_wire.batch import CODECS, Batch

T0 = 1_700_000_000_000


def offsets_body(topic, timestamp, partition=0, epoch=-1, **more) -> dict:
    return {"replica_id": -1, **more, "topics": [{"name": topic, "partitions": [{
        "partition_index": partition, "current_leader_epoch": epoch, "timestamp": timestamp}]}]}


def produced(k: Subject, name: str, deltas, **fields) -> None:
    """One batch, its records so many milliseconds behind T0."""
    records = Batch(values=[b"x"] * len(deltas), base_timestamp=T0 + deltas[0],
                    timestamps=[T0 + delta for delta in deltas], **fields)
    answer = k.quiet("Produce", 11, k.produce_body(name, records.build()))
    assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, answer


def with_times(k: Subject, *batches) -> str:
    name = k.topic()
    for stamps in batches:
        produced(k, name, [stamp - T0 for stamp in stamps])
    return name


@case
def list_offsets_of_every_version(k: Subject):
    name = with_times(k, [T0, T0 + 10], [T0 + 20])
    k.ask_all("ListOffsets", lambda v: offsets_body(name, -1))
    k.ask_all("ListOffsets", lambda v: offsets_body(name, T0 + 5))


@case
def list_offsets_special_times(k: Subject):
    name = with_times(k, [T0, T0 + 30], [T0 + 20])
    for version in (1, 5, 7, 8, 9, 10, 11):
        for special in (-1, -2, -3, -4, -5, -6, -7, -100):
            k.ask(f"v{version} {special}", "ListOffsets", version, offsets_body(name, special))


@case
def list_offsets_of_an_empty_partition(k: Subject):
    name = k.topic()
    for special in (-1, -2, -3, -4, -5, -6, 0, T0):
        k.ask(f"{special}", "ListOffsets", 11, offsets_body(name, special))


@case
def list_offsets_by_time(k: Subject):
    name = with_times(k, [T0, T0 + 10, T0 + 20], [T0 + 15, T0 + 40, T0 + 30], [T0 + 40, T0 + 50])
    for delta in (-1, 0, 1, 10, 11, 20, 21, 30, 35, 40, 41, 50, 51, 10**9):
        k.ask(f"+{delta}", "ListOffsets", 7, offsets_body(name, T0 + delta))
    k.ask("0", "ListOffsets", 7, offsets_body(name, 0))


@case
def list_offsets_by_time_inside_batches_of_every_codec(k: Subject):
    for codec, number in CODECS.items():
        name = k.topic(codec)
        for stamps in ((0, 10, 20), (45, 15, 40, 30), (40, 40), (25, 60, 60, 50), (60, 5)):
            produced(k, name, stamps, attributes=number)
        for delta in (-1, 0, 5, 10, 15, 20, 21, 41, 45, 46, 60, 61):
            k.ask(f"{codec} +{delta}", "ListOffsets", 7, offsets_body(name, T0 + delta))
        k.ask(f"{codec} max", "ListOffsets", 7, offsets_body(name, -3))


@case
def list_offsets_by_time_without_times_and_before_1970(k: Subject):
    name = k.topic()
    k.produce("before 1970", name, Batch(base_timestamp=-5))
    k.ask("max of what has no time", "ListOffsets", 7, offsets_body(name, -3))
    k.quiet("Produce", 11, k.produce_body(name, Batch(base_timestamp=-1).build()))
    for asked in (-3, 0, 1):
        k.ask(f"{asked} of no times", "ListOffsets", 7, offsets_body(name, asked))
    produced(k, name, (0,))
    for asked in (-3, 0, 1):
        k.ask(f"{asked} behind no times", "ListOffsets", 7, offsets_body(name, asked))


@case
def list_offsets_by_time_across_segments(k: Subject):
    name = k.topic(segment_bytes=1 << 20)
    for delta in (0, 30, 20, 40, 40, 10):  # a segment each
        records = Batch(values=[b"x" * 900_000, b"y"], base_timestamp=T0 + delta,
                        timestamps=[T0 + delta, T0 + delta + 3])
        k.quiet("Produce", 11, k.produce_body(name, records.build()))
    for delta in (0, 3, 4, 20, 23, 30, 33, 34, 40, 43, 44):
        k.ask(f"+{delta}", "ListOffsets", 7, offsets_body(name, T0 + delta))
    k.ask("max", "ListOffsets", 7, offsets_body(name, -3))


@case
def list_offsets_by_time_under_log_append_time(k: Subject):
    name = k.topic(message_timestamp_type="LogAppendTime")
    for codec in (0, 1):
        records = Batch(values=[b"x"] * 3, timestamps=[T0, T0 + 50, T0 + 10], attributes=codec)
        k.quiet("Produce", 11, k.produce_body(name, records.build()))
    for asked in (0, T0):
        found = k.quiet("ListOffsets", 7, offsets_body(name, asked))["topics"][0]["partitions"][0]
        k.note(f"{asked}", [found["error_code"], found["offset"], found["timestamp"] > T0 + 50])
    found = k.quiet("ListOffsets", 7, offsets_body(name, -3))["topics"][0]["partitions"][0]
    k.note("max is the first of a batch", [found["offset"] in (0, 3), found["timestamp"] > T0 + 50])


@case
def list_offsets_of_ties(k: Subject):
    name = with_times(k, [T0, T0 + 10], [T0 + 10, T0 + 10], [T0 + 10])
    k.ask("time", "ListOffsets", 7, offsets_body(name, T0 + 10))
    k.ask("max", "ListOffsets", 7, offsets_body(name, -3))


@case
def list_offsets_of_what_is_not_there(k: Subject):
    name = k.topic()
    k.ask("unknown topic", "ListOffsets", 7, offsets_body(k.name("nobody"), -1))
    k.ask("unknown partition", "ListOffsets", 7, offsets_body(name, -1, 9))
    k.ask("negative partition", "ListOffsets", 7, offsets_body(name, -1, -1))
    body = offsets_body(name, -1)
    body["topics"][0]["partitions"] *= 2
    k.ask("partition named twice", "ListOffsets", 7, body)
    k.ask("no topics", "ListOffsets", 7, {"replica_id": -1, "topics": []})


@case
def list_offsets_epochs_and_isolation(k: Subject):
    name = with_times(k, [T0])
    for epoch in (-1, 0, 1, 9, -2):
        k.ask(f"epoch {epoch}", "ListOffsets", 7, offsets_body(name, -1, epoch=epoch))
    for level in (0, 1, 2):
        k.ask(f"isolation {level}", "ListOffsets", 7, offsets_body(name, -1, isolation_level=level))
    for replica in (1, 77, -2):
        k.ask(f"replica {replica}", "ListOffsets", 7, {**offsets_body(name, -1), "replica_id": replica})


def epoch_body(topic, leader_epoch, current=-1, partition=0, replica=-1) -> dict:
    return {"replica_id": replica, "topics": [{"topic": topic, "partitions": [{
        "partition": partition, "current_leader_epoch": current, "leader_epoch": leader_epoch}]}]}


@case
def offset_for_leader_epoch(k: Subject):
    name = k.topic()
    k.ask("empty, epoch 0", "OffsetForLeaderEpoch", 4, epoch_body(name, 0))
    k.fill(name)
    for version in (2, 3, 4):
        for epoch in (-1, 0, 1, 7, -2):
            k.ask(f"v{version} epoch {epoch}", "OffsetForLeaderEpoch", version, epoch_body(name, epoch))
    for current in (0, 1, 50):
        k.ask(f"current {current}", "OffsetForLeaderEpoch", 4, epoch_body(name, 0, current))
    k.ask("unknown topic", "OffsetForLeaderEpoch", 4, epoch_body(k.name("nobody"), 0))
    k.ask("unknown partition", "OffsetForLeaderEpoch", 4, epoch_body(name, 0, partition=9))
    k.ask("replica -2", "OffsetForLeaderEpoch", 4, epoch_body(name, 0, replica=-2))


@case
def init_producer_id(k: Subject):
    k.producer()  # Apache's first answers are COORDINATOR_LOAD_IN_PROGRESS
    for version in range(0, 6):
        k.ask(f"v{version}", "InitProducerId", version, {"transactional_id": None,
                                                         "transaction_timeout_ms": 60000})
    k.ask("timeout zero", "InitProducerId", 4, {"transactional_id": None, "transaction_timeout_ms": 0})
    k.ask("timeout negative", "InitProducerId", 4, {"transactional_id": None,
                                                    "transaction_timeout_ms": -1})
    k.ask("id and epoch without transactional id", "InitProducerId", 4, {
        "transactional_id": None, "transaction_timeout_ms": 60000, "producer_id": 5, "producer_epoch": 1})
    k.ask("epoch without id", "InitProducerId", 4, {
        "transactional_id": None, "transaction_timeout_ms": 60000, "producer_id": -1,
        "producer_epoch": 1})
    k.ask("empty transactional id", "InitProducerId", 4, {"transactional_id": "",
                                                          "transaction_timeout_ms": 60000})


@case
def topic_created_again_inherits_nothing(k: Subject):
    name = k.topic()
    k.fill(name)
    first = k.topic_id(name)
    k.quiet("DeleteTopics", 6, {"topics": [{"name": name}], "timeout_ms": 30000})
    assert isinstance(first, uuid.UUID)
    k.await_answer(lambda a: a["topics"][0]["error_code"] == 3, "Metadata", 12,
                   {"topics": [{"name": name}], "allow_auto_topic_creation": False})
    k.topic()
    k.note("another id", k.topic_id(name) != first)
    k.ask("latest", "ListOffsets", 7, offsets_body(name, -1))
    k.produce("first batch", name, Batch())
