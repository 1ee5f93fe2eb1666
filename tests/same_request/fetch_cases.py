"""Fetch: positions, limits, epochs, sessions (KIP-227), topic ids (KIP-516)."""

import uuid

from harness import Subject, case, fetch_body

STRANGER = uuid.UUID("01234567-89ab-4def-8123-456789abcdef")


@case
def fetch_of_every_version(k: Subject):
    name = k.topic()
    k.fill(name)
    topic_id = k.topic_id(name)
    k.ask_all("Fetch", lambda v: fetch_body(topic_id if v >= 13 else name))


@case
def fetch_positions(k: Subject):
    name = k.topic()
    k.fill(name)  # offsets 0 to 5, two a batch
    for offset in (0, 1, 2, 5, 6, 7, 100, -1, -2, 1 << 60):
        k.ask(f"at {offset}", "Fetch", 12, fetch_body(name, offset))


@case
def fetch_of_an_empty_partition(k: Subject):
    name = k.topic()
    k.ask("at 0", "Fetch", 12, fetch_body(name))
    k.ask("at 1", "Fetch", 12, fetch_body(name, 1))
    k.ask("waits in vain", "Fetch", 12, fetch_body(name, wait=50, minimum=1))


@case
def fetch_limits(k: Subject):
    name = k.topic()
    k.fill(name, 5)
    size = 76  # of one such batch
    for maximum in (0, 1, size, size + 1, 2 * size, 3 * size):
        k.ask(f"partition {maximum}", "Fetch", 12, fetch_body(name, maximum=maximum))
    for maximum in (0, 1, size + 1, 2 * size):
        body = fetch_body(name)
        body["max_bytes"] = maximum
        k.ask(f"whole {maximum}", "Fetch", 12, body)
    k.ask("negative partition limit", "Fetch", 12, fetch_body(name, maximum=-1))
    k.ask("negative wait", "Fetch", 12, fetch_body(name, wait=-5, minimum=1))


@case
def fetch_minimum_that_whole_batches_do_not_reach(k: Subject):
    """There are bytes enough, but no whole batches of them fit: no reason to wait, which would be silence."""
    name = k.topic()
    k.fill(name, 5)
    k.ask("answer", "Fetch", 12, fetch_body(name, maximum=100, minimum=100, wait=100_000))


@case
def fetch_beyond_the_end_of_the_epoch(k: Subject):
    """What the client has is not what the log has: it learns where they part, not that it is out of range."""
    name = k.topic()
    k.fill(name)
    for offset, epoch in ((6, 0), (7, 0), (100, 0), (3, 5), (100, 5)):
        k.ask(f"at {offset} after epoch {epoch}", "Fetch", 12,
              fetch_body(name, offset, last_fetched_epoch=epoch))


@case
def fetch_first_batch_is_whole_only_for_the_first_partition(k: Subject):
    name = k.topic(partitions=3)
    for partition in range(3):
        k.fill(name, 2, partition)
    body = fetch_body(name, maximum=10)
    body["max_bytes"] = 10
    body["topics"][0]["partitions"] = [
        {"partition": p, "fetch_offset": 0, "partition_max_bytes": 10} for p in range(3)]
    k.ask("answer", "Fetch", 12, body)


@case
def fetch_of_what_is_not_there(k: Subject):
    name = k.topic()
    k.ask("unknown topic", "Fetch", 12, fetch_body(k.name("nobody")))
    k.ask("unknown partition", "Fetch", 12, fetch_body(name, partition=5))
    k.ask("negative partition", "Fetch", 12, fetch_body(name, partition=-1))
    k.ask("unknown id", "Fetch", 13, fetch_body(STRANGER))
    k.ask("zero id", "Fetch", 13, fetch_body(uuid.UUID(int=0)))
    k.ask("no topics", "Fetch", 12, {"max_wait_ms": 0, "min_bytes": 0})
    k.ask("invalid name", "Fetch", 12, fetch_body("a b"))
    k.ask("unknown partition of an id", "Fetch", 15, fetch_body(k.topic_id(name), partition=5))


