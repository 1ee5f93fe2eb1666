"""bench/load and bench/bare_loop understand each other: every workload runs for a moment, none errs.
Those of coordinators run on kaas.

What they measure is checked only for being there; numbers of a loaded machine mean nothing.
"""

import json
import pathlib
import subprocess

import pytest

BIN = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "bin"

# By number, not by time: on a loaded machine a short while may be over before the first answer.
BOUNDED = ["--requests", "50", "--warmup", "0", "--seconds", "50"]
MOMENT = ["--seconds", "1", "--warmup", "0.1"]

WORKLOADS = {
    "produce, pipelined": ["produce", *BOUNDED],
    "produce, paced": ["produce", "--rate", "200", "--records", "1", *MOMENT],
    "produce, acks=0": ["produce", "--acks", "0", *BOUNDED],
    "produce, many partitions a request": ["produce", "--partitions", "7", "--partitions-per-request", "3", *BOUNDED],
    "produce, a frame larger than a buffer": ["produce", "--records", "1000", *BOUNDED],
    "produce, many connections": ["produce", "--connections", "20", "--partitions", "3", *BOUNDED],
    "fetch": ["fetch", "--in-flight", "1", "--fill-mb", "2", *BOUNDED],
    "fetch, dropped by the kernel": ["fetch", "--in-flight", "3", "--fill-mb", "2", "--discard", *BOUNDED],
    "fetch, small": ["fetch", "--bytes", "17000", "--fill-mb", "2", *BOUNDED],
    "fetch, many partitions": ["fetch", "--partitions", "6", "--partitions-per-request", "6",
                               "--fill-mb", "2", *BOUNDED],
    "metadata": ["metadata", "--topics", "3", *BOUNDED],
    "end to end": ["e2e", "--rate", "200", "--records", "1", *MOMENT],
    "connect": ["connect", *MOMENT],
    "idle": ["idle", "--connections", "50", *MOMENT],
}
# The bare loop has no coordinators: kaas answers these.
COORDINATORS_WORKLOADS = {
    "commit": ["commit", "--connections", "5", "--partitions", "3", "--in-flight", "1", *BOUNDED],
    "transaction": ["transaction", "--records", "2", "--partitions", "5", *MOMENT],
    "rebalance": ["rebalance", "--members", "10", *MOMENT],
}


@pytest.fixture(params=[[], ["--single-file", "--no-sync", "--zero-fill-mb", "1"]],
                ids=["a file a partition", "one file"], scope="module")
def bare_loop(request, tmp_path_factory):
    command = [BIN / "bench_bare_loop", "--dir", tmp_path_factory.mktemp("bare"), *request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server, server.stdout.readline().split()[1], request.param
        finally:
            server.terminate()
    assert server.returncode == 0


@pytest.mark.parametrize("name", WORKLOADS)
def test_workload(bare_loop, name):
    server, address, options = bare_loop
    if "--single-file" in options and name == "fetch, many partitions":
        pytest.skip("partitions of one file lie between each other")
    done = subprocess.run(
        [BIN / "bench_load", *WORKLOADS[name], "--broker", address, "--pid", str(server.pid)],
        capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["broker_rss_mb"] > 0
    if "requests" in result:
        assert result["requests"] > 0


@pytest.mark.parametrize("name", COORDINATORS_WORKLOADS)
def test_coordinators_workload(shared_kaas, name):
    done = subprocess.run(
        [BIN / "bench_load", *COORDINATORS_WORKLOADS[name], "--broker", shared_kaas.bootstrap],
        capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["requests"] > 0


def test_a_broker_that_is_not_there_is_an_error():
    done = subprocess.run([BIN / "bench_load", "produce", "--broker", "127.0.0.1:1"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "connect" in done.stderr
