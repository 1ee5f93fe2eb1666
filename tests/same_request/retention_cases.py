"""What leaves a log: DeleteRecords, retention, and where the log begins in every other answer."""

import time

from harness import Subject, case, fetch_body
from kafka_wire.batch import Batch
from offset_cases import T0, epoch_body, offsets_body, with_times


def delete_body(topic: str, offset: int, partition: int = 0) -> dict:
    return {"timeout_ms": 30000, "topics": [{"name": topic, "partitions": [
        {"partition_index": partition, "offset": offset}]}]}


def delete(k: Subject, label: str, topic: str, offset: int, partition: int = 0) -> None:
    k.ask(label, "DeleteRecords", 2, delete_body(topic, offset, partition))


@case
def delete_records_of_every_version(k: Subject):
    name = k.topic()
    k.fill(name)
    k.ask_all("DeleteRecords", lambda v: delete_body(name, v + 1))


@case
def delete_records_up_to_every_place(k: Subject):
    name = k.topic()
    delete(k, "of an empty log", name, -1)
    delete(k, "behind the end of an empty log", name, 1)
    k.fill(name, 3)  # two records each
    for offset in (0, 3, 1, 4, -2, 7, 1 << 62, -(1 << 62), 6, 6, -1):
        delete(k, f"up to {offset}", name, offset)


@case
def delete_records_of_what_is_not_there(k: Subject):
    name = k.topic()
    delete(k, "unknown topic", k.name("nobody"), 0)
    delete(k, "unknown partition", name, 0, 9)
    delete(k, "negative partition", name, 0, -1)
    delete(k, "invalid name", "a b", 0)
    k.ask("no topics", "DeleteRecords", 2, {"timeout_ms": 1000, "topics": []})
    k.ask("no partitions", "DeleteRecords", 2, {"timeout_ms": 1000, "topics": [
        {"name": name, "partitions": []}]})


@case
def delete_records_of_several_partitions(k: Subject):
    name = k.topic(partitions=3)
    for partition in range(3):
        k.fill(name, partition + 1, partition)
    k.ask("answer", "DeleteRecords", 2, {"timeout_ms": 30000, "topics": [{"name": name, "partitions": [
        {"partition_index": p, "offset": 4} for p in (2, 0, 1, 7)]}]})


@case
def delete_records_of_a_partition_named_twice(k: Subject):
    name = k.topic()
    k.fill(name)
    body = delete_body(name, 4)
    body["topics"][0]["partitions"] += [{"partition_index": 0, "offset": 2}]
    k.ask("answer", "DeleteRecords", 2, body)


@case
def delete_records_under_every_policy(k: Subject):
    for policy in ("delete", "compact", "compact,delete", ""):
        name = k.topic(f"p-{policy.replace(',', '-')}", cleanup_policy=policy)
        k.fill(name, keys=[b"k", b"l"])
        delete(k, policy, name, 2)
        delete(k, f"{policy}, behind the end", name, 99)


@case
def log_start_in_every_answer(k: Subject):
    name = k.topic()
    k.fill(name, 4)
    delete(k, "within a batch", name, 3)
    for offset in (0, 2, 3, 4, 8, 9):
        k.ask(f"fetch {offset}", "Fetch", 12, fetch_body(name, offset))
    for asked in (-2, -4, -1, -3, 0, 1_700_000_000_000):
        k.ask(f"time {asked}", "ListOffsets", 11, offsets_body(name, asked))
    k.produce("one more", name, Batch())
    k.ask("epoch", "OffsetForLeaderEpoch", 4, epoch_body(name, 0))
    delete(k, "all", name, -1)
    for asked in (-2, -4, -1, -3, 0):
        k.ask(f"time {asked} of nothing", "ListOffsets", 11, offsets_body(name, asked))
    k.ask("fetch the end", "Fetch", 12, fetch_body(name, 9))
    k.ask("fetch before it", "Fetch", 12, fetch_body(name, 8))
    k.ask("epoch of nothing", "OffsetForLeaderEpoch", 4, epoch_body(name, 0))
    k.produce("the next", name, Batch())


@case
def times_of_what_is_left(k: Subject):
    name = with_times(k, [T0 + 50, T0], [T0 + 10, T0 + 20], [T0 + 20, T0 + 5])
    for start in (1, 2, 4, 5, 6):
        delete(k, f"up to {start}", name, start)
        for delta in (0, 6, 15, 20, 21, 50, 51):
            k.ask(f"+{delta} from {start} on", "ListOffsets", 11, offsets_body(name, T0 + delta))
        k.ask(f"newest from {start} on", "ListOffsets", 11, offsets_body(name, -3))