@case
def fetch_leader_epochs(k: Subject):
    name = k.topic()
    k.fill(name)
    for epoch in (-1, 0, 1, 50, -2):
        k.ask(f"epoch {epoch}", "Fetch", 12, fetch_body(name, current_leader_epoch=epoch))
    for epoch in (-1, 0, 1):
        k.ask(f"last fetched {epoch}", "Fetch", 12,
              fetch_body(name, 2, current_leader_epoch=0, last_fetched_epoch=epoch))


@case
def fetch_isolation_levels(k: Subject):
    name = k.topic()
    k.fill(name)
    for level in (0, 1, 2, -1):
        k.ask(f"level {level}", "Fetch", 12, fetch_body(name, isolation_level=level))


@case
def fetch_by_a_stranger_who_says_he_is_a_replica(k: Subject):
    name = k.topic()
    k.fill(name)
    k.ask("replica 1", "Fetch", 12, fetch_body(name, replica_id=1))
    k.ask("replica 77", "Fetch", 12, fetch_body(name, replica_id=77))
    k.ask("consumer", "Fetch", 12, fetch_body(name, replica_id=-1))
    k.ask("debugger", "Fetch", 12, fetch_body(name, replica_id=-2))


@case
def fetch_session(k: Subject):
    a, b = k.topic("a"), k.topic("b")
    k.fill(a)
    k.fill(b)
    body = fetch_body(a, session_epoch=0)
    body["topics"] += fetch_body(b)["topics"]
    session = k.ask("full", "Fetch", 12, body)["session_id"]
    again = {"max_wait_ms": 0, "min_bytes": 0, "session_id": session}
    k.ask("incremental, nothing changed", "Fetch", 12, {**again, "session_epoch": 1})
    forward = fetch_body(a, 6, session_id=session, session_epoch=2)
    k.ask("one moved to the end", "Fetch", 12, forward)
    k.ask("then", "Fetch", 12, {**again, "session_epoch": 3})
    k.ask("wrong epoch", "Fetch", 12, {**again, "session_epoch": 9})
    k.ask("after the wrong one", "Fetch", 12, {**again, "session_epoch": 4})
    k.ask("one forgotten", "Fetch", 12, {**again, "session_epoch": 5, "forgotten_topics_data": [
        {"topic": b, "partitions": [0]}]})
    k.fill(a, 1)
    k.ask("new data shows", "Fetch", 12, {**again, "session_epoch": 6})
    k.ask("closed", "Fetch", 12, {**again, "session_epoch": -1})
    k.ask("after the close", "Fetch", 12, {**again, "session_epoch": 7})


@case
def fetch_session_that_is_not_there(k: Subject):
    name = k.topic()
    k.fill(name)
    k.ask("unknown id", "Fetch", 12, fetch_body(name, session_id=12345, session_epoch=1))
    k.ask("unknown id, epoch 0", "Fetch", 12, fetch_body(name, session_id=12345, session_epoch=0))
    k.ask("unknown id, final", "Fetch", 12, fetch_body(name, session_id=12345, session_epoch=-1))
    k.ask("epoch without id", "Fetch", 12, fetch_body(name, session_id=0, session_epoch=5))
    k.ask("none wanted", "Fetch", 12, fetch_body(name, session_id=0, session_epoch=-1))


@case
def fetch_session_by_id_with_an_unknown_topic(k: Subject):
    name = k.topic()
    k.fill(name)
    topic_id = k.topic_id(name)
    body = fetch_body(topic_id, session_epoch=0)
    body["topics"] += fetch_body(STRANGER)["topics"]
    session = k.ask("full", "Fetch", 17, body)["session_id"]
    k.ask("incremental", "Fetch", 17, {"max_wait_ms": 0, "min_bytes": 0, "session_id": session,
                                       "session_epoch": 1})


@case
def fetch_session_with_an_unknown_partition(k: Subject):
    name = k.topic()
    k.fill(name)
    body = fetch_body(name, session_epoch=0)
    body["topics"] += fetch_body(name, partition=9)["topics"]
    session = k.ask("full", "Fetch", 12, body)["session_id"]
    again = {"max_wait_ms": 0, "min_bytes": 0, "session_id": session}
    k.ask("incremental", "Fetch", 12, {**again, "session_epoch": 1})
