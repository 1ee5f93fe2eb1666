"""The real broker on a file system that does harm (chaosfs.cc), under load.

Every test ends with a power cut, which loses all that was not synced; then what was acknowledged and what a
consumer has seen must be there. No test restarts a broker to heal it.
"""

import contextlib
import resource
import subprocess
import threading

import confluent_kafka
import pytest
from asking import health, until
from broker import binary
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_wire.connection import Connection
from ledger import Writer, expect_complete, read_all
from steps import power_cut, refusals, rounds

pytestmark = pytest.mark.timeout(600)
TOPIC = "ledger"
REQUEST_TIMED_OUT = 7
KAFKA_STORAGE_ERROR = 56
LOGS = f"*/{TOPIC}.*.log"
PARTITION = f"*/{TOPIC}.*"


def start(chaos, kaas_factory, **more):
    return kaas_factory({"log.dirs": str(chaos.mountpoint / "data"), "kaas.fsync.max.latency.ms": "1000", **more})


@pytest.fixture
def broker(chaos, kaas_factory):
    return start(chaos, kaas_factory)


@pytest.fixture
def plain_broker(chaos, kaas_factory):
    """Without a journal each batch syncs its segment; with one, that follows up to 5 s later."""
    return start(chaos, kaas_factory, **{"kaas.journal": "off"})


def epochs(chaos):
    """The epochs that have written the partition."""
    return {p.name for p in (chaos.home / "backing" / "data").glob(f"{TOPIC}.*/0/*") if p.is_dir()}


class Reader(threading.Thread):
    """Follows the partition and keeps what it saw."""

    def __init__(self, bootstrap):
        super().__init__()
        self.seen = {}  # offset: number
        self.stopping = threading.Event()
        self.consumer = confluent_kafka.Consumer({
            "bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False,
            "auto.offset.reset": "error", "fetch.wait.max.ms": 50, "reconnect.backoff.max.ms": 200})
        self.consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])

    def run(self):
        while not self.stopping.is_set():
            for message in self.consumer.consume(100, timeout=0.1):
                if message.error() is None:
                    self.seen[message.offset()] = int(message.value())
        self.consumer.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.join()


@contextlib.contextmanager
def load(broker, idempotent=True):
    """A writer and a reader at work; both have stopped at the end."""
    with Writer(broker.bootstrap, TOPIC, idempotent) as writer:
        writer.await_acknowledgement()  # now there is a topic to read
        with Reader(broker.bootstrap) as reader:
            until(lambda: reader.seen, "the reader sees something")
            yield writer, reader


def expect_nothing_lost(chaos, broker, writer, reader, idempotent=True):
    """After the writer has stopped."""
    power_cut(chaos, broker)
    at = expect_complete(broker.bootstrap, TOPIC, writer, idempotent)
    changed = [o for o, number in reader.seen.items() if at.get(o) != number]
    assert not changed, f"{len(changed)} records that were read have changed or are gone: {changed[:5]}"
    check = subprocess.run([binary(), "log", "check", chaos.mountpoint / "data"], capture_output=True,
                           text=True, check=False)
    assert check.returncode == 0, check.stdout + check.stderr


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_a_power_cut_loses_nothing_that_was_acknowledged_or_read(chaos, broker, request, idempotent):
    with load(broker, idempotent) as (writer, reader):
        for _ in range(rounds(request, 4, 60)):
            writer.await_acknowledgement()
            writer.await_acknowledgement()
            power_cut(chaos, broker)
        writer.await_acknowledgement()
    expect_nothing_lost(chaos, broker, writer, reader, idempotent)


@pytest.mark.parametrize("fault", [
    f"fail fsync EIO 1 {LOGS}",
    f"fail write EIO 1 {LOGS}",
    f"fail write ENOSPC 1 {LOGS}",
    f"fail write EDQUOT 1 {LOGS}",
    f"fail fsyncdir EIO 1 {PARTITION}",
    f"fail create EMFILE 1 {PARTITION}",
], ids=["fsync", "write", "space", "quota", "fsyncdir", "open"])
def test_a_failed_call_costs_an_epoch_and_no_record(chaos, plain_broker, request, fault):
    with load(plain_broker) as (writer, reader):
        for _ in range(rounds(request, 2, 8)):  # the pauses between epochs grow to 30 s
            before = epochs(chaos)
            if "fsyncdir" in fault or "create" in fault:  # only a new epoch makes names
                chaos.tell(f"fail fsync EIO 1 {LOGS}")
            chaos.tell(fault)
            until(lambda before=before: epochs(chaos) > before, "a new epoch")
            writer.await_acknowledgement()
            chaos.tell("clear")
            writer.await_acknowledgement()
    expect_nothing_lost(chaos, plain_broker, writer, reader)


