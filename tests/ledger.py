"""Numbered records under load, and the book of what was acknowledged, for tests that break things meanwhile."""

import threading
import time

import confluent_kafka


# What a record says that no writer has sent.
STRANGER = -1


class Writer(threading.Thread):
    """Sends numbered records to one partition and keeps a ledger of what was acknowledged."""

    def __init__(self, bootstrap, topic, idempotent, bulk_bytes=0, partition=0, config=None):
        super().__init__()
        self.topic = topic
        self.partition = partition
        self.errors = []  # a delivery that failed, or a fatal error of the producer
        self.bulk = [("bulk", b"x" * bulk_bytes)] if bulk_bytes else None
        self.acknowledged = {}  # number: offset
        self.strangers = set()  # offsets that were acknowledged to somebody else for a STRANGER
        self.sent = 0
        self.stopping = threading.Event()
        self.fresh = threading.Event()
        self.producer = confluent_kafka.Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": idempotent, "acks": "all",
            "linger.ms": 1, "message.timeout.ms": 120000, "reconnect.backoff.max.ms": 200,
            "error_cb": lambda e: e.fatal() and self.errors.append(e),
            "max.in.flight.requests.per.connection": 5 if idempotent else 1, **(config or {})})

    def delivered(self, number, error, message):
        if error is None:
            self.acknowledged[number] = message.offset()
            self.fresh.set()
        else:
            self.errors.append(error)

    def run(self):
        while not self.stopping.is_set():
            number = self.sent
            self.producer.produce(self.topic, partition=self.partition, value=str(number), headers=self.bulk,
                                  on_delivery=lambda e, m, n=number: self.delivered(n, e, m))
            self.sent += 1
            self.producer.poll(0.002)
        assert self.producer.flush(120) == 0

    def await_acknowledgement(self, seconds=60):
        self.fresh.clear()
        assert self.fresh.wait(seconds), "nothing is acknowledged any more"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.join()


def watermarks(consumer, partition):
    """A partition that is being recovered says so, and this client does not ask again by itself."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return consumer.get_watermark_offsets(partition, timeout=30)
        except confluent_kafka.KafkaException as error:
            recovering = error.args[0].code() == confluent_kafka.KafkaError.NOT_LEADER_FOR_PARTITION
            if not recovering or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def read_all(bootstrap, topic, partition=0):
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused",
                                         "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    low, high = watermarks(consumer, confluent_kafka.TopicPartition(topic, partition))
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, low)])
    found, deadline = [], time.monotonic() + 60
    while (not found or found[-1][0] < high - 1) and time.monotonic() < deadline:
        for message in consumer.consume(1000, timeout=1):
            assert message.error() is None, message.error()
            found.append((message.offset(), int(message.value())))
    consumer.close()
    return found


def expect_complete(bootstrap, topic, writer, idempotent):
    """The writer has stopped: what it was promised is there, and what it repeated is there once."""
    found = read_all(bootstrap, topic, writer.partition)
    assert not writer.errors, writer.errors[:5]
    assert [offset for offset, _ in found] == list(range(len(found))), "offsets have a gap"
    at = dict(found)
    where = {number: offset for offset, number in found}
    # No offset: the client was told that later ones are there already (OUT_OF_ORDER_SEQUENCE_NUMBER to a repetition
    # that is older than the five batches which a broker remembers), and takes that for an acknowledgement.
    lost = [n for n, offset in writer.acknowledged.items()
            if (n not in where if offset is None else at.get(offset) != n)]
    assert not lost, (f"{topic}-{writer.partition}: {len(lost)} acknowledged records are not where they were "
                      f"acknowledged: {[(n, writer.acknowledged[n], where.get(n)) for n in lost[:5]]}")
    lost = [offset for offset in writer.strangers if at.get(offset) != STRANGER]
    assert not lost, f"{topic}-{writer.partition}: acknowledged to somebody else and not there: {lost}"
    values = [value for _, value in found if value != STRANGER]
    if idempotent:
        first = next((i for i, (v, n) in enumerate(zip(values, range(writer.sent))) if v != n), None)
        assert values == list(range(writer.sent)), (
            f"{topic}-{writer.partition}: lost, doubled or out of order: {len(values)} records for {writer.sent}, "
            f"{values[first - 2:first + 3] if first is not None else values[-3:]} at {first}")
    else:
        assert set(values) == set(range(writer.sent))
        firsts = list(dict.fromkeys(values))
        assert firsts == sorted(firsts), "out of order"
    return at
