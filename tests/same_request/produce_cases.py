"""Produce: acknowledgements, batches that are wrong in one thing each, idempotent producers."""

import time
import uuid

from harness import EXPECTED_SILENCE, Subject, case
from kafka_wire.batch import CODECS, Batch, crc32c, headers, record

STRANGER = uuid.UUID("01234567-89ab-4def-8123-456789abcdef")


@case
def produce_of_every_version(k: Subject):
    name = k.topic()
    topic_id = k.topic_id(name)
    for version in range(3, 14):
        k.produce(f"v{version}", topic_id if version >= 13 else name, Batch(), version)


@case
def produce_of_versions_only_advertised(k: Subject):
    for version in (0, 1, 2):
        connection = k.open()
        connection.send_frame(connection.request_bytes("Produce", version, b"\0\1\0\0\0\0\0\0\0\0", 1, 1))
        k.note(f"v{version}", "closed" if connection.is_closed() else "open")
        k.reopen()


@case
def produce_with_every_acks(k: Subject):
    name = k.topic()
    for acks in (1, -1, 2, -2, 100):
        k.produce(f"acks {acks}", name, Batch(), acks=acks)
    body = k.produce_body(name, Batch().build(), acks=0)
    k.open().send("Produce", 11, body)
    # The next answer on the connection must be this one's: acks=0 gets no byte back.
    k.ask("after acks 0", "Metadata", 1, {"topics": []})


@case
def produce_without_acks_that_fails_closes(k: Subject):
    body = k.produce_body(k.name("nobody"), Batch().build(), acks=0)
    connection = k.open()
    connection.send("Produce", 9, body)
    k.note("unknown topic", "closed" if connection.is_closed() else "open")
    k.reopen()


@case
def produce_to_what_is_not_there(k: Subject):
    name = k.topic()
    for version in (3, 9, 11, 12):
        k.produce(f"unknown topic v{version}", k.name("nobody"), Batch(), version)
    k.produce("unknown partition", name, Batch(), partition=7)
    k.produce("negative partition", name, Batch(), partition=-1)
    k.produce("invalid name", "a b", Batch())
    k.produce("empty name", "", Batch())
    k.produce("unknown id", STRANGER, Batch(), 13)
    k.produce("zero id", uuid.UUID(int=0), Batch(), 13)


@case
def produce_of_nothing(k: Subject):
    name = k.topic()
    k.ask("no topics", "Produce", 11, {"acks": -1, "timeout_ms": 1000, "topic_data": []})
    k.ask("no partitions", "Produce", 11, {"acks": -1, "timeout_ms": 1000,
                                           "topic_data": [{"name": name, "partition_data": []}]})
    k.produce("null records", name, None, patience=EXPECTED_SILENCE)
    k.produce("empty records", name, b"")
    k.produce("batch of no records", name, Batch(values=[], last_offset_delta=0, count=0))
    k.produce("batch of no records, delta -1", name, Batch(values=[], last_offset_delta=-1, count=0))


@case
def produce_of_a_partition_named_twice(k: Subject):
    name = k.topic()
    part = {"index": 0, "records": Batch().build()}
    k.ask("answer", "Produce", 11, {"acks": -1, "timeout_ms": 1000,
                                    "topic_data": [{"name": name, "partition_data": [part, part]}]})


@case
def produce_of_several_partitions(k: Subject):
    name = k.topic(partitions=3)
    parts = [{"index": i, "records": Batch(values=[b"x"] * (i + 1)).build()} for i in (2, 0, 9, 1)]
    k.ask("answer", "Produce", 11, {"acks": -1, "timeout_ms": 1000,
                                    "topic_data": [{"name": name, "partition_data": parts}]})


