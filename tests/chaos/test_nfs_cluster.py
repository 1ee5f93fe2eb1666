"""Three brokers, each a machine of its own on one NFS server, while server and machines fail under load.

After each test nothing that was acknowledged or read may be missing (load.py). The kills, freezes and storms of
tests/cluster run on these mounts there.
"""

import pytest
from asking import health, until
from load import PARTITIONS, TOPIC, load
from steps import last, leader, rounds

pytestmark = pytest.mark.timeout(900)
SESSION_SECONDS = 3
QUICK = {"broker.session.timeout.ms": str(SESSION_SECONDS * 1000), "broker.heartbeat.interval.ms": "500",
         "group.initial.rebalance.delay.ms": "0", "kaas.fsync.max.latency.ms": "1000"}
LOGS = f"*/{TOPIC}.*"


@pytest.fixture
def cluster(nfs_cluster):
    return nfs_cluster(3, QUICK)


VICTIMS = {"leader": lambda c: leader(c, TOPIC), "controller": lambda c: c.controller()}
LOSSES = {"stalls": "hang {} *", "fails": "fail {} * EIO -1"}


def lose_machine(cluster, node_id):
    """The machine is gone at once, with all that its NFS client had not sent or synced."""
    cluster.nfs.tell(f"die {node_id}")
    cluster.broker(node_id).kill()


def bring_back(cluster, node_id):
    cluster.nfs.tell(f"revive {node_id}")
    cluster.broker(node_id).start()
    cluster.await_members({1, 2, 3})


def test_a_server_that_stalls_longer_than_sessions_last(cluster, request):
    with load(cluster) as clients:
        with cluster.nfs.stalled():
            last(rounds(request, SESSION_SECONDS + 2, 60))
        cluster.await_writable(TOPIC)
        clients.await_progress()


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("how", LOSSES)
def test_one_broker_loses_the_volume(cluster, request, victim, how):
    with load(cluster) as clients:
        for _ in range(rounds(request, 1, 5)):
            node_id = VICTIMS[victim](cluster)
            witness = next(i for i in cluster.brokers if i != node_id)
            cluster.nfs.tell(f"{LOSSES[how].format(node_id)} *")
            try:
                cluster.await_leaders(TOPIC, lambda led, i=node_id: i not in led, through=witness)
                clients.await_progress()
            finally:
                cluster.nfs.tell(f"clear {node_id}")
            cluster.await_members({1, 2, 3})
            cluster.await_writable(TOPIC)
            clients.await_progress()


@pytest.mark.parametrize("server", ["restart", "crash"])
def test_a_machine_and_the_server_die_together(cluster, request, server):
    with load(cluster) as clients:
        for number in range(rounds(request, 2, 10)):
            node_id = VICTIMS[("leader", "controller")[number % 2]](cluster)
            lose_machine(cluster, node_id)
            cluster.nfs.tell(server)
            cluster.await_writable(TOPIC)
            clients.await_progress()
            bring_back(cluster, node_id)
            cluster.await_writable(TOPIC)


def test_all_machines_and_the_server_die_together(cluster, request):
    with load(cluster) as clients:
        for number in range(rounds(request, 2, 10)):
            for node_id in cluster.brokers:
                cluster.nfs.tell(f"die {node_id}")
            cluster.kill()
            cluster.nfs.tell(("crash", "restart")[number % 2])
            cluster.nfs.tell("revive *")
            cluster.start()
            cluster.await_members({1, 2, 3})
            cluster.await_writable(TOPIC)
            clients.await_progress()


def test_syncs_that_fail_cost_epochs_and_no_record(cluster, request):
    with load(cluster) as clients:
        for number in range(rounds(request, 2, 10)):
            node_id = leader(cluster, TOPIC)
            asked = int(cluster.nfs.tell(f"count {node_id} fsync"))
            cluster.nfs.tell(f"fail {node_id} fsync EIO 1 *")
            until(lambda n=node_id, k=asked: int(cluster.nfs.tell(f"count {n} fsync")) > k, "a sync fails")
            clients.await_progress()
            # What looked written in the pages of that client is gone with the server's memory.
            cluster.nfs.tell("restart")
            cluster.await_writable(TOPIC)
            clients.await_progress()


def test_a_full_volume_heals_when_there_is_space(cluster):
    with load(cluster) as clients:
        cluster.nfs.tell("size 4096")
        until(lambda: [health(b)["status"] for b in cluster.brokers.values()], "all say that they are not well",
              lambda said: "ok" not in said)
        cluster.nfs.tell("size 0")
        cluster.await_writable(TOPIC)
        clients.await_progress()
    assert set(cluster.leaders(TOPIC)) == set(range(PARTITIONS))
