"""What people ask of a cluster: its status from the volume, its election as Apache's tools ask for it, its metrics."""

import json
import re
import subprocess
import urllib.request

import broker as kaas_broker
import pytest
from asking import until

pytestmark = pytest.mark.timeout(300)
QUICK = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}


def status(cluster, *more):
    """`kaas cluster status` as an object."""
    done = subprocess.run([kaas_broker.binary(), "cluster", "status", "-o", "json", cluster.data, *more],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def states(cluster):
    return {m["broker_id"]: m["state"] for m in status(cluster)["members"]}


def metrics(broker):
    """{series: value}"""
    with urllib.request.urlopen(f"http://127.0.0.1:{broker.health_port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(kaas\S+) (\S+)$", text, re.M)}


def test_status_tells_of_the_living_and_of_those_that_died_or_left(cluster_factory):
    cluster = cluster_factory(3, {**QUICK, "broker.rack": "r1"})
    cluster.create_well("t", partitions=6)
    reigns = cluster.controller()
    now = status(cluster)
    assert states(cluster) == {1: "living", 2: "living", 3: "living"}
    assert now["controller"]["broker_id"] == reigns and now["controller"]["heard"]
    assert now["controller"]["port"] in {
        e["port"] for m in now["members"] if m["broker_id"] == reigns for e in m["endpoints"]}
    assert now["cluster_id"] == cluster.cluster_id() and now["partitions"] == 6
    assert {s["state"] for m in now["members"] for s in m["sessions"]} == {"alive"}
    assert {m["rack"] for m in now["members"]} == {"r1"}
    assert sum(s["leads"] for m in now["members"] for s in m["sessions"]) == 6
    assert now["offline"] == now["moves"] == []

    dead, leaves = (i for i in cluster.brokers if i != reigns)
    cluster.broker(dead).kill()
    until(lambda: states(cluster)[dead], "the dead one is gone", lambda state: state == "gone")
    until(lambda: status(cluster)["offline"], "others have taken over", lambda offline: offline == [])
    cluster.broker(leaves).stop()
    now = status(cluster)
    assert {m["broker_id"]: m["state"] for m in now["members"]} == {reigns: "living", dead: "gone", leaves: "gone"}
    assert now["offline"] == []
    assert {m["broker_id"]: sum(s["leads"] for s in m["sessions"]) for m in now["members"]}[reigns] == 6


def test_status_of_a_cluster_that_has_died_as_a_whole(cluster_factory):
    cluster = cluster_factory(2, QUICK)
    cluster.create_well("t", partitions=4)
    cluster.kill()
    now = status(cluster)
    assert not now["controller"]["heard"]
    text = subprocess.run([kaas_broker.binary(), "cluster", "status", cluster.data],
                          capture_output=True, text=True, timeout=60, check=True).stdout
    assert "NOT HEARD" in text and "broker 1" in text and "broker 2" in text


