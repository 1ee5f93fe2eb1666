"""kill -9 under load, again and again: what was acknowledged is there, in order, and once.

Kill -9 keeps the page cache, so this tests restart and recovery, not fsync; that is the in-memory volume's
part (src/storage).
"""

import threading
import time

import confluent_kafka
import pytest

ROUNDS = 4
LONG_ROUNDS = 60
pytestmark = pytest.mark.timeout(600)


class Writer(threading.Thread):
    """Sends numbered records to one partition and keeps a ledger of what was acknowledged."""

    def __init__(self, bootstrap, topic, idempotent):
        super().__init__()
        self.topic = topic
        self.acknowledged = {}  # number: offset
        self.sent = 0
        self.stopping = threading.Event()
        self.fresh = threading.Event()
        self.producer = confluent_kafka.Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": idempotent, "acks": "all",
            "linger.ms": 1, "message.timeout.ms": 120000, "reconnect.backoff.max.ms": 200,
            "max.in.flight.requests.per.connection": 5 if idempotent else 1})

    def delivered(self, number, error, message):
        if error is None:
            self.acknowledged[number] = message.offset()
            self.fresh.set()

    def run(self):
        while not self.stopping.is_set():
            number = self.sent
            self.producer.produce(self.topic, partition=0, value=str(number),
                                  on_delivery=lambda e, m, n=number: self.delivered(n, e, m))
            self.sent += 1
            self.producer.poll(0.002)
        assert self.producer.flush(120) == 0

    def await_acknowledgement(self):
        self.fresh.clear()
        assert self.fresh.wait(60), "nothing is acknowledged any more"


def read_all(bootstrap, topic):
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused",
                                         "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    low, high = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), timeout=30)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, low)])
    found, deadline = [], time.monotonic() + 60
    while (not found or found[-1][0] < high - 1) and time.monotonic() < deadline:
        for message in consumer.consume(1000, timeout=1):
            assert message.error() is None, message.error()
            found.append((message.offset(), int(message.value())))
    consumer.close()
    return found


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_what_was_acknowledged_survives_kill_9(kaas, request, idempotent):
    rounds = LONG_ROUNDS if request.config.getoption("--long") else ROUNDS
    writer = Writer(kaas.bootstrap, "ledger", idempotent)
    writer.start()
    try:
        for _ in range(rounds):
            writer.await_acknowledgement()
            writer.await_acknowledgement()
            kaas.kill()
            kaas.start()
        writer.await_acknowledgement()
    finally:
        writer.stopping.set()
        writer.join()
    found = read_all(kaas.bootstrap, "ledger")
    assert [offset for offset, _ in found] == list(range(len(found))), "offsets have a gap"
    at = dict(found)
    lost = [n for n, offset in writer.acknowledged.items() if at.get(offset) != n]
    assert not lost, f"{len(lost)} acknowledged records are not where they were acknowledged: {lost[:5]}"
    values = [value for _, value in found]
    if idempotent:
        assert values == list(range(writer.sent)), "lost, doubled or out of order"
    else:
        assert set(values) == set(range(writer.sent))
        firsts = list(dict.fromkeys(values))
        assert firsts == sorted(firsts), "out of order"
