"""A transaction that outlives its process is committed by another, by producer id and epoch, as Flink does."""

import pathlib
import subprocess
import time

import apache
import confluent_kafka
import pytest

HERE = pathlib.Path(__file__).resolve().parent
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="session")
def resume_classes(tmp_path_factory):
    return apache.javac(HERE / "Resume.java", tmp_path_factory.mktemp("resume"))


@pytest.fixture
def run(broker, topic, resume_classes):
    topic("t", 2)

    def resume(verb, *words):
        done = subprocess.run(apache.jvm_command("Resume", verb, broker.bootstrap, *words, level="ERROR",
                                                 classes=[resume_classes]),
                              capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()
    return resume


def committed(broker, wanted):
    """What committed readers see, once that is `wanted` or nothing more comes."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader",
                                         "enable.auto.commit": False, "isolation.level": "read_committed"})
    consumer.assign([confluent_kafka.TopicPartition("t", partition, 0) for partition in range(2)])
    found, deadline = [], time.monotonic() + 20
    while len(found) < wanted and time.monotonic() < deadline:
        found += [message.value().decode() for message in consumer.consume(100, timeout=0.2)]
    if not wanted:
        found += [message.value().decode() for message in consumer.consume(1, timeout=2)]
    consumer.close()
    return sorted(found)


@pytest.mark.parametrize("crash", [False, True], ids=["", "broker killed"])
def test_another_process_commits(broker, run, crash):
    identity = run("begin", "flink-1", "t", "one")
    assert committed(broker, 0) == []
    if crash:
        broker.kill()
        broker.start()
    assert run("commit", "flink-1", *identity) == ["committed"]
    assert committed(broker, 2) == ["one", "one"]


def test_a_commit_that_is_repeated_commits_nothing_else(broker, run):
    identity = run("begin", "flink-1", "t", "one")
    assert run("commit", "flink-1", *identity) == ["committed"]
    assert run("commit", "flink-1", *identity) == ["committed"]
    assert run("next", "flink-1", "t", "two") == ["committed"]
    assert committed(broker, 4) == ["one", "one", "two", "two"]


def test_a_new_start_aborts_what_is_open_and_fences_who_would_commit_it(broker, run):
    identity = run("begin", "flink-1", "t", "lost")
    assert run("next", "flink-1", "t", "two") == ["committed"]
    assert run("commit", "flink-1", *identity) == ["ProducerFencedException"]
    assert committed(broker, 2) == ["two", "two"]