def test_status_needs_a_volume_of_kaas(tmp_path):
    done = subprocess.run([kaas_broker.binary(), "cluster", "status", tmp_path],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "no volume of kaas" in done.stderr


def quorum(cluster, through=None, topic="__cluster_metadata", version=2):
    return cluster.call("DescribeQuorum", version, {"topics": [
        {"topic_name": topic, "partitions": [{"partition_index": 0}]}]}, through)


def test_the_quorum_is_the_election(cluster_factory):
    cluster = cluster_factory(3, QUICK)
    reigns = cluster.controller()

    def told(through):
        answer = quorum(cluster, through)
        assert answer["error_code"] == 0
        partition, = answer["topics"][0]["partitions"]
        assert partition["error_code"] == 0 and partition["observers"] == []
        assert {n["node_id"] for n in answer["nodes"]} == {v["replica_id"] for v in partition["current_voters"]}
        return partition

    def caught_up():
        partition = told(reigns)
        ends = {v["replica_id"]: v["log_end_offset"] for v in partition["current_voters"]}
        return ends == dict.fromkeys((1, 2, 3), partition["high_watermark"])
    until(caught_up, "all voters have all")
    for node_id in cluster.brokers:  # whoever is asked
        partition = told(node_id)
        assert partition["leader_id"] == reigns
        assert partition["leader_epoch"] == status(cluster)["controller"]["epoch"]
        assert {v["replica_id"] for v in partition["current_voters"]} == {1, 2, 3}
    cluster.broker(reigns).kill()
    later = until(lambda: told(None), "another one reigns", lambda p: p["leader_id"] not in (reigns, -1))
    assert later["leader_epoch"] > partition["leader_epoch"]
    until(lambda: told(None), "the dead one is no voter", lambda p: len(p["current_voters"]) == 2)
    for version in (0, 1):  # which cannot tell where nodes are
        partition, = quorum(cluster, version=version)["topics"][0]["partitions"]
        assert len(partition["current_voters"]) == 2
    unknown, = quorum(cluster, topic="t")["topics"][0]["partitions"]
    assert unknown["error_code"] == 3
    assert unknown["error_message"] == "This server does not host this topic-partition."


def test_metrics_of_a_failover(cluster_factory):
    cluster = cluster_factory(3, QUICK)
    cluster.create_well("t", partitions=9)
    for partition, leader in cluster.leaders("t").items():
        assert cluster.append("t", partition, [b"v"], leader)[0] == 0
    reigns = cluster.controller()
    assert all(metrics(b)["kaas_partitions_without_leader"] == 0 for b in cluster.running)
    assert all(metrics(cluster.broker(i))["kaas_heartbeat_rtt_seconds_count"] > 0
               for i in cluster.brokers if i != reigns)
    assert all(metrics(b)["kaas_session_check_latency_seconds_count"] > 0 for b in cluster.running)

    def stage(name):
        return f'kaas_failover_duration_seconds_count{{stage="{name}"}}'
    dead = next(i for i in cluster.brokers if i != reigns)
    survivors = [i for i in cluster.brokers if i != dead]
    before = {i: metrics(cluster.broker(i)) for i in survivors}
    cluster.broker(dead).kill()
    cluster.await_writable("t")
    after = {i: metrics(cluster.broker(i)) for i in survivors}
    assert after[reigns][stage("detect")] == before[reigns][stage("detect")] + 1
    for name in ("recover", "serve"):
        assert all(after[i][stage(name)] > before[i][stage(name)] for i in survivors), name
    cluster.broker(reigns).kill()
    last, = cluster.running
    until(lambda: metrics(last)[stage("elect")], "it was elected", lambda n: n == 1)
    cluster.await_writable("t")


def test_metrics_of_moves(cluster_factory):
    cluster = cluster_factory(2, QUICK)
    cluster.create_well("t", partitions=1)
    reigns, leads = cluster.controller(), cluster.leaders("t")[0]
    other = 3 - leads
    begun = metrics(cluster.broker(reigns))["kaas_moves_begun_total"]
    answer = cluster.call("AlterPartitionReassignments", 0, {"timeout_ms": 30000, "topics": [
        {"name": "t", "partitions": [{"partition_index": 0, "replicas": [other]}]}]})
    assert answer["responses"][0]["partitions"][0]["error_code"] == 0, answer
    cluster.await_leaders("t", lambda led: led == {other: {0}})
    after = metrics(cluster.broker(reigns))
    assert after["kaas_moves_begun_total"] > begun
    until(lambda: metrics(cluster.broker(reigns)), "the move is done",
          lambda m: m["kaas_moves_done_total"] >= 1
          and m['kaas_moves_under_way{kind="leadership"}'] == 0
          and m['kaas_moves_under_way{kind="reassignment"}'] == 0)


def test_metrics_of_a_broker_that_was_given_up(cluster_factory):
    """Frozen for longer than its session: what it says then is refused, and it finds itself fenced."""
    cluster = cluster_factory(3, QUICK)
    cluster.create_well("t", partitions=6)
    reigns = cluster.controller()
    frozen = cluster.broker(next(i for i in cluster.brokers if i != reigns))
    frozen.freeze()
    until(lambda: states(cluster)[frozen.node_id], "it is given up", lambda state: state == "gone")
    cluster.await_writable("t")
    frozen.thaw()
    until(lambda: metrics(frozen)["kaas_self_fence_events_total"], "it was fenced", lambda n: n >= 1)
    assert metrics(cluster.broker(reigns))['kaas_stale_refusals_total{what="report"}'] >= 1
    cluster.await_members({1, 2, 3})
    old = cluster.broker(reigns)
    old.freeze()
    until(lambda: cluster.controller(), "another one reigns", lambda i: i != reigns)
    old.thaw()
    until(lambda: metrics(old), "its own reign is over",
          lambda m: m['kaas_stale_refusals_total{what="reign"}'] >= 1 and m["kaas_is_controller"] == 0)
    cluster.await_members({1, 2, 3})