def await_start(k: Subject, name: str, start: int) -> None:
    k.await_answer(lambda a: a["topics"][0]["partitions"][0]["offset"] == start,
                   "ListOffsets", 7, offsets_body(name, -2))


def several_rounds(k: Subject) -> None:
    """Until another topic has been looked through twice, so has each that was filled before."""
    for i in range(2):
        name = k.topic(f"witness{i}", retention_ms=1)
        k.fill(name, 1)
        await_start(k, name, 2)


@case
def retention_by_time(k: Subject):
    now = int(time.time() * 1000)
    name = k.topic(retention_ms=3_600_000, segment_ms=1000)
    for age in (7_200_000, 5_400_000, 60_000, 7_200_000, 0):
        k.fill(name, 1, base_timestamp=now - age)
    await_start(k, name, 4)
    several_rounds(k)
    k.ask("an old one behind a young one", "ListOffsets", 7, offsets_body(name, -2))


@case
def retention_of_a_log_that_is_all_old(k: Subject):
    name = k.topic(retention_ms=1000)
    k.fill(name, 2)
    await_start(k, name, 4)
    k.ask("end", "ListOffsets", 7, offsets_body(name, -1))
    k.ask("newest", "ListOffsets", 7, offsets_body(name, -3))
    k.ask("a time", "ListOffsets", 7, offsets_body(name, 1))
    k.ask("fetch", "Fetch", 12, fetch_body(name, 4))
    k.ask("fetch below", "Fetch", 12, fetch_body(name, 0))
    k.produce("next", name, Batch())


@case
def retention_spares_what_has_no_age_yet(k: Subject):
    now = int(time.time() * 1000)
    future = k.topic("future", retention_ms=1000, message_timestamp_after_max_ms=1 << 40)
    k.fill(future, 2, base_timestamp=now + 10**9)
    timeless = k.topic("timeless", retention_ms=3_600_000)
    k.fill(timeless, 2, base_timestamp=-1)
    compacted = k.topic("compacted", cleanup_policy="compact", retention_ms=1, retention_bytes=1)
    k.fill(compacted, 2, keys=[b"k", b"l"])
    several_rounds(k)
    for name in (future, timeless, compacted):
        k.ask("start", "ListOffsets", 7, offsets_body(name, -2))


@case
def retention_by_size(k: Subject):
    name = k.topic(retention_bytes=2_500_000, segment_bytes=1 << 20)
    for _ in range(8):  # a segment each
        records = Batch(values=[b"x" * 900_000], base_timestamp=int(time.time() * 1000)).build()
        k.quiet("Produce", 11, k.produce_body(name, records))
    await_start(k, name, 5)
    several_rounds(k)
    k.ask("start", "ListOffsets", 7, offsets_body(name, -2))


def producers_body(topic: str, *partitions: int) -> dict:
    return {"topics": [{"name": topic, "partition_indexes": list(partitions)}]}


@case
def describe_producers(k: Subject):
    name = k.topic(partitions=2)
    k.ask("nobody", "DescribeProducers", 0, producers_body(name, 0, 1))
    pid = k.producer()
    for sequence in (0, 1, 2):
        k.produce("batch", name, Batch(producer_id=pid, producer_epoch=0, base_sequence=sequence))
    k.ask("one", "DescribeProducers", 0, producers_body(name, 0, 1))
    k.produce("its next epoch", name, Batch(producer_id=pid, producer_epoch=3, base_sequence=0))
    k.ask("in its next epoch", "DescribeProducers", 0, producers_body(name, 0))
    delete(k, "delete all", name, -1)
    k.ask("whose records are gone", "DescribeProducers", 0, producers_body(name, 0))


@case
def describe_producers_of_what_is_not_there(k: Subject):
    name = k.topic()
    k.ask("unknown topic", "DescribeProducers", 0, producers_body(k.name("nobody"), 0))
    k.ask("unknown partitions", "DescribeProducers", 0, producers_body(name, 0, 9, -1))
    k.ask("partition named twice", "DescribeProducers", 0, producers_body(name, 0, 0))
    k.ask("invalid name", "DescribeProducers", 0, producers_body("a b", 0))
    k.ask("no topics", "DescribeProducers", 0, {"topics": []})
    k.ask("no partitions", "DescribeProducers", 0, producers_body(name))
