"""A rebalance storm: members come, leave and fall silent while numbered records flow. They copy what they
read to a second topic, where in the end each record stands: once where the copying is a transaction with
the offsets in it (KIP-447), at least once where the offsets are committed after the copy.

The seed is printed; KAAS_STORM_SEED replays the order of comings and goings.
"""

import collections
import os
import random
import threading
import time

import confluent_kafka
import pytest
from test_members import COOPERATIVE, RANGE, configs

PARTITIONS = 8
SECONDS = 8
LONG_SECONDS = 60
RECORDS_A_SECOND = 500
pytestmark = pytest.mark.timeout(420)


class Feed(threading.Thread):
    """Numbered records, spread over the partitions, until told to stop."""

    def __init__(self, bootstrap, topic):
        super().__init__()
        self.topic, self.sent, self.failed = topic, 0, []
        self.stopping = threading.Event()
        self.producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": "all",
                                                  "enable.idempotence": True, "linger.ms": 5,
                                                  "reconnect.backoff.max.ms": 200, "log_level": 0})

    def run(self):
        while not self.stopping.wait(1 / RECORDS_A_SECOND):
            self.producer.produce(self.topic, value=str(self.sent), partition=self.sent % PARTITIONS,
                                  on_delivery=lambda error, _: error and self.failed.append(error))
            self.sent += 1
            self.producer.poll(0)
        self.failed += ["not delivered"] * self.producer.flush(60)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.join()


class Storm:
    """Opens, closes and abandons members at random; there are one to five at any time."""

    def __init__(self, group, chance, transactional, options):
        self.group, self.chance, self.transactional, self.options = group, chance, transactional, options
        self.alive, self.opened = [], 0

    def open(self):
        name = f"m{self.opened}"
        self.opened += 1
        own = {"transactional_id": f"copier-{name}", "transaction_timeout_ms": 3000}
        self.group.open(name, **self.options, **(own if self.transactional else {}))
        self.alive.append(name)

    def turn(self):
        if len(self.alive) < 2 or (len(self.alive) < 5 and self.chance.random() < 0.5):
            self.open()
        else:
            name = self.alive.pop(self.chance.randrange(len(self.alive)))
            self.chance.choice((self.group.close, self.group.abandon))(name)


def copied(bootstrap, wanted, seconds=90):
    """What committed readers see in the second topic once all of it is there: how often each number."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "reader",
                                         "enable.auto.commit": False, "isolation.level": "read_committed",
                                         "reconnect.backoff.max.ms": 200, "log_level": 0})
    consumer.assign([confluent_kafka.TopicPartition("out", i, 0) for i in range(PARTITIONS)])
    found, deadline, quiet = collections.Counter(), time.monotonic() + seconds, 0
    # Once all are seen, a little more of patience shows what is doubled.
    while time.monotonic() < deadline and (len(found) < wanted or quiet < 3):
        messages = consumer.consume(5000, timeout=0.5)
        quiet = 0 if messages else quiet + 1
        for message in messages:
            assert message.error() is None, message.error()
            found[int(message.value())] += 1
    consumer.close()
    return found


@pytest.mark.parametrize("assignor, transactional, kills", [
    (RANGE, False, False), (COOPERATIVE, True, True),
    pytest.param(RANGE, True, False, marks=pytest.mark.long),
    pytest.param(COOPERATIVE, True, False, marks=pytest.mark.long),
    pytest.param(COOPERATIVE, False, True, marks=pytest.mark.long),
], ids=["range, plain", "cooperative, exactly once, broker killed", "range, exactly once",
        "cooperative, exactly once", "cooperative, plain, broker killed"])
def test_storm_loses_nothing(broker, group, topic, request, assignor, transactional, kills):
    seed = int(os.environ.get("KAAS_STORM_SEED", time.time_ns() % 10**6))
    print(f"KAAS_STORM_SEED={seed}")
    topic("in", PARTITIONS)
    topic("out", PARTITIONS)
    storm = Storm(group, random.Random(seed), transactional, configs(
        "in", out="out", partition_assignment_strategy=assignor, session_timeout_ms=1500,
        isolation_level="read_committed"))
    with Feed(broker.bootstrap, "in") as feed:
        storm.open()
        group.await_shares(("m0", PARTITIONS))
        end = time.monotonic() + (LONG_SECONDS if request.config.getoption("--long") else SECONDS)
        while time.monotonic() < end:
            storm.turn()
            time.sleep(storm.chance.uniform(0.1, 0.8))
            if kills and storm.chance.random() < 0.15:
                broker.kill()
                broker.start()
    assert not feed.failed
    found = copied(broker.bootstrap, feed.sent)
    print(f"{feed.sent} records, {storm.opened} members")
    lost = sorted(set(range(feed.sent)) - set(found))
    assert not lost, f"{len(lost)} of {feed.sent} lost: {lost[:10]}"
    if transactional:
        doubled = [number for number, count in found.items() if count > 1]
        assert not doubled, f"{len(doubled)} of {feed.sent} doubled: {sorted(doubled)[:10]}"
    died = [event for event in group.events if event[1] == "failed"]
    assert not died
