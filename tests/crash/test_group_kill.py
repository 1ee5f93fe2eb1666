"""kill -9 under a consumer group: its members go on without a rebalance, and no committed offset is lost.

Kill -9 keeps the page cache, so this tests the takeover of slots, not fsync; for that, tests/chaos cuts the power.
"""

import threading
import time

import pytest
from kafka_wire.connection import Closed, Connection

ROUNDS = 4
LONG_ROUNDS = 40
TOPIC = "orders"
pytestmark = pytest.mark.timeout(600)

# Clients ask again: the coordinator is loading, not available, or another.
PASSING = {14, 15, 16}


class Client:
    """A connection that comes back, and asks again while the coordinator is on its way."""

    def __init__(self, kaas):
        self.kaas = kaas
        self.connection = None

    def call(self, api: str, version: int, body: dict, error=lambda answer: answer["error_code"]) -> dict:
        deadline = time.monotonic() + 60
        while True:
            try:
                if self.connection is None:
                    self.connection = Connection(self.kaas.bootstrap)
                answer = self.connection.call(api, version, body)
                if error(answer) not in PASSING:
                    return answer
            except (Closed, OSError):
                self.connection = None
            assert time.monotonic() < deadline, f"{api} gets no answer"
            time.sleep(0.01)

    def coordinate(self, group: str) -> None:
        self.call("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": [group]},
                  lambda a: a["coordinators"][0]["error_code"])


class Member(Client):
    """One member of a group."""

    def __init__(self, kaas, group: str, instance: str | None = None):
        super().__init__(kaas)
        self.group = {"group_id": group}
        self.identity = {"member_id": "", "group_instance_id": instance}
        self.generation = -1

    def join(self) -> dict:
        body = {**self.group, "session_timeout_ms": 45000, "rebalance_timeout_ms": 60000,
                "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b"m"}]}
        answer = self.call("JoinGroup", 9, body | self.identity)
        if answer["error_code"] == 79:  # MEMBER_ID_REQUIRED
            self.identity["member_id"] = answer["member_id"]
            answer = self.call("JoinGroup", 9, body | self.identity)
        assert answer["error_code"] == 0, answer
        self.identity["member_id"] = answer["member_id"]
        self.generation = answer["generation_id"]
        return answer

    def sync(self, *assignments: tuple[str, bytes]) -> bytes:
        answer = self.call("SyncGroup", 5, {
            **self.group, **self.identity, "generation_id": self.generation, "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": m, "assignment": a} for m, a in assignments]})
        assert answer["error_code"] == 0, answer
        return answer["assignment"]

    def heartbeat(self) -> int:
        return self.call("Heartbeat", 4, {**self.group, **self.identity, "generation_id": self.generation})[
            "error_code"]

    def commit(self, offset: int) -> None:
        answer = self.call("OffsetCommit", 8, {
            **self.group, **self.identity, "generation_id_or_member_epoch": self.generation,
            "topics": [{"name": TOPIC, "partitions": [
                {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}]}]},
            lambda a: a["topics"][0]["partitions"][0]["error_code"])
        assert answer["topics"][0]["partitions"][0]["error_code"] == 0, answer

    def committed(self) -> int:
        answer = self.call("OffsetFetch", 8, {
            "groups": [{**self.group, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}]},
            lambda a: a["groups"][0]["error_code"])
        return answer["groups"][0]["topics"][0]["partitions"][0]["committed_offset"]


def rounds_of(request) -> int:
    return LONG_ROUNDS if request.config.getoption("--long") else ROUNDS


def prepare(kaas, group: str) -> None:
    client = Client(kaas)
    client.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [
        {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}]}, lambda a: 0)
    client.coordinate(group)


@pytest.mark.parametrize("instance", [None, "static-1"], ids=["dynamic", "static"])
def test_a_member_goes_on_after_kill_9_without_a_rebalance(kaas_factory, request, instance):
    kaas = kaas_factory({"group.initial.rebalance.delay.ms": "0"})
    prepare(kaas, "g")
    member = Member(kaas, "g", instance)
    member.join()
    assert member.sync((member.identity["member_id"], b"all of it")) == b"all of it"
    for offset in range(rounds_of(request)):
        member.commit(offset)
        kaas.kill()
        kaas.start()
        assert member.heartbeat() == 0
        assert member.sync() == b"all of it"
        assert member.committed() == offset


def test_no_acknowledged_commit_is_lost_by_kill_9(kaas_factory, request):
    kaas = kaas_factory({"group.initial.rebalance.delay.ms": "0"})
    groups = [f"g{i}" for i in range(8)]
    prepare(kaas, groups[0])
    acknowledged = dict.fromkeys(groups, -1)
    sent = dict.fromkeys(groups, -1)
    stopping = threading.Event()

    def hammer(group: str) -> None:
        member = Member(kaas, group)
        member.join()
        member.sync((member.identity["member_id"], b"a"))
        while not stopping.is_set():
            sent[group] += 1
            member.commit(sent[group])
            acknowledged[group] = sent[group]

    threads = [threading.Thread(target=hammer, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    try:
        for _ in range(rounds_of(request)):
            seen = dict(acknowledged)
            deadline = time.monotonic() + 60
            while not all(acknowledged[group] > seen[group] + 1 for group in groups):
                assert time.monotonic() < deadline and all(t.is_alive() for t in threads), acknowledged
                time.sleep(0.005)
            before = dict(acknowledged)
            kaas.kill()
            kaas.start()
            for group in groups:
                found = Member(kaas, group).committed()
                assert before[group] <= found <= sent[group]
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    for group in groups:
        assert Member(kaas, group).committed() == acknowledged[group]
