"""Who may be a broker of a cluster: the first start of all, and those that must be turned away with a clear line."""

import pytest
from asking import health, until
from broker import BrokerError

pytestmark = pytest.mark.timeout(300)


def refusal(broker):
    """The log of a broker that must not start."""
    try:
        with pytest.raises(BrokerError) as refused:
            broker.start()
    finally:
        broker.kill()
    assert "at start" in str(refused.value), refused.value
    return broker.log()


def test_three_that_start_at_once_on_an_empty_directory_are_one_cluster(cluster_factory):
    cluster = cluster_factory(3)
    controller = cluster.controller()
    for node_id in cluster.brokers:
        assert cluster.members(node_id) == {1, 2, 3}
        assert cluster.metadata([], node_id)["controller_id"] == controller
    assert len({cluster.cluster_id(i) for i in cluster.brokers}) == 1
    cluster.create_well("t", partitions=9)
    assert set(cluster.led("t")) == {1, 2, 3}, "each has a share"
    assert len({tuple(sorted(cluster.leaders("t", i).items())) for i in cluster.brokers}) == 1


def test_a_directory_of_another_cluster_refuses(cluster_factory):
    ours, other = cluster_factory(1), cluster_factory(1)
    ids = ours.cluster_id(), other.cluster_id()
    log = refusal(ours.make(2, {"log.dirs": f"{ours.data},{other.data}"}))
    assert f"belongs to cluster '{ids[1]}', not to '{ids[0]}'" in log
    assert ours.members() == {1} and other.members() == {1}


def test_a_second_living_process_of_one_id_refuses_and_harms_nobody(cluster_factory):
    cluster = cluster_factory(3)
    cluster.create_well("t", partitions=6)
    led = cluster.led("t")
    follower = next(i for i in cluster.brokers if i != cluster.controller())
    for node_id in (follower, cluster.controller()):
        log = refusal(cluster.make(node_id))
        assert "another live process has the same node.id" in log
        assert cluster.led("t") == led
        for partition, leader in cluster.leaders("t").items():
            assert cluster.append("t", partition, [b"v"], leader)[0] == 0
        assert "was ended" not in cluster.broker(node_id).log()


def test_a_standalone_directory_is_no_shared_volume(cluster_factory, kaas_factory):
    alone = kaas_factory()
    alone.stop()
    cluster = cluster_factory(1, {"log.dirs": str(alone.directory / "data")}, start=False)
    assert "directory of standalone broker" in refusal(cluster.make(1))
    alone.start()


def test_a_shared_volume_is_no_standalone_directory(cluster_factory):
    cluster = cluster_factory(2)
    log = refusal(cluster.make(3, {"kaas.mode": "standalone"}))
    assert "start with kaas.mode=volume" in log
    assert cluster.members() == {1, 2}


def test_a_fourth_broker_gets_its_share(cluster_factory):
    cluster = cluster_factory(3, {"leader.imbalance.check.interval.seconds": "1"})
    cluster.create_well("t", partitions=12)
    cluster.add(4).start()
    cluster.await_members({1, 2, 3, 4})
    cluster.create_well("later", partitions=12)
    assert {i: len(p) for i, p in cluster.led("later").items()} == {1: 3, 2: 3, 3: 3, 4: 3}
    cluster.await_leaders("t", lambda led: 4 in led and len(led[4]) >= 2)
    cluster.await_writable("t")
    until(lambda: health(cluster.broker(4))["status"] == "ok", "the newcomer is well")
