"""Fixtures of the group suites."""

import pathlib
import sys

import apache
import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import members  # noqa: E402
from kafka_wire.connection import Connection  # noqa: E402

# Sessions of a second, so that a test need not wait for six; no pause before a first assignment.
SETTINGS = {"group.min.session.timeout.ms": "500", "group.initial.rebalance.delay.ms": "0",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}


@pytest.fixture(scope="session")
def member_classes(tmp_path_factory):
    return apache.javac(HERE / "Members.java", tmp_path_factory.mktemp("members"))


@pytest.fixture
def broker(kaas_factory):
    return kaas_factory(SETTINGS)


@pytest.fixture
def group(broker, member_classes, tmp_path):
    """Members against the test's broker."""
    found = members.Members(member_classes, broker.bootstrap, tmp_path / "members.log")
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture
def topic(broker):
    def make(name, partitions):
        with Connection(broker.bootstrap) as connection:
            answer = connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [{
                "name": name, "num_partitions": partitions, "replication_factor": 1}]})
            assert answer["topics"][0]["error_code"] == 0, answer
        return name
    return make
