"""Apache's own console tools against kaas, each with the words that show that it did its work."""

import json
import re
import subprocess

import apache
import broker
import pytest
from kafka_wire import codec

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def tool(kaas_or_other, tools):
    def run(name, *arguments, input=None, fails=False):
        server = ["--bootstrap-server", kaas_or_other.bootstrap]
        # It belongs to the verb in one, and comes before it in another.
        words = [*arguments, *server] if name == "kafka-cluster" else [*server, *arguments]
        if input is None:
            code, printed = tools.run(name, *words)
        else:
            done = subprocess.run(apache.tool_command(name, *words), input=input, capture_output=True,
                                  text=True, timeout=90, check=False)
            code, printed = done.returncode, done.stdout + done.stderr
        assert (code != 0) == fails, printed
        return printed
    return run


def test_topics_are_created_described_grown_and_deleted(tool):
    tool("kafka-topics", "--create", "--topic", "life", "--partitions", "3",
         "--config", "retention.ms=86400000")
    assert "life" in tool("kafka-topics", "--list").split()
    described = tool("kafka-topics", "--describe", "--topic", "life")
    assert "PartitionCount: 3" in described and "retention.ms=86400000" in described
    assert len(re.findall(r"Partition: \d+\s+Leader: 1\s+Replicas: 1\s+Isr: 1", described)) == 3
    tool("kafka-topics", "--alter", "--topic", "life", "--partitions", "5")
    assert "PartitionCount: 5" in tool("kafka-topics", "--describe", "--topic", "life")
    tool("kafka-topics", "--delete", "--topic", "life")
    assert "life" not in tool("kafka-topics", "--list").split()


def test_topics_refuses_what_apache_refuses(tool):
    tool("kafka-topics", "--create", "--topic", "twice")
    assert "already exists" in tool("kafka-topics", "--create", "--topic", "twice", fails=True)
    assert "retention.mss" in tool("kafka-topics", "--create", "--topic", "typo",
                                   "--config", "retention.mss=1", fails=True)


def test_the_quorum_is_described(tool):
    status = tool("kafka-metadata-quorum", "describe", "--status")
    assert re.search(r"LeaderId:\s+1$", status, re.M) and re.search(r"MaxFollowerLag:\s+0$", status, re.M)
    assert re.search(r"CurrentObservers:\s+\[\]$", status, re.M)
    replication = tool("kafka-metadata-quorum", "describe", "--replication", "--human-readable")
    assert re.search(r"^1\s.*\sms ago\s.*Leader\s*$", replication, re.M), replication


def test_configs_are_described(tool):
    tool("kafka-topics", "--create", "--topic", "conf", "--config", "cleanup.policy=compact")
    topic = tool("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", "conf")
    assert "cleanup.policy=compact" in topic and "DYNAMIC_TOPIC_CONFIG" in topic
    everything = tool("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", "conf",
                      "--all")
    assert "segment.bytes=1073741824" in everything
    broker = tool("kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all")
    assert re.search(r"log\.flush\.interval\.messages=1 ", broker)


def test_broker_api_versions_lists_each_served_api(tool):
    shown = tool("kafka-broker-api-versions")
    for api in codec.protocol().apis:
        if api.since:
            row = re.search(rf"\b{api.name}\({api.key}\): (?:\d+ to )?(\d+) \[usable: \d+\]", shown)
            assert row, f"{api.name} is not usable:\n{shown}"
            assert int(row[1]) == api.request.stable.high


def test_cluster_id_is_told(tool):
    assert re.search(r"Cluster ID: [\w-]{22}", tool("kafka-cluster", "cluster-id"))


def test_producer_perf_test_then_offsets(tool):
    tool("kafka-topics", "--create", "--topic", "perf", "--partitions", "2")
    out = tool("kafka-producer-perf-test", "--topic", "perf", "--num-records", "20000", "--record-size",
               "100", "--throughput", "-1", "--producer-props", "acks=all", "compression.type=lz4")
    assert "20000 records sent" in out
    latest = tool("kafka-get-offsets", "--topic", "perf")
    assert sum(int(line.split(":")[2]) for line in latest.splitlines() if line.startswith("perf:")) == 20000
    earliest = tool("kafka-get-offsets", "--topic", "perf", "--time", "earliest")
    assert [line.split(":")[2] for line in earliest.splitlines() if line.startswith("perf:")] == ["0", "0"]


