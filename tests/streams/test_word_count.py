"""Kafka Streams with exactly_once_v2, killed in the middle: the output is exact all the same.

Word counts make it visible: what committed readers see of a word must be 1, 2, 3 and so on to how often it
was sent. A doubled word gives a number too much, a lost one or lost state a number too small or again.
"""

import collections
import pathlib
import random
import subprocess
import threading
import time

import apache
import confluent_kafka
import pytest
from kafka_wire.connection import Connection

HERE = pathlib.Path(__file__).resolve().parent
WORDS = [f"word{i}" for i in range(30)]
# Kills of the process in question, each after more of the output was seen.
KILLS = 2
LONG_KILLS = 15
PARTITIONS = 3
SETTINGS = {"group.min.session.timeout.ms": "500", "group.initial.rebalance.delay.ms": "0",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
pytestmark = pytest.mark.timeout(420)


@pytest.fixture(scope="session")
def classes(tmp_path_factory):
    return apache.javac(HERE / "WordCount.java", tmp_path_factory.mktemp("streams"))


@pytest.fixture
def broker(kaas_factory):
    found = kaas_factory(SETTINGS)
    with Connection(found.bootstrap) as connection:
        answer = connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [
            {"name": name, "num_partitions": PARTITIONS, "replication_factor": 1}
            for name in ("words", "counts")]})
        assert [topic["error_code"] for topic in answer["topics"]] == [0, 0], answer
    return found


class App:
    """One process of WordCount.java. Its end on stdin's end is a good one."""

    def __init__(self, broker, classes, directory, *configs):
        self.log = directory / "app.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                apache.jvm_command("WordCount", broker.bootstrap, "word-count", directory / "state",
                                   *configs, level="WARN", classes=[classes], target="SYSTEM_OUT"),
                stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        assert "CLOSED" in self.log.read_text().splitlines()[-3:]


class Feed(threading.Thread):
    """Words at random, until told to stop."""

    def __init__(self, bootstrap, seed):
        super().__init__()
        self.chance, self.sent, self.undelivered = random.Random(seed), collections.Counter(), 0
        self.stopping = threading.Event()
        self.producer = confluent_kafka.Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5,
            "reconnect.backoff.max.ms": 200, "log_level": 0})

    def run(self):
        while not self.stopping.wait(0.005):
            word = self.chance.choice(WORDS)
            self.producer.produce("words", value=word, partition=self.sent.total() % PARTITIONS)
            self.sent[word] += 1
            self.producer.poll(0)
        self.undelivered = self.producer.flush(60)

    def stop(self):
        self.stopping.set()
        self.join()
        assert self.undelivered == 0


class Counts:
    """What committed readers see of `counts`: by word, the numbers in their order."""

    def __init__(self, bootstrap):
        self.seen = collections.defaultdict(list)
        self.consumer = confluent_kafka.Consumer({
            "bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False,
            "isolation.level": "read_committed", "reconnect.backoff.max.ms": 200,
            "log_level": 0})
        self.consumer.assign([confluent_kafka.TopicPartition("counts", i, 0) for i in range(PARTITIONS)])

    def total(self):
        return sum(map(len, self.seen.values()))

    def read(self, until, seconds):
        deadline = time.monotonic() + seconds
        while self.total() < until:
            assert time.monotonic() < deadline, f"{self.total()} of {until} counts in {seconds} s"
            self.poll(0.2)

    def poll(self, seconds):
        for message in self.consumer.consume(1000, timeout=seconds):
            if message.error() is None:  # of the connection to a killed broker it would be
                self.seen[message.key().decode()].append(int(message.value()))

    def expect(self, sent):
        self.read(sent.total(), 90)
        self.poll(1)
        assert {word: numbers for word, numbers in self.seen.items()} == {
            word: list(range(1, count + 1)) for word, count in sent.items()}


@pytest.mark.parametrize("killed", ["application", "broker"])
def test_counts_are_exact_though_it_is_killed(broker, classes, tmp_path, request, killed):
    feed, counts = Feed(broker.bootstrap, seed=1), Counts(broker.bootstrap)
    # A killed application's sessions and transactions end by time; a killed broker's live on.
    configs = {"application": ("session.timeout.ms=2000", "transaction.timeout.ms=4000"),
               "broker": ("session.timeout.ms=30000", "transaction.timeout.ms=60000")}[killed]
    app = App(broker, classes, tmp_path, *configs)
    feed.start()
    try:
        for _ in range(LONG_KILLS if request.config.getoption("--long") else KILLS):
            counts.read(counts.total() + 100, 60)
            if killed == "application":
                app.kill()
                app = App(broker, classes, tmp_path, *configs)
            else:
                broker.kill()
                broker.start()
        expect_exact_end(feed, counts, app, 60)
    finally:
        feed.stopping.set()
        app.kill()
    print(f"{feed.sent.total()} words")


def expect_exact_end(feed, counts, app, seconds):
    """It still counts, and in the end all that was sent, once."""
    counts.read(counts.total() + 100, seconds)
    feed.stop()
    counts.expect(feed.sent)
    app.close()


@pytest.mark.long
def test_counts_are_exact_though_the_broker_is_away_longer_than_all_timeouts(broker, classes, tmp_path):
    """Members are missed and transactions aborted when it is back, while their owners come back, too."""
    feed, counts = Feed(broker.bootstrap, seed=3), Counts(broker.bootstrap)
    app = App(broker, classes, tmp_path, "session.timeout.ms=6000", "transaction.timeout.ms=5000")
    feed.start()
    try:
        for _ in range(4):
            counts.read(counts.total() + 100, 90)
            broker.kill()
            time.sleep(8)  # the outage
            broker.start()
        expect_exact_end(feed, counts, app, 90)
    finally:
        feed.stopping.set()
        app.kill()


def test_application_reset_lets_it_count_again(broker, classes, tmp_path):
    feed, counts = Feed(broker.bootstrap, seed=2), Counts(broker.bootstrap)
    app = App(broker, classes, tmp_path)
    feed.start()
    counts.read(50, 60)
    feed.stop()
    counts.expect(feed.sent)
    app.close()

    def topics():
        with Connection(broker.bootstrap) as connection:
            answer = connection.call("Metadata", 12, {"topics": None, "allow_auto_topic_creation": False})
            return {topic["name"] for topic in answer["topics"] if not topic["is_internal"]}
    internal = {"word-count-seen-changelog", "word-count-seen-repartition"}
    assert topics() == {"words", "counts"} | internal
    done = subprocess.run(apache.tool_command(
        "kafka-streams-application-reset", "--bootstrap-server", broker.bootstrap, "--application-id",
        "word-count", "--input-topics", "words", "--force"), capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    assert topics() == {"words", "counts"}

    counts.seen.clear()
    app = App(broker, classes, tmp_path)
    counts.expect(feed.sent)
    app.close()
