"""Members of consumer groups that ask as a client does, in plain requests, and the book of what they were told."""

import threading
import time

from asking import PASSING, until
from kafka_wire.connection import Closed, Connection

TOPIC = "orders"


class Client:
    """A connection that comes back, and asks again while the coordinator is on its way."""

    def __init__(self, kaas):
        self.kaas = kaas
        self.connection = None

    def call(self, api: str, version: int, body: dict, error=lambda answer: answer["error_code"]) -> dict:
        return until(lambda: self.call_once(api, version, body), api, lambda answer: error(answer) not in PASSING)

    def call_once(self, api: str, version: int, body: dict) -> dict:
        try:
            if self.connection is None:
                self.connection = Connection(self.kaas.bootstrap)
            return self.connection.call(api, version, body)
        except (Closed, OSError):
            self.connection = None
            raise

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

    def join_request(self) -> dict:
        return {**self.group, **self.identity, "session_timeout_ms": 45000, "rebalance_timeout_ms": 60000,
                "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b"m"}]}

    def first_id(self) -> str:
        """The id that a dynamic member has to come back with."""
        answer = self.call("JoinGroup", 9, self.join_request())
        assert answer["error_code"] == 79, answer  # MEMBER_ID_REQUIRED
        return answer["member_id"]

    def join(self) -> dict:
        if not self.identity["member_id"] and self.identity["group_instance_id"] is None:
            self.identity["member_id"] = self.first_id()
        answer = self.call("JoinGroup", 9, self.join_request())
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


def prepare(kaas, group: str) -> None:
    """The topic, and the slots of groups."""
    client = Client(kaas)
    client.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [
        {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}]}, lambda a: 0)
    client.coordinate(group)


class Committers:
    """Groups of one member each, which commit one offset after the other until the end of the block."""

    def __init__(self, kaas, count: int):
        self.kaas = kaas
        self.groups = [f"g{i}" for i in range(count)]
        self.sent = dict.fromkeys(self.groups, -1)
        self.acknowledged = dict.fromkeys(self.groups, -1)
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(group,)) for group in self.groups]

    def run(self, group: str) -> None:
        member = Member(self.kaas, group)
        member.join()
        member.sync((member.identity["member_id"], b"a"))
        while not self.stopping.is_set():
            self.sent[group] += 1
            member.commit(self.sent[group])
            self.acknowledged[group] = self.sent[group]

    def __enter__(self):
        prepare(self.kaas, self.groups[0])
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def await_commits(self, count: int = 2, groups=None, seconds: float = 60) -> None:
        """Until each group has committed so many more."""
        groups = groups or self.groups
        seen = dict(self.acknowledged)
        deadline = time.monotonic() + seconds
        while not all(self.acknowledged[group] >= seen[group] + count for group in groups):
            alive = all(thread.is_alive() for thread in self.threads)
            assert alive and time.monotonic() < deadline, (seen, self.acknowledged)
            time.sleep(0.005)

    def expect_all(self, acknowledged: dict) -> None:
        """What was acknowledged is there, or something later that was sent."""
        for group in self.groups:
            found = Member(self.kaas, group).committed()
            assert acknowledged[group] <= found <= self.sent[group], (group, found)
