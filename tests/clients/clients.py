"""One class a client: how it writes the records of records.py into partition 0, and how it reads them."""

import functools
import json
import pathlib
import shutil
import subprocess
import time

import apache
import records
from broker import ROOT

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 60
# A compiler with an empty cache, on a busy machine; packages over a slow line.
BUILD_SECONDS = 900
BUILD = ROOT / "build" / "clients"


def run(command, seconds=SECONDS + 30, **more) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, timeout=seconds, **more)
    if done.returncode != 0:
        raise AssertionError(f"{command[0]} exits with {done.returncode}\n"
                             f"{done.stdout.decode()[-2000:]}{done.stderr.decode()[-4000:]}")
    return done.stdout.decode()


@functools.cache
def go_binary() -> pathlib.Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    run(["go", "build", "-o", BUILD / "goclients", "."], BUILD_SECONDS, cwd=HERE / "go")
    return BUILD / "goclients"


@functools.cache
def node_folder() -> pathlib.Path:
    """The scripts with their packages beside them, as Node wants it, outside of the sources."""
    folder = BUILD / "node"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", "codecs.js", "consume.js", "group.js", "produce.js"):
        shutil.copy(HERE / "node" / name, folder / name)
    run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], BUILD_SECONDS, cwd=folder)
    return folder


def prepare() -> None:
    """Fetches and builds all that the clients need, so that no test's time pays for it."""
    go_binary()
    node_folder()
    apache.jars()


class Kcat:
    """librdkafka's own tool, Debian's build."""

    name = "kcat"

    def produce(self, broker, topic, codec):
        lines = "".join(f"{records.key(i)}\t{records.value(codec, i)}\n" for i in range(records.COUNT))
        options = [] if codec == "none" else ["-z", codec]
        # One header for all: kcat cannot give each record its own.
        run(["kcat", "-P", "-b", broker, "-t", topic, "-p", 0, "-K", "\t", *options, "-X", "acks=all"],
            input=lines.encode())

    headers = False

    def consume(self, broker, topic, count=records.COUNT):
        out = run(["kcat", "-C", "-b", broker, "-t", topic, "-p", 0, "-o", "beginning", "-c",
                   count, "-q", "-f", '%o\t%k\t%s\t%h\n'])
        return [{"offset": int(o), "key": k, "value": v, "header": h.removeprefix("h=")}
                for o, k, v, h in (line.split("\t") for line in out.splitlines())]


class Go:
    headers = True

    def __init__(self, library):
        self.name = library

    def produce(self, broker, topic, codec):
        run([go_binary(), self.name, "produce", broker, topic, codec, records.COUNT])

    def consume(self, broker, topic, count=records.COUNT):
        out = run([go_binary(), self.name, "consume", broker, topic, count])
        return [json.loads(line) for line in out.splitlines()]


class KafkaJs:
    """Its consumer reads through groups alone: here it reads with its own fetch and batch classes."""

    name = "kafkajs"
    headers = True

    def produce(self, broker, topic, codec):
        run(["node", "produce.js", broker, topic, codec, records.COUNT], cwd=node_folder())

    def consume(self, broker, topic, count=records.COUNT):
        out = run(["node", "consume.js", broker, topic, count], cwd=node_folder())
        return [json.loads(line) for line in out.splitlines()]


class KafkaPython:
    name = "kafka-python"
    headers = True

    def produce(self, broker, topic, codec):
        import kafka
        producer = kafka.KafkaProducer(bootstrap_servers=broker, acks="all", linger_ms=10,
                                       compression_type=None if codec == "none" else codec)
        sent = [producer.send(topic, partition=0, key=records.key(i).encode(),
                              value=records.value(codec, i).encode(),
                              headers=[("h", records.header(i).encode())])
                for i in range(records.COUNT)]
        for future in sent:
            future.get(SECONDS)
        producer.close()

    def consume(self, broker, topic, count=records.COUNT):
        import kafka
        consumer = kafka.KafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False)
        partition = kafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        found, deadline = [], time.monotonic() + SECONDS
        while len(found) < count and time.monotonic() < deadline:
            for batch in consumer.poll(timeout_ms=1000).values():
                found += [{"offset": r.offset, "key": r.key.decode(), "value": r.value.decode(),
                           "header": r.headers[-1][1].decode() if r.headers else ""} for r in batch]
        consumer.close()
        return found


class Confluent:
    """librdkafka, a newer one than kcat's, through confluent-kafka."""

    name = "librdkafka"
    headers = True

    def produce(self, broker, topic, codec):
        import confluent_kafka
        producer = confluent_kafka.Producer({"bootstrap.servers": broker, "linger.ms": 10,
                                             "compression.type": codec, "enable.idempotence": True})
        errors = []
        for i in range(records.COUNT):
            producer.produce(topic, partition=0, key=records.key(i), value=records.value(codec, i),
                             headers=[("h", records.header(i))],
                             on_delivery=lambda error, _: error and errors.append(error))
        assert producer.flush(SECONDS) == 0
        assert not errors, errors

    def consume(self, broker, topic, count=records.COUNT):
        import confluent_kafka
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker, "group.id": "unused",
                                             "enable.auto.commit": False})
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        found, deadline = [], time.monotonic() + SECONDS
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is None:
                continue
            assert message.error() is None, message.error()
            headers = message.headers() or [("", b"")]
            found.append({"offset": message.offset(), "key": message.key().decode(),
                          "value": message.value().decode(), "header": headers[-1][1].decode()})
        consumer.close()
        return found


class Java:
    """Apache's own clients, through the console tools."""

    name = "java"
    headers = True

    def produce(self, broker, topic, codec):
        lines = "".join(f"h:{records.header(i)}\t{records.key(i)}\t{records.value(codec, i)}\n"
                        for i in range(records.COUNT))
        run(apache.tool_command(
            "kafka-console-producer", "--bootstrap-server", broker, "--topic", topic,
            "--compression-codec", codec, "--reader-property", "parse.key=true",
            "--reader-property", "parse.headers=true", "--request-required-acks", "all"),
            input=lines.encode())

    def consume(self, broker, topic, count=records.COUNT):
        out = run(apache.tool_command(
            "kafka-console-consumer", "--bootstrap-server", broker, "--topic", topic,
            "--partition", "0", "--offset", "earliest", "--max-messages", str(count),
            "--timeout-ms", str(SECONDS * 1000), "--formatter-property", "print.key=true",
            "--formatter-property", "print.headers=true", "--formatter-property", "print.offset=true"))
        rows = [line.split("\t") for line in out.splitlines() if "\t" in line]
        return [{"offset": int(o.removeprefix("Offset:")), "key": k, "value": v,
                 "header": "" if h == "NO_HEADERS" else h.removeprefix("h:")} for o, h, k, v in rows]


ALL = [Kcat(), Go("franz"), Go("sarama"), KafkaJs(), KafkaPython(), Confluent(), Java()]
WRITERS = ALL
READERS = [client for client in ALL if hasattr(client, "consume")]