def test_a_consumer_reads_from_an_offset_and_from_the_end(tool):
    tool("kafka-topics", "--create", "--topic", "read")
    tool("kafka-console-producer", "--topic", "read", input="a\nb\nc\nd\n")
    assert tool("kafka-console-consumer", "--topic", "read", "--partition", "0", "--offset", "2",
                "--max-messages", "2", "--timeout-ms", "30000").split()[:2] == ["c", "d"]


def test_offsets_by_time(tool):
    tool("kafka-topics", "--create", "--topic", "times")
    tool("kafka-console-producer", "--topic", "times", input="a\nb\n")
    assert "times:0:0" in tool("kafka-get-offsets", "--topic", "times", "--time", "1")
    newest = tool("kafka-get-offsets", "--topic", "times", "--time", "max-timestamp")
    assert re.search(r"times:0:[01]\b", newest)


def test_records_are_deleted(tool, tmp_path):
    for topic in ("trim", "empty"):
        tool("kafka-topics", "--create", "--topic", topic)
        tool("kafka-producer-perf-test", "--topic", topic, "--num-records", "50", "--record-size", "10",
             "--throughput", "-1", "--producer-props", "acks=all")
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [
        {"topic": "trim", "partition": 0, "offset": 7}, {"topic": "empty", "partition": 0, "offset": -1}]}))
    deleted = tool("kafka-delete-records", "--offset-json-file", str(plan))
    assert "partition: trim-0\tlow_watermark: 7" in deleted
    assert "partition: empty-0\tlow_watermark: 50" in deleted
    earliest = tool("kafka-get-offsets", "--time", "earliest")
    assert "trim:0:7" in earliest and "empty:0:50" in earliest
    read = tool("kafka-console-consumer", "--topic", "trim", "--partition", "0", "--offset", "earliest",
                "--max-messages", "1", "--property", "print.offset=true")
    assert "Offset:7" in read


def test_producers_are_described(tool):
    tool("kafka-topics", "--create", "--topic", "known")
    tool("kafka-producer-perf-test", "--topic", "known", "--num-records", "10", "--record-size", "10",
         "--throughput", "-1", "--producer-props", "acks=all", "enable.idempotence=true")
    shown = tool("kafka-transactions", "describe-producers", "--topic", "known", "--partition", "0")
    header, row = [line.split() for line in shown.splitlines() if line.startswith("ProducerId") or
                   re.match(r"\d+\s", line)]
    producer = dict(zip(header, row))
    assert producer["ProducerEpoch"] == "0" and int(producer["LastSequence"]) == 9


def test_log_dirs_are_described(tools, tmp_path):
    directories = [str(tmp_path / name) for name in ("one", "two")]
    kaas = broker.Broker(tmp_path, {"log.dirs": ",".join(directories)}).start()
    try:
        def tool(name, *arguments):
            code, printed = tools.run(name, "--bootstrap-server", kaas.bootstrap, *arguments)
            assert code == 0, printed
            return printed
        tool("kafka-topics", "--create", "--topic", "dirs", "--partitions", "4")
        tool("kafka-producer-perf-test", "--topic", "dirs", "--num-records", "1000", "--record-size", "100",
             "--throughput", "-1", "--producer-props", f"bootstrap.servers={kaas.bootstrap}")
        shown = tool("kafka-log-dirs", "--describe", "--topic-list", "dirs")
        described = json.loads(shown.splitlines()[-1])["brokers"][0]["logDirs"]
        assert sorted(entry["logDir"] for entry in described) == directories
        assert [entry["error"] for entry in described] == [None, None]
        assert [len(entry["partitions"]) for entry in described] == [2, 2], "on the least used"
        logs = [log for entry in described for log in entry["partitions"]]
        assert {log["partition"] for log in logs} == {f"dirs-{i}" for i in range(4)}
        assert sum(log["size"] for log in logs) > 100_000
        assert all(log["offsetLag"] == 0 and not log["isFuture"] for log in logs)
        kaas.stop()
    finally:
        kaas.kill()
