"""Consumer groups of each client library: members join, leave, die; the broker is killed. No record is missed.

A member is a process that prints a line of JSON for each assignment ({"assigned": [partitions]}) and each
record ({"partition", "offset", "value"}), commits what it has printed, and leaves upon SIGTERM.
"""

import json
import pathlib
import signal
import subprocess
import sys
import threading
import time

import clients
import confluent_kafka
import pytest
from asking import until
from kafka_wire.connection import Connection

HERE = pathlib.Path(__file__).resolve().parent
PARTITIONS = 4
SESSION_MS = 3000
# With no delay kafka-python may lead a group before it has heard of the topic (it asks 100 ms later), and then assigns
# nothing for ever.
SETTINGS = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "500"}
COMMANDS = {
    # What it asks in, it decides by this version alone.
    "sarama": lambda: [clients.go_binary(), "sarama", "group", "4.0.0"],
    "sarama-0.11": lambda: [clients.go_binary(), "sarama", "group", "0.11.0.0"],
    "kafkajs": lambda: ["node", clients.node_folder() / "group.js"],
    "kafka-python": lambda: [sys.executable, HERE / "group_member.py", "kafka-python"],
    "librdkafka": lambda: [sys.executable, HERE / "group_member.py", "librdkafka"],
}
pytestmark = pytest.mark.timeout(240)


class Member:
    def __init__(self, library, broker, log):
        self.assigned, self.read, self.assignments = [], [], 0
        self.process = subprocess.Popen(
            [str(word) for word in (*COMMANDS[library](), broker.bootstrap, "t", "g", SESSION_MS)],
            stdout=subprocess.PIPE, stderr=log, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if "assigned" in event:
                self.assigned = event["assigned"]
                self.assignments += 1
            elif "value" in event:
                self.read.append((event["partition"], event["offset"]))

    def leave(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0
        self.reader.join(10)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join(10)


class Scene:
    """A topic, what was sent to it, and the members that read it."""

    def __init__(self, broker, library, log):
        self.broker, self.library, self.log = broker, library, log
        self.members, self.sent = [], 0  # in each partition
        self.producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0,
                                                  "reconnect.backoff.max.ms": 200})

    def join(self):
        self.members.append(Member(self.library, self.broker, self.log))
        return self.members[-1]

    def send(self, count):
        for i in range(count):
            for partition in range(PARTITIONS):
                self.producer.produce("t", value=str(self.sent + i), partition=partition)
        assert self.producer.flush(30) == 0
        self.sent += count

    def await_read(self):
        wanted = {(partition, offset) for partition in range(PARTITIONS) for offset in range(self.sent)}
        until(lambda: wanted <= {position for member in self.members for position in member.read},
              f"all of {len(wanted)} read")

    def committed(self):
        with Connection(self.broker.bootstrap) as connection:
            answer = connection.call("OffsetFetch", 8, {"groups": [{"group_id": "g", "topics": None}],
                                                        "require_stable": True})
        [topic] = answer["groups"][0]["topics"]
        return [partition["committed_offset"] for partition in topic["partitions"]]


@pytest.mark.parametrize("library", COMMANDS)
def test_a_groups_life(kaas_factory, tmp_path, library):
    broker = kaas_factory(SETTINGS)
    with Connection(broker.bootstrap) as connection:
        connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [
            {"name": "t", "num_partitions": PARTITIONS, "replication_factor": 1}]})
    with open(tmp_path / "members.log", "wb") as log:
        scene = Scene(broker, library, log)
        try:
            live(broker, scene)
        finally:
            for member in scene.members:
                member.kill()


def live(broker, scene):
    scene.send(10)
    first = scene.join()
    until(lambda: len(first.assigned) == PARTITIONS, "the only member has all")
    scene.await_read()
    second = scene.join()
    until(lambda: len(first.assigned) == len(second.assigned) == PARTITIONS // 2, "two share")
    scene.send(10)
    scene.await_read()

    left = time.monotonic()
    first.leave()
    until(lambda: len(second.assigned) == PARTITIONS, "who stays gets all")
    assert time.monotonic() - left < 30
    scene.send(10)
    scene.await_read()
    until(lambda: scene.committed() == [scene.sent] * PARTITIONS, "all is committed")

    second.kill()
    third = scene.join()
    until(lambda: len(third.assigned) == PARTITIONS, "a dead member's partitions pass on")
    scene.send(10)
    scene.await_read()
    until(lambda: scene.committed() == [scene.sent] * PARTITIONS, "all is committed")
    assert all(offset >= 30 for _, offset in third.read), "what was committed is read again"

    broker.kill()
    broker.start()
    scene.send(10)
    scene.await_read()
    until(lambda: scene.committed() == [scene.sent] * PARTITIONS, "all is committed")
    third.leave()
