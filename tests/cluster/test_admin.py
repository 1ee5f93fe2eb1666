"""Administration through any broker, under load and while the controller dies in the middle."""

import concurrent.futures
import itertools
import threading

import pytest
from asking import until
from load import load

pytestmark = pytest.mark.timeout(600)
QUICK = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500",
         "group.initial.rebalance.delay.ms": "0"}
UNKNOWN_TOPIC, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS = 3, 36, 37
# What an admin client asks again after: it is not done, or perhaps it is.
AGAIN = {7, 41, -1, 56, 6, 8, 13}


@pytest.fixture
def cluster(shared_cluster):
    return shared_cluster(3, QUICK)


def insist(cluster, ask, through):
    """As an admin client does: again, at the next broker, until the answer says more than that there is none."""
    brokers = itertools.cycle(sorted(cluster.brokers, key=lambda i: (i - through) % len(cluster.brokers)))

    def once():
        at = next(brokers)
        if not cluster.broker(at).running:
            raise OSError("not there")
        return ask(at)
    return until(once, "an answer", lambda answer: answer["error_code"] not in AGAIN)


def add_partitions(cluster, topic, count, through):
    answer = cluster.call("CreatePartitions", 3, {
        "topics": [{"name": topic, "count": count, "assignments": None}], "timeout_ms": 30000}, through, 60)
    return answer["results"][0]


def names(cluster, through):
    return {t["name"] for t in cluster.metadata(None, through)["topics"]}


def test_every_broker_administers(cluster):
    with load(cluster):
        for node_id in cluster.brokers:
            topic = f"by-{node_id}"
            assert cluster.create(topic, 3, node_id)["error_code"] == 0
            # A create returns when every living broker can route it.
            for other in cluster.brokers:
                assert set(cluster.leaders(topic, other)) == {0, 1, 2}
            assert cluster.create(topic, 3, node_id)["error_code"] == TOPIC_ALREADY_EXISTS
            assert add_partitions(cluster, topic, 5, node_id)["error_code"] == 0
            cluster.await_writable(topic)
            for other in cluster.brokers:
                until(lambda o=other, t=topic: cluster.leaders(t, o), "five partitions", lambda at: len(at) == 5)
            assert cluster.delete(topic, node_id)["error_code"] == 0
            for other in cluster.brokers:
                until(lambda o=other, t=topic: t in names(cluster, o), "it is gone", lambda there: not there)


def storm(cluster, through, stopping, done):
    """Creates topics, adds to every second, deletes every third; `done` is {topic: partitions, None when deleted}."""
    for number in itertools.count():
        if stopping.is_set():
            return
        topic = f"storm-{through}-{number}"
        created = insist(cluster, lambda at, t=topic: cluster.create(t, 2, at), through)
        assert created["error_code"] in (0, TOPIC_ALREADY_EXISTS), created
        done[topic] = 2
        if number % 2:
            added = insist(cluster, lambda at, t=topic: add_partitions(cluster, t, 4, at), through)
            assert added["error_code"] in (0, INVALID_PARTITIONS), added
            done[topic] = 4
        if number % 3 == 0:
            deleted = insist(cluster, lambda at, t=topic: cluster.delete(t, at), through)
            assert deleted["error_code"] in (0, UNKNOWN_TOPIC), deleted
            done[topic] = None


def test_administration_survives_the_controller(cluster, request):
    stopping, done = threading.Event(), {}
    with load(cluster, partitions=3) as clients, concurrent.futures.ThreadPoolExecutor(3) as pool:
        storms = [pool.submit(storm, cluster, i, stopping, done) for i in cluster.brokers]
        try:
            for _ in range(12 if request.config.getoption("--long") else 3):
                known = len(done)
                until(lambda k=known: len(done) >= k + 6 or any(s.done() for s in storms), "a storm")
                controller = cluster.controller()
                cluster.broker(controller).kill()
                cluster.controller()  # another one
                known = len(done)
                until(lambda k=known: len(done) >= k + 6 or any(s.done() for s in storms), "a storm")
                cluster.broker(controller).start()
                cluster.await_members({1, 2, 3})
        finally:
            stopping.set()
        for one in storms:
            one.result()
        clients.await_progress()
        for node_id in cluster.brokers:
            until(lambda i=node_id: {n for n in names(cluster, i) if n.startswith("storm-")},
                  "half a topic is none", lambda found: found == {t for t, n in done.items() if n})
        for topic, count in done.items():
            if count:
                assert len(cluster.leaders(topic)) == count
                cluster.await_writable(topic)


def test_a_name_used_again_and_again_is_a_new_topic_each_time(cluster, request):
    ids = set()
    with load(cluster, partitions=3):
        for number in range(200 if request.config.getoption("--long") else 20):
            maker, writer, remover = (1 + (number + k) % 3 for k in range(3))
            created = cluster.create("again", 3, maker)
            assert created["error_code"] == 0, (number, created)
            assert created["topic_id"] not in ids
            ids.add(created["topic_id"])
            for partition in range(3):
                append_first(cluster, partition, writer, number)
            if number % 2:  # deleted while it is opened for the first time elsewhere, too
                cluster.await_writable("again")
            assert cluster.delete("again", remover)["error_code"] == 0
            for node_id in cluster.brokers:
                until(lambda i=node_id: "again" in names(cluster, i), "it is gone", lambda there: not there)


def append_first(cluster, partition, through, number):
    """A topic of a new life starts at 0."""
    def once():
        leader = cluster.leaders("again", through).get(partition, -1)
        if leader == -1:
            raise OSError("no leader yet")
        return cluster.append("again", partition, [b"%d" % number], leader)
    error, offset = until(once, "a first record", lambda answer: answer[0] not in {3, 5, 6})
    assert (error, offset) == (0, 0), f"round {number}, partition {partition}"
