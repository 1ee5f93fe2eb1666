"""Steps of one broker's wall clock, an hour on, two back and three on, under load: no time of day decides anything (DESIGN 10)."""

import datetime
import os
import pathlib
import struct

import pytest
from load import TOPIC, load
from steps import last

pytestmark = pytest.mark.timeout(600)
SESSION_SECONDS = 3
QUICK = {"broker.session.timeout.ms": str(SESSION_SECONDS * 1000), "broker.heartbeat.interval.ms": "500",
         "group.initial.rebalance.delay.ms": "0"}
ROOT = pathlib.Path(__file__).parents[2]
LIBRARY = pathlib.Path(os.environ.get("KAAS_STEPPED_CLOCK_LIBRARY", ROOT / "build/release/tests/kaas_stepped_clock.so"))
FENCED = "was ended: a new one is begun"


class SteppedClock:
    """The wall clock of processes that are started with `prefix` (stepped_clock.cc)."""

    def __init__(self, directory):
        self.file = directory / "clock"
        self.step(0)
        self.prefix = ["env", f"LD_PRELOAD={LIBRARY}", f"KAAS_STEPPED_CLOCK={self.file}"]

    def step(self, seconds):
        with open(self.file, "r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))


@pytest.mark.parametrize("victim", ["leader", "controller"])
def test_steps_of_a_wall_clock_change_nothing(cluster_factory, tmp_path, victim):
    cluster = cluster_factory(3, QUICK, start=False)
    clock = SteppedClock(tmp_path)
    cluster.broker(1).prefix = clock.prefix
    first = [1] if victim == "controller" else [2, 3]
    cluster.start(first)
    cluster.await_members(first)
    cluster.start([i for i in cluster.brokers if i not in first])
    cluster.await_members({1, 2, 3})
    assert (cluster.controller() == 1) == (victim == "controller")
    with load(cluster) as clients:
        led = cluster.leaders(TOPIC)
        for seconds in (3600, -3600, 7200):
            clock.step(seconds)
            last(SESSION_SECONDS)  # long enough for a session to be missed, if this counted
            clients.await_progress()
        assert cluster.leaders(TOPIC) == led
    assert all(FENCED not in b.log() for b in cluster.brokers.values())
    cluster.stop()
    stopped = datetime.datetime.fromisoformat(cluster.broker(1).log().splitlines()[-1][:19])
    assert stopped > datetime.datetime.now() + datetime.timedelta(hours=1), "its clock was not stepped"