def test_short_writes_are_gone_on_with(chaos, broker):
    with load(broker) as (writer, reader):
        before = epochs(chaos)
        chaos.tell(f"short 20 {LOGS}")
        for _ in range(30):
            writer.await_acknowledgement()
        assert epochs(chaos) == before
    expect_nothing_lost(chaos, broker, writer, reader)


def test_a_full_volume_heals_when_there_is_space(chaos, broker, request):
    with load(broker) as (writer, reader):
        for _ in range(rounds(request, 1, 6)):
            writer.await_acknowledgement()
            for operation in ("write", "create", "mkdir"):
                chaos.tell(f"fail {operation} ENOSPC -1 {PARTITION}")
            until(lambda: health(broker)["status"] != "ok", "the broker says that it is not well")
            known, tried = len(writer.acknowledged), refusals(chaos)
            until(lambda: refusals(chaos) >= tried + 2, "what retries, does so more than once")
            assert health(broker)["status"] != "ok"
            assert len(writer.acknowledged) == known, "acknowledged on a full volume"
            chaos.tell("clear")
            writer.await_acknowledgement()
            until(lambda: health(broker)["status"] == "ok", "the broker is well again")
    expect_nothing_lost(chaos, broker, writer, reader)


def delete_records(broker, before):
    with Connection(broker.bootstrap) as connection:
        answer = connection.call("DeleteRecords", 2, {"timeout_ms": 30000, "topics": [
            {"name": TOPIC, "partitions": [{"partition_index": 0, "offset": before}]}]})
    assert answer["topics"][0]["partitions"][0]["error_code"] == 0, answer


def log_start(broker):
    with Connection(broker.bootstrap) as connection:
        answer = connection.call("ListOffsets", 7, {"replica_id": -1, "isolation_level": 0, "topics": [
            {"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -2}]}]})
    return answer["topics"][0]["partitions"][0]["offset"]


@pytest.mark.parametrize(("retention_ms", "restarts"), [(-1, False), (-1, True), (30000, False)],
                         ids=["delete", "restart-delete", "retention"])
def test_a_volume_filled_by_producing_heals_by_itself(chaos, kaas_factory, retention_ms, restarts):
    chaos.tell(f"size {100 << 20}")
    broker = start(chaos, kaas_factory, **{"log.retention.check.interval.ms": "1000"})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, config={
        "segment.bytes": "1048576", "file.delete.delay.ms": "100", "retention.ms": str(retention_ms)})])[TOPIC].result(30)
    with Writer(broker.bootstrap, TOPIC, idempotent=True, bulk_bytes=50_000) as writer:
        writer.await_acknowledgement()
        before = epochs(chaos)
        until(lambda: health(broker)["full_volumes"] == ["default"], "the volume is full")
        assert health(broker)["status"] == "degraded"
        if restarts:
            power_cut(chaos, broker)
        known = len(writer.acknowledged)
        assert len(read_all(broker.bootstrap, TOPIC)) >= known, "a full volume is read on"
        if retention_ms == -1:
            delete_records(broker, known // 2)
        until(lambda: log_start(broker) > 0, "records go")
        until(lambda: health(broker)["full_volumes"] == [], "there is room again")
        until(lambda: len(writer.acknowledged) > known + 50, "producing goes on")
        chaos.tell("size 0")
    if not restarts:
        assert epochs(chaos) == before, "a refused batch costs no epoch"
    power_cut(chaos, broker)
    at = dict(read_all(broker.bootstrap, TOPIC))
    first = min(at)
    assert first > 0
    lost = [n for n, offset in writer.acknowledged.items() if offset >= first and at.get(offset) != n]
    assert not lost, lost[:5]
    assert list(at.values()) == list(range(writer.sent))[-len(at):], "lost, doubled or out of order"


def test_a_move_to_a_full_volume_is_refused_and_begins_when_there_is_space(chaos, kaas_factory, tmp_path):
    full = str(chaos.mountpoint / "data")
    broker = kaas_factory({"log.dirs": f"{tmp_path / 'home'},{full}"})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("moved", 2)])["moved"].result(30)
    with Connection(broker.bootstrap) as connection:
        def directories():
            answer = connection.call("DescribeLogDirs", 4, {"topics": None})
            return {partition["partition_index"]: result["log_dir"] for result in answer["results"]
                    for topic in result["topics"] for partition in topic["partitions"]}

        def move(partition):
            answer = connection.call("AlterReplicaLogDirs", 2, {"dirs": [
                {"path": full, "topics": [{"name": "moved", "partitions": [partition]}]}]})
            return answer["results"][0]["partitions"][0]["error_code"]
        there, = (partition for partition, place in directories().items() if place == full)
        for operation in ("write", "create", "mkdir"):
            chaos.tell(f"fail {operation} ENOSPC -1 *")
        assert move(1 - there) == KAFKA_STORAGE_ERROR
        assert move(there) == 0, "it is there already"
        chaos.tell("clear")
        assert move(1 - there) == 0
        until(lambda: set(directories().values()) == {full}, "the partition has moved")


