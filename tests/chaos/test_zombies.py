"""A broker that freezes at a named point of its work, is replaced, and wakes: three brokers on NFS, under load.

A point is a file operation: it is held, the whole process is stopped, and either the operation comes to its end only
after others have taken over (`before`), or it has ended and what follows it has not begun (`behind`). So "before the
answer" is behind the check's look at the session: what is left then is on no disk. A leader that has not seen a move
is frozen anywhere.
"""

import contextlib
import dataclasses
import threading

import pytest
from asking import until
from kafka_wire.connection import Closed
from ledger import Writer, read_all
from load import SILENCE_MS, TOPIC, load
from steps import leader

pytestmark = pytest.mark.timeout(600)
SETTINGS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500",
            "group.initial.rebalance.delay.ms": "0", "log.roll.ms": "3000",
            "log.retention.check.interval.ms": "500"}
FENCED = "was ended: a new one is begun"
BULK = "bulk"
BULK_BYTES = 16384


@pytest.fixture
def cluster(nfs_cluster):
    return nfs_cluster(3, SETTINGS)


# ---- What brings a broker to a point that the load alone does not.

@contextlib.contextmanager
def nothing(cluster, zombie):
    yield


@contextlib.contextmanager
def topics(cluster, zombie):
    """Are created until somebody freezes over it."""
    stopping = threading.Event()

    def create():
        number = 0
        while not stopping.is_set():
            with contextlib.suppress(OSError, Closed, IndexError):
                cluster.create(f"made-{number}")
            number += 1
            stopping.wait(0.05)
    thread = threading.Thread(target=create)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


@contextlib.contextmanager
def death(cluster, zombie):
    """Of a broker that is neither the zombie nor the controller."""
    victim = next(b for i, b in cluster.brokers.items() if i not in (zombie, cluster.controller()))
    victim.kill()
    yield
    victim.start()


@contextlib.contextmanager
def bulk(cluster, zombie):
    """So much that journals are trimmed and segments go; what is still there in the end is what was acknowledged."""
    cluster.create_well(BULK, 3, configs={"retention.bytes": "1", "segment.bytes": "1048576",
                                          "file.delete.delay.ms": "0"})
    partition, = cluster.led(BULK)[zombie]
    silence = {"socket.timeout.ms": SILENCE_MS, "request.timeout.ms": SILENCE_MS}
    with Writer(cluster.bootstrap, BULK, True, BULK_BYTES, partition, silence) as writer:
        yield
        writer.await_acknowledgement()
    found = read_all(cluster.bootstrap, BULK, partition)
    first = found[0][0]
    assert [offset for offset, _ in found] == list(range(first, first + len(found))), "offsets have a gap"
    assert not writer.errors, writer.errors[:5]
    at = dict(found)
    lost = {n: o for n, o in writer.acknowledged.items() if o is not None and o >= first and at.get(o) != n}
    assert not lost, f"acknowledged and not there: {lost}"


# ---- The points.

@dataclasses.dataclass
class Point:
    operation: str
    path: str  # {id}: the zombie, {lost}: the broker that dies, {partition}: one that it led
    behind: bool = False  # the operation has ended before others take over
    provoke: object = nothing
    late: bool = False  # the operation ends only when the zombie has a new session


