"""Brokers that die, freeze and leave under load: what was acknowledged stays, and all is served again."""

import pytest
from asking import until
from kafka_wire.batch import Batch
from kafka_wire.connection import Closed, Connection
from ledger import STRANGER
from load import TOPIC, load

pytestmark = pytest.mark.timeout(600)
# A frozen broker is given up sooner than by default, so that tests wait less.
QUICK = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500",
         "group.initial.rebalance.delay.ms": "0"}
FENCED = "was ended: a new one is begun"


def rounds(request):
    if request.config.getoption("--long"):
        return 10
    return 1 if "nfs" in request.node.callspec.id else 2


@pytest.fixture
def cluster(shared_cluster):
    return shared_cluster(3, QUICK)


def leader(cluster):
    """One that leads and does not reign."""
    reigns = cluster.controller()
    return next(i for i in cluster.led(TOPIC) if i not in (reigns, -1))


VICTIMS = {"leader": leader, "controller": lambda c: c.controller(),
           "coordinator": lambda c: c.coordinator("readers-0")}


@pytest.mark.parametrize("victim", VICTIMS)
def test_kill_9_of_one_broker(cluster, request, victim):
    with load(cluster) as clients:
        for _ in range(rounds(request)):
            node_id = VICTIMS[victim](cluster)
            cluster.broker(node_id).kill()
            cluster.await_writable(TOPIC)
            clients.await_progress()
            cluster.broker(node_id).start()
            cluster.await_members({1, 2, 3})
            clients.await_progress()


def test_kill_9_of_all_at_once(cluster, request):
    with load(cluster) as clients:
        for _ in range(rounds(request)):
            cluster.kill()
            cluster.start()
            cluster.await_members({1, 2, 3})
            cluster.await_writable(TOPIC)
            clients.await_progress()


@pytest.mark.parametrize("victim", ["leader", "controller"])
def test_a_freeze_shorter_than_the_session(cluster, request, victim):
    with load(cluster) as clients:
        for _ in range(rounds(request)):
            broker = cluster.broker(VICTIMS[victim](cluster))
            others = {p for p, at in cluster.leaders(TOPIC).items() if at != broker.node_id}
            broker.freeze()
            clients.await_progress(others)
            broker.thaw()
            cluster.await_writable(TOPIC)
            clients.await_progress()


@pytest.mark.parametrize("victim", ["leader", "controller"])
def test_a_freeze_longer_than_the_session(cluster, request, victim):
    with load(cluster) as clients:
        for done in range(rounds(request)):
            broker = cluster.broker(VICTIMS[victim](cluster))
            fences = broker.log().count(FENCED)
            mine = [p for p, at in cluster.leaders(TOPIC).items() if at == broker.node_id]
            with Connection(broker.bootstrap) as connection:
                connection.call("ApiVersions", 0)
                broker.freeze()
                asked = connection.send("Produce", 9, {"acks": -1, "timeout_ms": 10000, "topic_data": [{
                    "name": TOPIC, "partition_data": [
                        {"index": p, "records": Batch(values=[str(STRANGER).encode()]).build()} for p in mine]}]})
                cluster.await_writable(TOPIC)
                clients.await_progress()
                assert cluster.controller() != broker.node_id
                broker.thaw()
                note_answer(clients, connection, asked)
            until(lambda b=broker, f=fences: b.log().count(FENCED) > f, "it comes back as a new incarnation")
            cluster.await_members({1, 2, 3})
            cluster.await_writable(TOPIC)
            assert cluster.controller() != broker.node_id or done, "it does not take its office back"
            clients.await_progress()


def note_answer(clients, connection, asked):
    """What waited at the frozen leader is not acknowledged by the leader of the past; but the broker may lead again, in
    its next life, before it reads the request. What it does acknowledge has to be there in the end."""
    try:
        answer = connection.receive("Produce", 9, asked)
    except Closed:
        return
    for partition in answer["responses"][0]["partition_responses"]:
        if partition["error_code"] == 0:
            clients.writers[partition["index"]].strangers.add(partition["base_offset"])


def test_a_rolling_restart_is_no_error_for_any_client(cluster, request):
    with load(cluster) as clients:
        for _ in range(rounds(request)):
            for broker in cluster.brokers.values():
                broker.stop()
                cluster.await_writable(TOPIC)
                broker.start()
                cluster.await_members({1, 2, 3})
                cluster.await_writable(TOPIC)
        clients.await_progress()
    for reader in clients.readers:
        assert reader.assignments == 1, "a member was sent away"
