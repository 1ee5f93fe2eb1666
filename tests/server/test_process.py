"""The process as its owner sees it: start, refusal, signals, listeners, health."""

import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

import broker as kaas_broker
import pytest
from group_members import Member, prepare
from kafka_wire.batch import Batch
from kafka_wire.connection import Connection


def serve(*overrides, **more):
    words = [word for setting in overrides for word in ("--override", setting)]
    return subprocess.run([kaas_broker.binary(), "serve", *words], capture_output=True, text=True,
                          timeout=20, **more)


def get(kaas, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{kaas.health_port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_second_start_on_a_live_directory_names_the_pid(kaas):
    done = serve(f"log.dirs={kaas.directory / 'data'}", "listeners=PLAINTEXT://127.0.0.1:0",
                 "kaas.health.listener=")
    assert done.returncode == 1
    assert str(kaas.pid) in done.stderr


def test_sigterm_closes_cleanly_and_the_next_start_has_everything(kaas):
    with Connection(kaas.bootstrap) as connection:
        connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [
            {"name": "kept", "num_partitions": 2, "replication_factor": 1}]})
        before = connection.call("Metadata", 12, {"topics": [{"name": "kept"}]})["topics"][0]
    kaas.stop()
    kaas.start()
    with Connection(kaas.bootstrap) as connection:
        after = connection.call("Metadata", 12, {"topics": [{"name": "kept"}]})["topics"][0]
    assert after["topic_id"] == before["topic_id"]
    assert len(after["partitions"]) == 2


def test_leader_epochs_grow_with_each_life_of_the_broker(kaas):
    def epoch():
        with Connection(kaas.bootstrap) as connection:
            topic = connection.call("Metadata", 12, {"topics": [{"name": "e"}]})["topics"][0]
            return topic["partitions"][0]["leader_epoch"]
    with Connection(kaas.bootstrap) as connection:
        connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [
            {"name": "e", "num_partitions": 1, "replication_factor": 1}]})
    first = epoch()
    kaas.kill()
    kaas.start()
    assert epoch() > first


def test_producer_ids_are_never_issued_twice(kaas):
    seen = []
    for _ in range(3):
        with Connection(kaas.bootstrap) as connection:
            for _ in range(3):
                answer = connection.call("InitProducerId", 4, {"transactional_id": None,
                                                               "transaction_timeout_ms": 1000})
                assert answer["error_code"] == 0
                seen.append(answer["producer_id"])
        kaas.kill()
        kaas.start()
    assert len(set(seen)) == len(seen)


def test_each_listener_is_told_its_own_address(kaas_factory):
    ports = [kaas_broker.free_port() for _ in range(2)]
    kaas = kaas_factory({
        "listeners": f"INSIDE://127.0.0.1:{ports[0]},OUTSIDE://127.0.0.1:{ports[1]}",
        "advertised.listeners": f"INSIDE://127.0.0.1:{ports[0]},OUTSIDE://kafka.example.org:443",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    }, port=ports[0])
    answers = []
    for port in ports:
        with Connection(f"127.0.0.1:{port}") as connection:
            one = connection.call("Metadata", 12, {"topics": []})["brokers"][0]
            answers.append((one["host"], one["port"]))
    assert kaas.process.poll() is None
    assert answers == [("127.0.0.1", ports[0]), ("kafka.example.org", 443)]


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_an_ipv6_listener_serves(kaas_factory):
    port = kaas_broker.free_port()
    kaas_factory({"listeners": f"PLAINTEXT://127.0.0.1:{port},SIX://[::1]:{port}",
                  "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SIX:PLAINTEXT"}, port=port)
    with Connection(f"[::1]:{port}") as connection:
        one = connection.call("Metadata", 12, {"topics": []})["brokers"][0]
        assert (one["host"], one["port"]) == ("::1", port)


def test_an_unknown_key_is_refused_with_the_nearest_name():
    done = serve("log.retention.hour=5")
    assert done.returncode == 2
    assert "log.retention.hours" in done.stderr


@pytest.mark.parametrize("setting, limit, at_most", [
    ("num.network.threads=100000", resource.RLIMIT_NOFILE, 64),
    ("num.io.threads=100000", resource.RLIMIT_AS, 1 << 30),
])
def test_threads_that_the_system_does_not_give_are_a_refusal(setting, limit, at_most, tmp_path):
    done = serve(setting, f"log.dirs={tmp_path}", "listeners=PLAINTEXT://127.0.0.1:0",
                 preexec_fn=lambda: resource.setrlimit(limit, (at_most, at_most)))
    assert done.returncode == 1, done.stderr
    assert setting in done.stderr.splitlines()[-1]