SEGMENT = f"/{TOPIC}.*/*.log"
JOURNAL = "/__journals/{id}.*"
SESSION = "/__sessions/{id}.*"
LEADER = {
    "before it writes": Point("write", SEGMENT),
    "before it writes its journal": Point("write", JOURNAL),
    "before its fsync": Point("fsync", JOURNAL),
    "in an fsync that ends in its next life": Point("fsync", JOURNAL, late=True),
    "before its check": Point("getattr", SESSION),
    "before it answers": Point("getattr", SESSION, behind=True),
    "in a roll": Point("create", SEGMENT),
    "before it removes a segment": Point("unlink", f"/{BULK}.*/*.log", provoke=bulk),
    "before it trims its journal": Point("unlink", JOURNAL, provoke=bulk),
}
CONTROL = "/__cluster/control/*"
ELECTION = "/__cluster/election/*"
CONTROLLER = {
    "before it writes an intent": Point("write", CONTROL, provoke=topics),
    "before an intent is durable": Point("fsync", CONTROL, provoke=topics),
    "before its check": Point("getattr", ELECTION, provoke=topics),
    "before it pushes": Point("getattr", ELECTION, behind=True, provoke=topics),
    "before it marks": Point("setattr", "/__sessions/{lost}.*", provoke=death),
    "before it removes what it has marked": Point("rmdir", "/__sessions/{lost}.*", provoke=death),
    "before it says that it has marked": Point("rmdir", "/__sessions/{lost}.*", behind=True, provoke=death),
}
TAKER = {
    "before it copies": Point("write", f"/{TOPIC}.*/{{partition}}/*.log", provoke=death),
    "behind its copy": Point("fsync", f"/{TOPIC}.*/{{partition}}/*.log", behind=True, provoke=death),
    "before its manifest": Point("create", f"/{TOPIC}.*/{{partition}}/*/manifest-*", provoke=death),
    "before it serves": Point("fsync", f"/{TOPIC}.*/{{partition}}/*/manifest-*", behind=True, provoke=death),
}
ZOMBIES = {"leader": LEADER, "controller": CONTROLLER, "taker": TAKER}
# Of each kind the last moment before others hear of its work; the rest with --long.
SOON = {("leader", "before it answers"), ("controller", "before it pushes"), ("taker", "before it serves")}


def choose(cluster, role):
    return cluster.controller() if role == "controller" else leader(cluster, TOPIC)


def hold(cluster, zombie, point):
    reigns = cluster.controller()
    lost = next(i for i in cluster.brokers if i not in (zombie, reigns))
    for partition in cluster.led(TOPIC)[lost]:
        path = point.path.format(id=zombie, lost=lost, partition=partition)
        cluster.nfs.tell(f"hold {zombie} {point.operation} {path}")


def wake(cluster, zombie, point):
    """Until it is there again, as somebody new."""
    broker = cluster.broker(zombie)
    fences = broker.log().count(FENCED)
    if not point.late:
        cluster.nfs.tell(f"clear {zombie}")
    broker.thaw()
    until(lambda: broker.log().count(FENCED) > fences, "it comes back as a new incarnation")
    if point.late:
        until(lambda: cluster.members() == set(cluster.brokers), "it is registered")
        cluster.nfs.tell(f"clear {zombie}")


@pytest.mark.parametrize(("role", "name"), [
    pytest.param(role, name, marks=[] if (role, name) in SOON else pytest.mark.long)
    for role, points in ZOMBIES.items() for name in points])
def test_who_wakes_from_a_freeze_has_no_effect(cluster, role, name):
    point = ZOMBIES[role][name]
    with load(cluster) as clients:
        zombie = choose(cluster, role)
        hold(cluster, zombie, point)
        try:
            with point.provoke(cluster, zombie):
                until(lambda: int(cluster.nfs.tell(f"held {zombie}")) > 0, f"{role} {name}")
                cluster.broker(zombie).freeze()
                if point.behind:
                    cluster.nfs.tell(f"clear {zombie}")
                cluster.await_leaders(TOPIC, lambda led: zombie not in led)
                cluster.await_writable(TOPIC)
                clients.await_progress()
                wake(cluster, zombie, point)
            cluster.await_members(set(cluster.brokers))
            cluster.await_writable(TOPIC)
            clients.await_progress()
        finally:
            cluster.nfs.tell(f"clear {zombie}")


@pytest.mark.long
def test_a_holder_that_wakes_does_not_know_of_a_move(cluster):
    with load(cluster) as clients:
        zombie = leader(cluster, TOPIC)
        to = next(i for i in cluster.brokers if i != zombie)
        moved = sorted(cluster.led(TOPIC)[zombie])
        broker = cluster.broker(zombie)
        fences = broker.log().count(FENCED)
        broker.freeze()
        answer = cluster.call("AlterPartitionReassignments", 0, {"timeout_ms": 30000, "topics": [{
            "name": TOPIC, "partitions": [{"partition_index": p, "replicas": [to]} for p in moved]}]})
        assert {p["error_code"] for p in answer["responses"][0]["partitions"]} == {0}, answer
        cluster.await_leaders(TOPIC, lambda led: set(moved) <= led.get(to, set()))
        cluster.await_writable(TOPIC)
        clients.await_progress()
        broker.thaw()
        until(lambda: broker.log().count(FENCED) > fences, "it comes back as a new incarnation")
        cluster.await_members(set(cluster.brokers))
        cluster.await_writable(TOPIC)
        clients.await_progress()
