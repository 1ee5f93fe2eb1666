"""A busy broker is not a dead one: it is late with everything, heartbeats too, and nobody takes what it has.

How late is bounded by what its host gives it: stopped again and again, or one share of a core among many.
"""

import contextlib
import os
import subprocess
import time

import pytest
from load import TOPIC, load

pytestmark = pytest.mark.timeout(300)
SESSION_SECONDS = 6
SETTINGS = {"broker.session.timeout.ms": str(SESSION_SECONDS * 1000), "broker.heartbeat.interval.ms": "500",
            "group.initial.rebalance.delay.ms": "0"}
FENCED = "was ended: a new one is begun"
SPINNERS = 12


def stutters(broker, seconds):
    """Runs for a twentieth of the time: what came meanwhile waits in its sockets, heartbeats of others too."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        broker.freeze()
        time.sleep(0.95)
        broker.thaw()
        time.sleep(0.05)


def starves(broker, seconds):
    """All its threads have one core, with others that never wait."""
    core = max(os.sched_getaffinity(0))
    with contextlib.ExitStack() as cleanup:
        for thread in os.listdir(f"/proc/{broker.process.pid}/task"):
            os.sched_setaffinity(int(thread), {core})
        for _ in range(SPINNERS):
            spinner = subprocess.Popen(["taskset", "-c", str(core), "sh", "-c", "while :; do :; done"])
            cleanup.callback(spinner.wait)
            cleanup.callback(spinner.kill)
        time.sleep(seconds)
    for thread in os.listdir(f"/proc/{broker.process.pid}/task"):
        os.sched_setaffinity(int(thread), os.sched_getaffinity(0))


@pytest.mark.parametrize("victim", ["leader", "controller"])
@pytest.mark.parametrize("how", [stutters, pytest.param(starves, marks=pytest.mark.long)])
def test_a_busy_broker_is_not_a_dead_one(cluster_factory, request, how, victim):
    cluster = cluster_factory(3, SETTINGS)
    with load(cluster) as clients:
        reigns, led = cluster.controller(), cluster.leaders(TOPIC)
        busy = reigns if victim == "controller" else next(i for i in led.values() if i != reigns)
        how(cluster.broker(busy), 60 if request.config.getoption("--long") else SESSION_SECONDS + 2)
        clients.await_progress()
        assert cluster.leaders(TOPIC) == led
        assert cluster.controller() == reigns
    for broker in cluster.brokers.values():
        assert FENCED not in broker.log()