def test_an_unknown_variable_only_warns(kaas_factory, monkeypatch):
    monkeypatch.setenv("KAFKA_PORT_9092_TCP_ADDR", "10.0.0.1")
    assert "KAFKA_PORT_9092_TCP_ADDR" in kaas_factory().log()


def test_ephemeral_data_is_gone_at_exit():
    with tempfile.TemporaryDirectory(prefix="kaas-") as home:
        process = subprocess.Popen(
            [kaas_broker.binary(), "serve", "--ephemeral", "--override",
             "listeners=PLAINTEXT://127.0.0.1:0", "--override", "kaas.health.listener="],
            stderr=subprocess.PIPE, text=True, env={"TMPDIR": home, "PATH": "/usr/bin:/bin"}, cwd=home)
        said = ""
        while "ready" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        assert "ephemeral" in said
        assert list(pathlib.Path(home).iterdir()), "it keeps its data somewhere else"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert not list(pathlib.Path(home).iterdir())


def test_version_and_help():
    version = subprocess.run([kaas_broker.binary(), "--version"], capture_output=True, text=True)
    assert version.returncode == 0 and re.match(r"kaas \d+\.\d+\.\d+", version.stdout)
    usage = subprocess.run([kaas_broker.binary(), "--help"], capture_output=True, text=True)
    assert usage.returncode == 0 and "serve" in usage.stdout and "log dump" in usage.stdout


def test_health_answers(kaas):
    assert get(kaas, "/livez")[0] == 200
    assert get(kaas, "/readyz") == (200, '{"ready":true}')
    status, body = get(kaas, "/healthz")
    health = json.loads(body)
    assert status == 200 and health["status"] == "ok"
    assert health["broker_id"] == 1 and health["is_controller"] is True
    metrics = get(kaas, "/metrics")[1]
    for name in ("kaas_request_latency_seconds_bucket", "kaas_connections_open", "kaas_is_controller"):
        assert name in metrics, name


def requests_received(kaas):
    counts = re.findall(r"^kaas_network_frames_total.* (\d+)$", get(kaas, "/metrics")[1], re.M)
    return sum(map(int, counts))


def create(connection, name):
    connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [
        {"name": name, "num_partitions": 1, "replication_factor": 1}]})


