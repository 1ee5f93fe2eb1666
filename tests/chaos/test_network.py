"""Three brokers on three hosts, while links between them and to clients are cut, in both directions or in one.

They share a directory all the time, so a broker without a network still can write: what it must not do is to tell
anybody that this counted. After each test nothing that was acknowledged or read may be missing (load.py).
"""

import itertools

import pytest
from asking import until
from load import TOPIC, load
from network import CLIENTS
from steps import last, leader, rounds

pytestmark = pytest.mark.timeout(900)
SESSION_SECONDS = 3
QUICK = {"broker.session.timeout.ms": str(SESSION_SECONDS * 1000), "broker.heartbeat.interval.ms": "500",
         "group.initial.rebalance.delay.ms": "0"}
FENCED = "was ended: a new one is begun"
BROKERS = (1, 2, 3)


@pytest.fixture
def cluster(network, cluster_factory):
    return cluster_factory(3, QUICK, network=network)


VICTIMS = {"leader": lambda c: leader(c, TOPIC), "controller": lambda c: c.controller()}


def others(node_id):
    return [i for i in BROKERS if i != node_id]


def both_ways(node_id, hosts):
    return [pair for host in hosts for pair in ((node_id, host), (host, node_id))]


FROM_BROKERS = {
    "all": lambda i: both_ways(i, [*others(i), CLIENTS]),
    "brokers": lambda i: both_ways(i, others(i)),
    "what it sends to brokers": lambda i: [(i, other) for other in others(i)],
    "what brokers send to it": lambda i: [(other, i) for other in others(i)],
}


# Each way to be cut off once, with one that leads or one that reigns; the rest with --long.
SOON = {("all", "controller"), ("brokers", "leader"),
        ("what it sends to brokers", "controller"), ("what brokers send to it", "leader")}


@pytest.mark.parametrize(("links", "victim"), [
    pytest.param(*case, marks=[] if case in SOON else pytest.mark.long)
    for case in itertools.product(FROM_BROKERS, VICTIMS)])
def test_a_broker_that_the_others_do_not_hear_is_followed_and_comes_back(cluster, network, request, links, victim):
    with load(cluster) as clients:
        for _ in range(rounds(request, 1, 5)):
            broker = cluster.broker(VICTIMS[victim](cluster))
            fences = broker.log().count(FENCED)
            broker.lost = True
            network.cut(*FROM_BROKERS[links](broker.node_id))
            cluster.await_writable(TOPIC)
            clients.await_progress()
            assert cluster.controller() != broker.node_id
            network.heal()
            broker.lost = False
            until(lambda b=broker, f=fences: b.log().count(FENCED) > f, "it comes back as a new incarnation")
            cluster.await_members(set(BROKERS))
            cluster.await_writable(TOPIC)
            clients.await_progress()


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_broker_that_clients_do_not_reach_is_fenced_by_nobody(cluster, network, request, victim):
    with load(cluster) as clients:
        for _ in range(rounds(request, 1, 5)):
            broker = cluster.broker(VICTIMS[victim](cluster))
            reigns, led = cluster.controller(), cluster.leaders(TOPIC)
            broker.lost = True
            network.cut(*both_ways(broker.node_id, [CLIENTS]))
            clients.await_progress({p for p, at in led.items() if at != broker.node_id})
            last(SESSION_SECONDS + 1)
            assert cluster.leaders(TOPIC) == led
            network.heal()
            broker.lost = False
            clients.await_progress()
            assert cluster.controller() == reigns
    assert all(FENCED not in b.log() for b in cluster.brokers.values())


def test_brokers_that_do_not_hear_each_other_lose_nothing(cluster, network, request):
    with load(cluster) as clients:
        for _ in range(rounds(request, 1, 5)):
            network.cut(*((a, b) for a in BROKERS for b in BROKERS if a != b))
            last(rounds(request, SESSION_SECONDS + 2, 20))
            network.heal()
            cluster.await_members(set(BROKERS))
            cluster.await_writable(TOPIC)
            clients.await_progress()
