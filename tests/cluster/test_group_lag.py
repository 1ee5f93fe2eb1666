"""The lag of a group is on its coordinator's /metrics, whichever broker leads a partition."""

import re
import urllib.request

import confluent_kafka
import pytest
from asking import until
from confluent_kafka import TopicPartition

pytestmark = pytest.mark.timeout(120)
PARTITIONS = 6


def lags(broker, group):
    with urllib.request.urlopen(f"http://127.0.0.1:{broker.health_port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    rows = re.findall(r"^kaas_group_lag\{(.*)\} (\d+)$", text, re.M)
    return {int(re.search(r'partition="(\d+)"', labels)[1]): int(lag)
            for labels, lag in rows if f'group="{group}"' in labels}


def test_the_lag_in_partitions_of_every_broker_is_shown(cluster_factory):
    cluster = cluster_factory(3)
    cluster.create_well("lag", PARTITIONS)
    cluster.await_leaders("lag", lambda led: set(led) == set(cluster.brokers))
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap})
    for partition in range(PARTITIONS):
        for _ in range(10 + partition):
            producer.produce("lag", b"v", partition=partition)
    assert producer.flush(60) == 0
    consumer = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "behind"})
    consumer.commit(offsets=[TopicPartition("lag", p, 4) for p in range(PARTITIONS)], asynchronous=False)
    consumer.close()
    coordinator = cluster.broker(cluster.coordinator("behind"))
    until(lambda: lags(coordinator, "behind"), "the lag of each partition",
          lambda shown: shown == {p: 6 + p for p in range(PARTITIONS)})