def send_fetch(connection, name, max_wait_ms):
    """Asks for what is there, or for the first bytes that come."""
    return connection.send("Fetch", 11, {
        "replica_id": -1, "max_wait_ms": max_wait_ms, "min_bytes": 1, "max_bytes": 1 << 20,
        "topics": [{"topic": name, "partitions": [
            {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]}]})


def test_a_fetch_that_waits_is_answered_when_the_stop_begins(kaas):
    with Connection(kaas.bootstrap, timeout=25) as connection:
        create(connection, "quiet")
        fetch = send_fetch(connection, "quiet", max_wait_ms=600_000)
        while requests_received(kaas) < 2:
            pass
        kaas.process.send_signal(signal.SIGTERM)
        answer = connection.receive("Fetch", 11, fetch)
        assert answer["responses"][0]["partitions"][0]["error_code"] == 0
    assert kaas.process.wait(30) == 0


@contextlib.contextmanager
def hanging_read(kaas):
    """A thread of the broker reads a segment that does not come: in its place is a pipe without a
    writer, whose open waits for ever, as on a volume that does not answer."""
    with Connection(kaas.bootstrap) as connection:
        create(connection, "stuck")
        produced = connection.call("Produce", 7, {"acks": -1, "timeout_ms": 10000, "topic_data": [
            {"name": "stuck", "partition_data": [{"index": 0, "records": Batch().build()}]}]})
        assert produced["responses"][0]["partition_responses"][0]["error_code"] == 0
    kaas.stop()
    segment, = (kaas.directory / "data").glob("stuck.*/0/*/*.log")
    segment.unlink()
    os.mkfifo(segment)
    kaas.start()
    with Connection(kaas.bootstrap) as connection:
        before = requests_received(kaas)
        send_fetch(connection, "stuck", max_wait_ms=0)
        while requests_received(kaas) == before:
            pass
        yield
    kaas.kill()


def test_a_member_that_waits_for_a_rebalance_is_sent_away_when_the_stop_begins(kaas):
    prepare(kaas, "g")
    Member(kaas, "g").join()  # and does not come back for the next generation
    answers = []

    def join():
        newcomer = Member(kaas, "g")
        newcomer.identity["member_id"] = newcomer.first_id()
        with Connection(kaas.bootstrap) as connection:
            answers.append(connection.call("JoinGroup", 9, newcomer.join_request()))
    waiting = threading.Thread(target=join)
    waiting.start()
    with Connection(kaas.bootstrap) as connection:
        while connection.call("DescribeGroups", 5, {"groups": ["g"]})["groups"][0][
                "group_state"] != "PreparingRebalance":
            assert waiting.is_alive(), answers
    kaas.stop()
    waiting.join()
    assert [answer["error_code"] for answer in answers] == [16], "NOT_COORDINATOR"


def test_a_stop_ends_in_time_though_a_thread_hangs(kaas_factory):
    kaas = kaas_factory({"kaas.drain.timeout.ms": "500"})
    with hanging_read(kaas):
        kaas.process.send_signal(signal.SIGTERM)
        assert kaas.process.wait(30) == 1
        assert "the stop hangs" in kaas.log()


def test_a_second_signal_ends_a_stop_that_hangs_at_once(kaas_factory):
    kaas = kaas_factory({"kaas.drain.timeout.ms": "3600000"})
    with hanging_read(kaas):
        stops = kaas.log().count("SIGTERM: stopping")  # of its lives before
        kaas.process.send_signal(signal.SIGTERM)
        while kaas.log().count("SIGTERM: stopping") == stops:  # two pending signals would be one
            assert kaas.process.poll() is None
        kaas.process.send_signal(signal.SIGTERM)
        assert kaas.process.wait(30) == -signal.SIGTERM


def test_a_draining_broker_is_not_ready_but_alive(kaas_factory):
    kaas = kaas_factory({"kaas.drain.timeout.ms": "3600000"})
    with hanging_read(kaas):
        kaas.process.send_signal(signal.SIGTERM)
        while get(kaas, "/readyz")[0] != 503:
            assert kaas.process.poll() is None
        assert get(kaas, "/livez")[0] == 200
        assert json.loads(get(kaas, "/healthz")[1])["status"] == "draining"


def test_bad_requests_are_counted_by_cause_and_do_not_flood_the_log(kaas):
    bad = {"api_key": [99, 0], "version": [3, 99], "body": [3, 1], "header": [3, 1]}
    began = time.monotonic()
    for _ in range(100):
        for reason, (key, version) in bad.items():
            with Connection(kaas.bootstrap) as connection:
                head = struct.pack(">hhih", key, version, 1, -1 if reason != "header" else 30000)
                connection.send_frame(head + struct.pack(">ih", 1, 30000))
                assert connection.is_closed()
    seconds = time.monotonic() - began
    metrics = get(kaas, "/metrics")[1]
    counted = dict(re.findall(r'^kaas_requests_refused_total.reason="(.*)". (\d+)$', metrics, re.M))
    assert counted == {**dict.fromkeys(bad, "100"), "unauthenticated": "0"}
    lines = [line for line in kaas.log().splitlines() if "closing the connection of" in line]
    assert len(lines) <= 5 * (seconds + 2)
    assert re.search(r"connection of 127\.0\.0\.1:\d+: ", lines[0])


def test_a_taken_default_health_port_is_only_a_warning(kaas_factory):
    first = kaas_factory({"kaas.health.listener": None})
    second = kaas_factory({"kaas.health.listener": None})
    assert first.process.poll() is None and second.process.poll() is None
    assert "no health server" in first.log() + second.log()


def test_json_logs_are_json(kaas_factory):
    kaas = kaas_factory({"kaas.log.format": "json"})
    while '"message":"ready ' not in kaas.log():  # it serves a moment before it says so
        assert kaas.process.poll() is None
    assert all(json.loads(line)["fields"]["message"] for line in kaas.log().splitlines())


def test_log_dump_reads_what_was_written(kaas):
    with Connection(kaas.bootstrap) as connection:
        from kafka_wire.batch import Batch
        connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [
            {"name": "dumped", "num_partitions": 1, "replication_factor": 1}]})
        answer = connection.call("Produce", 11, {"acks": -1, "timeout_ms": 1000, "topic_data": [
            {"name": "dumped", "partition_data": [{"index": 0, "records": Batch(values=[b"a", b"b"]).build()}]}]})
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0
    segment, = (kaas.directory / "data").glob("dumped.*/0/*/*.log")
    done = subprocess.run([kaas_broker.binary(), "log", "dump", segment], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"base.?offset\D+0\b", done.stdout, re.I)


def test_an_answer_of_gigabytes_is_not_built(kaas):
    """Some 200 KB of request name the broker 40,000 times; each answer would be tens of kilobytes."""
    with Connection(kaas.bootstrap) as connection:
        connection.send("DescribeConfigs", 4, {"resources": [
            {"resource_type": 4, "resource_name": "1", "configuration_keys": None}] * 40_000})
        connection.receive_frame()
        assert connection.call("ApiVersions", 0)["error_code"] == 0
    peak = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{kaas.pid}/status").read_text())
    assert int(peak[1]) < 1 << 20  # a GB; all of them would be three