@case
def produce_of_broken_batches(k: Subject):
    name = k.topic()
    good = Batch(values=[b"one", b"two", b"three"]).build()
    for label, data in (
        ("wrong checksum", Batch(crc=1).build()),
        ("flipped value", good[:-2] + bytes([good[-2] ^ 1]) + good[-1:]),
        ("cut in its records", good[:-5]),
        ("cut in its header", good[:40]),
        ("cut before its magic", good[:14]),
        ("one byte", good[:1]),
        ("bytes behind it", good + b"\0\0\0"),
        ("length too small", Batch(length=20).build()),
        ("length zero", Batch(length=0).build()),
        ("length negative", Batch(length=-5).build()),
        ("length too large", Batch(length=5000).build()),
        ("two batches", good + good),
        ("magic 0", Batch(magic=0).build()),
        ("magic 1", Batch(magic=1).build()),
        ("magic 3", Batch(magic=3).build()),
        ("magic -1", Batch(magic=-1).build()),
        ("base offset set", Batch(base_offset=55).build()),
        ("leader epoch set", Batch(leader_epoch=9).build()),
    ):
        k.produce(label, name, data)


@case
def produce_of_batches_that_contradict_themselves(k: Subject):
    name = k.topic()
    for label, batch in (
        ("count too small", Batch(values=[b"a", b"b"], count=1)),
        ("count too large", Batch(values=[b"a"], count=2)),
        ("count negative", Batch(values=[b"a"], count=-1)),
        ("count zero", Batch(values=[b"a"], count=0)),
        ("last delta too large", Batch(values=[b"a"], last_offset_delta=5)),
        ("last delta negative", Batch(values=[b"a"], last_offset_delta=-1)),
        ("last delta too small", Batch(values=[b"a", b"b"], last_offset_delta=0)),
        ("control batch", Batch(attributes=32)),
        ("transactional without an id", Batch(attributes=16, producer_id=5, producer_epoch=0,
                                              base_sequence=0)),
        ("unused attribute bits", Batch(attributes=0x0100)),
        ("log append time set by the client", Batch(attributes=8)),
        ("delete horizon bit", Batch(attributes=64)),
    ):
        k.produce(label, name, batch)


@case
def produce_of_unknown_codecs(k: Subject):
    name = k.topic()
    for codec in (5, 6, 7):
        k.produce(f"codec {codec}", name, Batch(attributes=codec))


@case
def produce_of_odd_timestamps(k: Subject):
    name = k.topic()
    now = int(time.time() * 1000)
    for label, batch in (
        ("no timestamps", Batch(base_timestamp=-1)),
        ("zero", Batch(base_timestamp=0)),
        ("negative", Batch(base_timestamp=-5)),
        ("two hours ahead", Batch(base_timestamp=now + 7_200_000)),
        ("a minute ahead", Batch(base_timestamp=now + 60_000)),
        ("no maximum", Batch(max_timestamp=-1)),
    ):
        k.produce(label, name, batch)


@case
def produce_with_log_append_time(k: Subject):
    name = k.topic(message_timestamp_type="LogAppendTime")
    k.produce("past", name, Batch(base_timestamp=1000))
    k.produce("far future", name, Batch(base_timestamp=int(time.time() * 1000) + 10**10))


def kept(k: Subject, name: str) -> None:
    """Codec, producer and count of each batch as it is kept: the bytes are the codec's choice."""
    body = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": [{
        "topic": name, "partitions": [{"partition": 0, "fetch_offset": 0,
                                       "partition_max_bytes": 1 << 20}]}]}
    records = k.quiet("Fetch", 12, body)["responses"][0]["partitions"][0]["records"]
    for header in headers(records):
        k.note("kept", {"attributes": header.attributes, "count": header.count,
                        "base_sequence": header.base_sequence})


@case
def produce_to_a_topic_with_its_own_codec(k: Subject):
    pid = k.producer()
    for codec in ("uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"):
        name = k.topic(codec, compression_type=codec)
        for attributes in (0, 1):
            k.produce(f"{attributes} to {codec}", name, Batch(
                values=[b"a" * 100, b"b"], attributes=attributes, producer_id=pid, producer_epoch=0,
                base_sequence=2 * attributes))
        kept(k, name)


