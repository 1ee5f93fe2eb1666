#!/usr/bin/env python3
"""Records what a real Apache Kafka answers to DescribeConfigs, for the unit test of our answers.

Writes recorded/describe_configs.tsv beside this file; ports and directories of the run are replaced by
fixed ones. Run it again when the version in apache.py changes.
"""

import pathlib
import subprocess
import sys

import apache

HERE = pathlib.Path(__file__).resolve().parent

# One of each kind that is told apart: chains of synonyms, secrets, listener overrides, unknown names.
SETTINGS = {
    "log.retention.minutes": "5000",
    "log.roll.hours": "24",
    "log.flush.scheduler.interval.ms": "70000",
    "log.cleanup.policy": "delete , compact",
    "ssl.keystore.password": "secret",
    "listener.name.plaintext.ssl.key.password": "secret",
    "listener.name.plaintext.max.connections": "5000",
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": "secret",
    "super.users": "User:admin",
    "what.is.this": "unknown",
    "group.consumer.session.timeout.ms": "46000",
}
BROKERS = "log.retention.ms=777777,log.flush.interval.ms=3000,leader.replication.throttled.rate=1000"
BROKER = "log.segment.bytes=2097152,log.flush.interval.ms=4000"
TOPIC = "retention.ms=1000,cleanup.policy=[compact,delete],min.cleanable.dirty.ratio=0.25,flush.messages=5"


def record(node):
    def alter(kind, name, configs):
        entity = ("--entity-default",) if name is None else ("--entity-name", name)
        node.tool("kafka-configs", "--alter", "--entity-type", kind, *entity, "--add-config", configs)

    for topic in ("plain", "own"):
        node.tool("kafka-topics", "--create", "--topic", topic)
    alter("brokers", None, BROKERS)
    alter("brokers", "1", BROKER)
    alter("topics", "own", TOPIC)
    alter("groups", "own", "consumer.session.timeout.ms=47000,share.auto.offset.reset=earliest")
    alter("client-metrics", "own", "interval.ms=1000,match=[client_id=a.*]")
    resources = ("TOPIC/plain", "TOPIC/own", "BROKER/1", "BROKER/", "GROUP/plain", "GROUP/own",
                 "CLIENT_METRICS/own")
    shown = subprocess.run(
        [apache.java(), "-cp", apache.classpath(), str(HERE / "DescribeConfigs.java"), node.bootstrap,
         *resources], capture_output=True, text=True, check=True).stdout
    controller = next(line.split("127.0.0.1:")[1].split("\t")[0] for line in shown.splitlines()
                      if line.split("\t")[1] == "controller.quorum.bootstrap.servers")
    return (shown.replace(f"127.0.0.1:{node.port}", "127.0.0.1:9092")
            .replace(f"127.0.0.1:{controller}", "127.0.0.1:9093")
            .replace(str(node.directory), "/kafka"))


def main():
    with apache.Apache(settings=SETTINGS) as node:
        text = record(node)
    (HERE / "recorded").mkdir(exist_ok=True)
    (HERE / "recorded" / "describe_configs.tsv").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
