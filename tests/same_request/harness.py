"""Sends the same requests to two brokers and compares what comes back, field by field.

A case is a function that takes a `Subject` (one broker) and asks it things; every answer is noted with a
label. Two transcripts of one case are then normalised (ids, ports, times that differ by nature) and
compared. What differs on purpose stands in differences.tsv with its reason.
"""

import contextlib
import dataclasses
import fnmatch
import pathlib
import re
import time
import uuid

from kafka_wire import batch, codec
from kafka_wire.connection import Closed, Connection

HERE = pathlib.Path(__file__).resolve().parent

CASES = {}

# Seconds. Silence that a case does not expect is waited out for longer than a slow broker needs: it
# would pass for an answer, and be compared.
PATIENCE = 60
EXPECTED_SILENCE = 6


def case(function):
    """Registers a case under its function's name."""
    CASES[function.__name__] = function
    return function


@dataclasses.dataclass
class Subject:
    """One broker under one case: a fresh connection, helpers, and the transcript."""

    address: str
    prefix: str  # makes the topic names of this run unlike those of another run
    transcript: list = dataclasses.field(default_factory=list)
    connection: Connection | None = None

    def open(self) -> Connection:
        if self.connection is None:
            self.connection = Connection(self.address, timeout=PATIENCE)
        return self.connection

    def reopen(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def note(self, label: str, value) -> None:
        self.transcript.append((label, value))

    def name(self, topic: str) -> str:
        return f"{self.prefix}{topic}"

    def ask(self, label: str, api: str, version: int, body: dict | bytes | None = None,
            patience: float = PATIENCE):
        """Notes the answer, or "closed", or "silent" (none for so long); gives the answer or None."""
        try:
            self.open().socket.settimeout(patience)
            answer = self.open().call(api, version, body)
        except Closed:
            answer = "closed"
            self.reopen()
        except TimeoutError:
            answer = "silent"
            self.reopen()
        self.note(label, answer)
        return answer if isinstance(answer, dict) else None

    def ask_all(self, api: str, make) -> None:
        """The same question in every version that the definition knows; `make(version)` gives its body."""
        for version in codec.api(api).request.stable:
            self.ask(f"v{version}", api, version, make(version))

    def quiet(self, api: str, version: int, body: dict) -> dict:
        """An answer that prepares a case and is not compared."""
        return self.open().call(api, version, body)

    def await_answer(self, wanted, api: str, version: int, body: dict) -> dict:
        """Asks until `wanted(answer)`: both brokers do things in the background, at a machine's pace."""
        deadline = time.monotonic() + PATIENCE
        while not wanted(answer := self.quiet(api, version, body)):
            assert time.monotonic() < deadline, f"{api} still answers {answer}"
            time.sleep(0.002)
        return answer

    def send_raw(self, label: str, data: bytes) -> None:
        """Sends bytes as they are; notes whether the connection is closed."""
        connection = self.open()
        connection.socket.sendall(data)
        self.note(label, "closed" if connection.is_closed() else "open")
        self.reopen()

    def topic(self, topic: str = "t", partitions: int = 1, **configs) -> str:
        name = self.name(topic)
        answer = self.quiet("CreateTopics", 7, {"timeout_ms": 30000, "topics": [{
            "name": name, "num_partitions": partitions, "replication_factor": 1,
            "configs": [{"name": k.replace("_", "."), "value": str(v)} for k, v in configs.items()]}]})
        assert answer["topics"][0]["error_code"] in (0, 36), answer
        self.await_leaders(name, partitions)
        return name

    def await_leaders(self, name: str, partitions: int) -> None:
        """Apache answers a create before its leaders serve; a fresh topic would make answers chance."""
        latest = {"replica_id": -1, "topics": [{"name": name, "partitions": [
            {"partition_index": p, "timestamp": -1} for p in range(partitions)]}]}
        self.await_answer(lambda a: all(p["error_code"] == 0 for p in a["topics"][0]["partitions"]),
                          "ListOffsets", 7, latest)

    def topic_id(self, topic: str) -> uuid.UUID:
        return self.quiet("Metadata", 12, {"topics": [{"name": topic}]})["topics"][0]["topic_id"]

    def produce_body(self, topic, records, partition=0, acks=-1, **more) -> dict:
        key = "topic_id" if isinstance(topic, uuid.UUID) else "name"
        return {"acks": acks, "timeout_ms": 10000, **more, "topic_data": [
            {key: topic, "partition_data": [{"index": partition, "records": records}]}]}

    def produce(self, label, topic, records, version=11, patience=PATIENCE, **more):
        if isinstance(records, batch.Batch):
            records = records.build()
        return self.ask(label, "Produce", version, self.produce_body(topic, records, **more), patience)

    def producer(self) -> int:
        """A new producer id; Apache has none at hand for its first askers."""
        return self.await_answer(
            lambda a: a["error_code"] == 0, "InitProducerId", 4,
            {"transactional_id": None, "transaction_timeout_ms": 60000})["producer_id"]

    def fill(self, topic: str, count: int = 3, partition: int = 0, **fields) -> None:
        for i in range(count):
            records = batch.Batch(values=[b"v%d" % i] * 2, **fields).build()
            answer = self.quiet("Produce", 11, self.produce_body(topic, records, partition))
            assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, answer


def fetch_body(topic, offset=0, partition=0, maximum=1 << 20, wait=0, minimum=0, **more) -> dict:
    key = "topic_id" if isinstance(topic, uuid.UUID) else "topic"
    inner = {k: more.pop(k) for k in ("current_leader_epoch", "last_fetched_epoch", "log_start_offset")
             if k in more}
    return {"max_wait_ms": wait, "min_bytes": minimum, "max_bytes": 50 << 20, **more,
            "topics": [{key: topic, "partitions": [{
                "partition": partition, "fetch_offset": offset, "partition_max_bytes": maximum, **inner}]}]}


# --- normalising ---------------------------------------------------------------------------------------

# Ids of members are a name and a random part.
RANDOM_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TEXTS = {"error_message", "batch_index_error_message", "documentation"}
PORTS = {"port"}
TIMES = {"log_append_time_ms", "transaction_start_time_ms"}
# Lists that Apache gives in the order of a hash table, and by what they are put in order here.
UNORDERED = {
    "partition_responses": "index",
    "results_by_topic_v3_and_below": "name",
    "results_by_transaction": "transactional_id",
    "topic_results": "name",
    "results_by_partition": "partition_index",
    "markers": "producer_id",
}


class Normaliser:
    """Replaces what differs by nature; equal things stay equal (the second topic id met is uuid#2)."""

    def __init__(self, prefix: str):
        self.prefix = prefix
        self.seen: dict = {}

    def number(self, kind: str, value) -> str:
        group = self.seen.setdefault(kind, {})
        return f"{kind}#{group.setdefault(value, len(group) + 1)}"

    def value(self, name: str, value):
        if isinstance(value, dict):
            return {k: self.value(k, v) for k, v in value.items()}
        if name == "api_keys":
            # What we do not serve yet is no difference; what we serve must have Apache's versions.
            served = {a.key for a in codec.protocol().apis if a.since}
            return {f"key {v['api_key']}": [v["min_version"], v["max_version"]]
                    for v in value if v["api_key"] in served}
        if isinstance(value, list):
            if name == "configs":  # no order either
                return {v["name"]: self.value("", {k: x for k, x in v.items() if k != "name"})
                        for v in value}
            if name in UNORDERED:
                value = sorted(value, key=lambda v: v[UNORDERED[name]])
            if name == "partitions" and any(isinstance(v, dict) and "low_watermark" in v for v in value):
                value = sorted(value, key=lambda v: v["partition_index"])
            return [self.value(name, v) for v in value]
        if isinstance(value, uuid.UUID):
            return "uuid#0" if value.int == 0 else self.number("uuid", value)
        if name in TEXTS and value is not None:
            return "<text>"
        if name in PORTS:
            return "<port>"
        if name == "cluster_id" and value is not None:
            return "<cluster>"
        if name == "session_id" and value:
            return self.number("session", value)
        if name == "producer_id" and value >= 0:
            return self.number("producer", value)
        if name in TIMES and value > 0:
            return "<time>"
        if name == "records" and value is not None:
            return [self.header(h) for h in batch.headers(value)]
        if isinstance(value, str):
            plain = value.replace(self.prefix, "")
            return RANDOM_ID.sub(lambda found: self.number("id", found[0]), plain)
        return value

    def header(self, header: batch.Header) -> dict:
        fields = dataclasses.asdict(header)
        if fields["attributes"] & 8:  # LogAppendTime: the broker's clock
            fields["max_timestamp"] = fields["crc"] = "<time>"
        if fields["attributes"] & 16:  # of a transaction, whose producer id the broker gave
            fields["producer_id"] = self.number("producer", fields["producer_id"])
            fields["crc"] = "<producer>"
        if fields["attributes"] & 32:  # a marker: the coordinator's clock
            fields["base_timestamp"] = fields["max_timestamp"] = "<time>"
        return fields


def flatten(prefix: str, value, out: dict) -> None:
    if isinstance(value, dict):
        out[prefix + "{}"] = sorted(value)
        for key, inner in value.items():
            flatten(f"{prefix}.{key}", inner, out)
    elif isinstance(value, list):
        out[prefix + "[]"] = len(value)
        for i, inner in enumerate(value):
            flatten(f"{prefix}[{i}]", inner, out)
    else:
        out[prefix] = value


def run(name: str, address: str, prefix: str) -> dict:
    """The flat, normalised transcript of one case on one broker."""
    prefix = f"{prefix}{list(CASES).index(name)}-"
    subject = Subject(address, prefix)
    try:
        CASES[name](subject)
    finally:
        with contextlib.suppress(OSError):
            subject.reopen()
    normaliser = Normaliser(prefix)
    flat: dict = {}
    for i, (label, value) in enumerate(subject.transcript):
        flatten(f"{i}:{label}", normaliser.value(label, value), flat)
    return flat


def differences(apache: dict, kaas: dict) -> list[tuple[str, object, object]]:
    absent = "<absent>"
    paths = list(apache) + [p for p in kaas if p not in apache]
    return [(p, apache.get(p, absent), kaas.get(p, absent)) for p in paths
            if apache.get(p, absent) != kaas.get(p, absent)]


@dataclasses.dataclass
class Listed:
    case: str
    path: str
    reason: str

    def covers(self, case_name: str, path: str) -> bool:
        # Brackets of indexes are plain text here, only * has a meaning.
        pattern = re.sub(r"[\[\]]", lambda m: f"[{m[0]}]", self.path)
        return fnmatch.fnmatchcase(case_name, self.case) and fnmatch.fnmatchcase(path, pattern)


def listed() -> list[Listed]:
    """Known differences: case, path (with *), reason."""
    rows = []
    for line in (HERE / "differences.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            rows.append(Listed(*line.split("\t")))
    return rows