@case
def produce_what_does_not_fit_once_it_is_packed_anew(k: Subject):
    name = k.topic(compression_type="uncompressed", max_message_bytes=1000)
    k.produce("grows", name, Batch(values=[b"a" * 5000], attributes=1))
    name = k.topic("shrinks", compression_type="gzip", max_message_bytes=1000)
    k.produce("would shrink", name, Batch(values=[b"a" * 5000]))
    k.produce("fits", name, Batch(values=[b"a" * 900]))


@case
def produce_bad_records_to_a_topic_with_its_own_codec(k: Subject):
    name = k.topic(compression_type="gzip", cleanup_policy="compact")
    now = int(time.time() * 1000)
    k.produce("null key", name, Batch(values=[b"a", b"b"], keys=[b"k", None]))
    k.produce("far ahead", name, Batch(keys=[b"k"], base_timestamp=now + 7_200_000))
    name = k.topic("stamped", compression_type="zstd", message_timestamp_type="LogAppendTime")
    k.produce("stamped", name, Batch(base_timestamp=1000))
    kept(k, name)


@case
def produce_times_out_of_range(k: Subject):
    now = int(time.time() * 1000)
    name = k.topic(message_timestamp_before_max_ms=60_000, message_timestamp_after_max_ms=60_000)
    for label, stamps in (("in range", [now, now - 30_000]), ("one too old", [now, now - 120_000]),
                          ("one too new", [now, now + 120_000]), ("both", [now - 120_000, now + 120_000])):
        for attributes in (0, 1):
            k.produce(f"{label}, codec {attributes}", name, Batch(
                values=[b"x"] * 2, base_timestamp=stamps[0], timestamps=stamps, attributes=attributes))


@case
def produce_above_max_message_bytes(k: Subject):
    name = k.topic(max_message_bytes=1000)
    size = len(Batch(values=[b""]).build())
    k.produce("at the limit", name, Batch(values=[b"x" * (1000 - size - 2)]))
    k.produce("above", name, Batch(values=[b"x" * 1000]))
    k.produce("far above", name, Batch(values=[b"x" * 100_000]))


@case
def produce_of_large_records_in_packed_batches(k: Subject):
    limit = 1000
    name = k.topic(max_decompressed_message_bytes=limit)
    around = len(record(0, None, b"x" * limit)) - 2 - limit  # what a record adds to its value
    for codec, number in CODECS.items():
        for label, size in (("at the limit", limit - around), ("above", limit - around + 1),
                            ("far above", 100 * limit)):
            k.produce(f"{codec}, {label}", name, Batch(values=[b"x" * size], attributes=number))
        k.produce(f"{codec}, second above", name, Batch(
            values=[b"x", b"x" * limit], attributes=number))
        k.produce(f"{codec}, above together", name, Batch(values=[b"x" * 800] * 3, attributes=number))
    name = k.topic("kept", max_decompressed_message_bytes=limit, compression_type="lz4")
    for codec in (0, 1):
        k.produce(f"{codec} packed anew", name, Batch(values=[b"x" * 2000], attributes=codec))


@case
def produce_without_key_to_a_compacted_topic(k: Subject):
    pid = k.producer()
    for policy in ("compact", "compact,delete"):
        name = k.topic(policy.replace(",", "-"), cleanup_policy=policy)
        k.produce("null key", name, Batch())
        for codec, number in CODECS.items():
            k.produce(f"two null keys of three, {codec}", name, Batch(
                values=[b"a", b"b", b"c"], keys=[None, b"k", None], attributes=number))
            k.produce(f"with keys, {codec}", name, Batch(
                values=[b"a", None], keys=[b"k", b""], attributes=number))
        k.produce("of an idempotent producer", name, Batch(
            producer_id=pid, producer_epoch=0, base_sequence=0))
        k.produce("who goes on", name, Batch(
            keys=[b"k"], producer_id=pid, producer_epoch=0, base_sequence=0))
        k.produce("and an old time", name, Batch(values=[b"a", b"b"], keys=[None, b"k"], base_timestamp=-1))
        k.produce("not waited for", name, Batch(), acks=0, patience=EXPECTED_SILENCE)
    k.ask("beside a good partition", "Produce", 11, both_of_two(k))