def create(broker, topic):
    """Whether the topic was made; a refusal must be one that clients repeat."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    try:
        admin.create_topics([NewTopic(topic, 1)], operation_timeout=10)[topic].result(30)
    except confluent_kafka.KafkaException as error:
        assert error.args[0].code() == confluent_kafka.KafkaError.NOT_CONTROLLER, error
        return False
    return True


def reigns(chaos):
    return len(list((chaos.home / "backing" / "data" / "__cluster" / "election").iterdir()))


@pytest.mark.parametrize(("error", "operations"), [
    ("ENOSPC", ("write", "create", "mkdir")),
    ("EDQUOT", ("write", "create", "mkdir")),
    ("EROFS", ("write", "create", "mkdir", "unlink", "rmdir", "rename", "fsync")),
], ids=["full", "over-quota", "read-only"])
def test_a_volume_that_takes_nothing_for_a_while_ends_no_process(chaos, broker, error, operations):
    with load(broker) as (writer, reader):
        first, before = reigns(chaos), epochs(chaos)
        for operation in operations:
            chaos.tell(f"fail {operation} {error} -1 *")
        assert not create(broker, "refused")
        until(lambda: health(broker)["partitions_offline"] == 1 and not health(broker)["is_controller"],
              "the broker has noticed")
        known, tried = len(writer.acknowledged), refusals(chaos)
        until(lambda: refusals(chaos) >= tried + 6, "controller and partition ask the volume again and again")
        assert not create(broker, "refused")
        assert len(writer.acknowledged) == known, "acknowledged on a volume that takes nothing"
        if error != "EROFS":
            assert len(read_all(broker.bootstrap, TOPIC)) >= known, "a full volume is read on"
        assert reigns(chaos) == first and epochs(chaos) == before, "attempts that could only fail"
        chaos.tell("clear")
        until(lambda: create(broker, "made"), "topics can be made again")
        writer.await_acknowledgement()
        until(lambda: health(broker)["status"] == "ok", "the broker is well again")
        assert broker.process.poll() is None
        assert reigns(chaos) <= first + 2
    expect_nothing_lost(chaos, broker, writer, reader)


def test_a_process_without_descriptors_goes_on_when_it_has_some(chaos, broker):
    with load(broker) as (writer, reader):
        soft, hard = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (3, hard))
        chaos.tell(f"fail fsync EIO 1 {LOGS}")
        until(lambda: "takes no writes" in broker.log(), "the log has failed, and a trial of the volume")
        assert broker.process.poll() is None
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (soft, hard))
        writer.await_acknowledgement()
        until(lambda: health(broker)["status"] == "ok", "the broker is well again")
        assert create(broker, "made")
    expect_nothing_lost(chaos, broker, writer, reader)


@pytest.mark.parametrize("operation", ["fsync", "write"])
def test_a_hang_is_told_and_heals(chaos, broker, request, operation):
    with load(broker) as (writer, reader):
        for _ in range(rounds(request, 1, 20)):
            writer.await_acknowledgement()
            chaos.tell(f"hang {operation} {LOGS}")
            until(lambda: health(broker)["status"] == "stalled", "the stall shows")
            assert broker.process.poll() is None
            chaos.tell("clear")
            writer.await_acknowledgement()
            until(lambda: health(broker)["status"] == "ok", "the broker is well again")
    expect_nothing_lost(chaos, broker, writer, reader)


def test_a_deletion_behind_a_hang_is_answered_in_its_time(chaos, broker):
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for value in ("a", "b"):
        producer.produce("cut-short", value)
    assert producer.flush(30) == 0
    with Connection(broker.bootstrap) as connection:
        def delete(before):
            answer = connection.call("DeleteRecords", 2, {"timeout_ms": 1000, "topics": [
                {"name": "cut-short", "partitions": [{"partition_index": 0, "offset": before}]}]})
            return answer["topics"][0]["partitions"][0]
        assert delete(1) == {"partition_index": 0, "low_watermark": 1, "error_code": 0}
        chaos.tell("hang fsync */cut-short.*")
        assert delete(2)["error_code"] == REQUEST_TIMED_OUT
        chaos.tell("clear")
        until(lambda: delete(2)["low_watermark"] == 2, "the deletion is done")
