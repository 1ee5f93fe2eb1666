"""What the members of a group, Java's, see of the coordinator: who gets what, when, and what moves nobody."""

import confluent_kafka
import pytest

COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"
pytestmark = pytest.mark.timeout(180)


def configs(topic, **more):
    return {"topic": topic, "group_id": "g", "partition_assignment_strategy": COOPERATIVE,
            "session_timeout_ms": 10000, "heartbeat_interval_ms": 200} | more


def produce_to_all(broker, topic, partitions, value):
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for partition in range(partitions):
        producer.produce(topic, value=value, partition=partition)
    assert producer.flush(30) == 0


def await_read(group, partitions, value, since=0):
    """Until someone has read `value` from each partition, and committed it by then or soon after."""
    def read():
        return {event[2] for event in group.events[since:] if event[1] == "read" and event[4] == value}
    group.await_that(f"{value} read from {partitions} partitions", lambda: len(read()) == partitions)


def test_cooperative_members_keep_what_they_have(broker, group, topic):
    topic("t", 6)
    group.open("a", **configs("t"))
    group.await_shares(("a", 6))
    group.open("b", **configs("t"))
    group.await_shares(("a", 3), ("b", 3))
    since, before = len(group.events), {name: group.assigned(name) for name in "ab"}
    group.open("c", **configs("t"))
    group.await_shares(("a", 2), ("b", 2), ("c", 2))
    for name in "ab":
        revoked = [words[0] for words in group.of(name, "revoked", since)]
        assert len(",".join(filter(None, revoked)).split(",")) == 1, "more than what c needed was taken"
        assert group.assigned(name) < before[name]
    assert not [event for event in group.events if event[1] in ("lost", "failed", "trouble")]
    group.close("a")
    group.await_shares(("b", 3), ("c", 3))


def test_a_leader_forgets_nobody_in_a_cold_start_all_at_once(broker, group, topic):
    topic("t", 12)
    for name in "abcdef":
        group.open(name, **configs("t", partition_assignment_strategy=RANGE))
    group.await_shares(*((name, 2) for name in "abcdef"))
    assert set().union(*map(group.assigned, "abcdef")) == {f"t-{i}" for i in range(12)}


def test_a_silent_member_is_expired_by_its_session(broker, group, topic):
    topic("t", 4)
    group.open("stays", **configs("t", session_timeout_ms=1500))
    group.open("goes", **configs("t", session_timeout_ms=1500))
    group.await_shares(("stays", 2), ("goes", 2))
    group.abandon("goes")
    group.await_event("goes", "closed")
    assert len(group.assigned("stays")) == 2, "its connection has ended, its session has not"
    group.await_shares(("stays", 4))


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_members_go_on_after_kill_9_of_the_broker_without_a_rebalance(broker, group, topic, static):
    topic("t", 6)
    for name in "abc":
        group.open(name, **configs("t", **({"group_instance_id": name} if static else {})))
    group.await_shares(("a", 2), ("b", 2), ("c", 2))
    produce_to_all(broker, "t", 6, "before")
    await_read(group, 6, "before")
    since = len(group.events)
    broker.kill()
    broker.start()
    produce_to_all(broker, "t", 6, "after")
    await_read(group, 6, "after")
    # A heartbeat of each has been answered meanwhile, and a commit too: one that failed would be told.
    produce_to_all(broker, "t", 6, "later")
    await_read(group, 6, "later")
    moved = [event for event in group.events[since:] if event[1] in ("joined", "revoked", "lost", "failed")]
    assert not moved


def test_committed_offsets_survive_kill_9(broker, group, topic):
    topic("t", 4)
    group.open("first", **configs("t"))
    group.await_shares(("first", 4))
    produce_to_all(broker, "t", 4, "before")
    await_read(group, 4, "before")
    group.close("first")
    group.await_event("first", "closed")
    broker.kill()
    broker.start()
    produce_to_all(broker, "t", 4, "after")
    group.open("second", **configs("t"))
    await_read(group, 4, "after")
    assert {words[2] for words in group.of("second", "read")} == {"after"}


def test_a_static_member_that_restarts_moves_nobody(broker, group, topic):
    topic("t", 6)
    for name in "abc":
        group.open(name, **configs("t", group_instance_id=name))
    group.await_shares(("a", 2), ("b", 2), ("c", 2))
    since, held = len(group.events), group.assigned("b")
    group.close("b")
    group.await_event("b", "closed")
    group.open("b", **configs("t", group_instance_id="b"))
    group.await_event("b", "assigned", since)
    assert set(group.of("b", "assigned", since)[0][0].split(",")) == held
    produce_to_all(broker, "t", 6, "after")
    await_read(group, 6, "after")
    moved = [event for event in group.events[since:]
             if event[0] in "ac" and event[1] in ("joined", "revoked", "lost")]
    assert not moved


def test_of_two_members_with_one_instance_id_the_older_is_fenced(broker, group, topic):
    topic("t", 2)
    group.open("old", **configs("t", group_instance_id="same"))
    group.await_shares(("old", 2))
    group.open("new", **configs("t", group_instance_id="same"))
    group.await_shares(("new", 2))
    assert group.await_event("old", "failed")[0] == "FencedInstanceIdException"