def both_of_two(k: Subject) -> dict:
    name = k.topic("two", partitions=2, cleanup_policy="compact")
    body = k.produce_body(name, Batch().build())
    body["topic_data"][0]["partition_data"].append(
        {"index": 1, "records": Batch(keys=[b"k"]).build()})
    return body


def idempotent(pid: int, sequence: int, epoch: int = 0, count: int = 1) -> Batch:
    return Batch(values=[b"x"] * count, producer_id=pid, producer_epoch=epoch, base_sequence=sequence)


@case
def idempotent_producer(k: Subject):
    name = k.topic()
    pid = k.producer()
    for label, sequence, epoch, count in (
        ("first", 0, 0, 3), ("second", 3, 0, 2), ("first again", 0, 0, 3), ("second again", 3, 0, 2),
        ("gap", 9, 0, 1), ("other size of the second", 3, 0, 1), ("third", 5, 0, 1), ("fourth", 6, 0, 1),
        ("fifth", 7, 0, 1), ("sixth", 8, 0, 1), ("seventh", 9, 0, 1), ("first, long ago", 0, 0, 3),
        ("second, six ago", 3, 0, 2), ("third, five ago", 5, 0, 1), ("new epoch, wrong start", 10, 1, 1),
        ("new epoch", 0, 1, 1), ("old epoch", 10, 0, 1), ("new epoch goes on", 1, 1, 1)):
        k.produce(label, name, idempotent(pid, sequence, epoch, count))


@case
def idempotent_producer_that_nobody_knows(k: Subject):
    name = k.topic()
    pid = k.producer()
    k.produce("starts in the middle", name, idempotent(pid, 42))
    k.produce("goes on", name, idempotent(pid, 43))
    k.produce("an id never issued", name, idempotent(1 << 50, 0))


@case
def idempotent_sequence_wraps(k: Subject):
    name = k.topic()
    pid = k.producer()
    top = (1 << 31) - 1
    k.produce("close to the end", name, idempotent(pid, top - 1, count=2))
    k.produce("wrapped", name, idempotent(pid, 0))
    pid = k.producer()
    k.produce("across the end", name, idempotent(pid, top - 1, count=4))
    k.produce("after it", name, idempotent(pid, 2))
    k.produce("across the end again", name, idempotent(pid, top - 1, count=4))


@case
def idempotent_fields_that_do_not_fit(k: Subject):
    name = k.topic()
    for label, batch in (
        ("sequence without id", Batch(base_sequence=3)),
        ("id without sequence", Batch(producer_id=7, producer_epoch=0)),
        ("id without epoch", Batch(producer_id=7, base_sequence=0)),
        ("sequence -2", Batch(producer_id=7, producer_epoch=0, base_sequence=-2)),
        ("id -2", Batch(producer_id=-2, producer_epoch=0, base_sequence=0)),
        ("epoch -2", Batch(producer_id=8, producer_epoch=-2, base_sequence=0)),
    ):
        k.produce(label, name, batch)


@case
def idempotent_batches_in_one_request(k: Subject):
    name = k.topic()
    pid = k.producer()
    k.produce("two batches", name, idempotent(pid, 0).build() + idempotent(pid, 1).build())


@case
def produced_bytes_come_back_unchanged(k: Subject):
    name = k.topic()
    data = Batch(values=[b"a" * 100, b"", None], keys=[None, b"k", b"k2"]).build()
    k.produce("answer", name, data)
    body = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": [{
        "topic": name, "partitions": [{"partition": 0, "fetch_offset": 0,
                                       "partition_max_bytes": 1 << 20}]}]}
    records = k.quiet("Fetch", 12, body)["responses"][0]["partitions"][0]["records"]
    k.note("from the checksummed part on", crc32c(records[21:]) == crc32c(data[21:]))
