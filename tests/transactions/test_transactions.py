"""What readers and producers see of transactions: commits, aborts, zombies, timeouts, crashes of the broker."""

import os
import threading
import urllib.request

import confluent_kafka
import pytest
from asking import CONCURRENT_TRANSACTIONS, until
from wire import NONE, Producer, await_end, await_state, call, create, describe, end_offset

pytestmark = pytest.mark.timeout(300)
INVALID_TXN_STATE = 48
INVALID_PRODUCER_EPOCH = 47
PRODUCER_FENCED = 90
QUICK_REAPER = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
ours = pytest.mark.skipif(os.environ.get("KAAS_TEST_AGAINST") == "apache", reason="not Apache's")
# With the other strategy librdkafka 2.16 forgets the brokers that it waits for, and waits for ever.
LASTING = {"metadata.recovery.strategy": "none", "reconnect.backoff.max.ms": 200}
both_protocols = pytest.mark.parametrize("fixed", [False, True], ids=["bumped epoch", "fixed epoch"])


def committed_values(broker, topic, count, partitions=1, seconds=60):
    """The first `count` values that a reader of committed data gets, sorted; none twice."""
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": broker.bootstrap, "group.id": "reader", "isolation.level": "read_committed",
        "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in range(partitions)])
    found = []
    try:
        while len(found) < count:
            messages = consumer.consume(count, timeout=seconds)
            assert messages, f"{len(found)} of {count}: {sorted(found)[:20]}"
            found += [m.value() for m in messages if m.error() is None]
    finally:
        consumer.close()
    return sorted(found)


def confluent(broker, transactional_id, **more):
    producer = confluent_kafka.Producer({
        "bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id, "linger.ms": 1, **more})
    producer.init_transactions(60)
    return producer


def test_readers_see_what_was_committed_and_nothing_else(shared_kaas):
    create(shared_kaas, "seen", 3)
    producer = confluent(shared_kaas, "seen")
    wanted = []
    for number in range(20):
        producer.begin_transaction()
        for partition in range(3):
            value = b"%03d-%d" % (number, partition)
            producer.produce("seen", value, partition=partition)
            if number % 2:
                wanted.append(value)
        if number % 2:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)
    assert committed_values(shared_kaas, "seen", len(wanted), 3) == sorted(wanted)


def test_a_second_producer_fences_the_first(shared_kaas):
    create(shared_kaas, "fenced")
    first = confluent(shared_kaas, "fenced")
    first.begin_transaction()
    first.produce("fenced", b"of the first")
    assert first.flush(60) == 0
    second = confluent(shared_kaas, "fenced")
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        first.commit_transaction(60)
    assert refused.value.args[0].fatal()
    second.begin_transaction()
    second.produce("fenced", b"of the second")
    second.commit_transaction(60)
    assert committed_values(shared_kaas, "fenced", 1) == [b"of the second"]


@both_protocols
def test_a_zombie_writes_nothing_that_counts(shared_kaas, fixed):
    topic = f"zombie-{fixed}"
    create(shared_kaas, topic)
    zombie = Producer(shared_kaas, fixed=fixed)
    zombie.send(topic, [b"of the zombie"])
    heir = Producer(shared_kaas, zombie.id, fixed=fixed)
    assert zombie.try_send(topic, [b"too late"]) == INVALID_PRODUCER_EPOCH
    assert zombie.try_end()["error_code"] == PRODUCER_FENCED
    heir.send(topic, [b"of the heir"])
    heir.end()
    assert committed_values(shared_kaas, topic, 1) == [b"of the heir"]


@both_protocols
def test_a_transaction_that_takes_too_long_is_aborted(kaas_factory, fixed):
    broker = kaas_factory(QUICK_REAPER)
    create(broker, "late")
    slow = Producer(broker, fixed=fixed, timeout_ms=500)
    slow.send("late", [b"slow"])
    assert end_offset(broker, "late") == 0
    await_state(broker, slow.id, "CompleteAbort")
    await_end(broker, "late", 2)
    assert slow.try_send("late", [b"still slow"]) == INVALID_PRODUCER_EPOCH
    assert slow.try_end()["error_code"] == (PRODUCER_FENCED if fixed else INVALID_TXN_STATE)
    # With what it has it may go on (KIP-360).
    slow.pid, slow.epoch = slow.init(slow.pid, slow.epoch)
    slow.sequences = {}
    slow.send("late", [b"quick"])
    slow.end()
    assert committed_values(broker, "late", 1) == [b"quick"]


def test_a_repeated_commit_gives_one_marker(shared_kaas):
    create(shared_kaas, "repeated")
    producer = Producer(shared_kaas)
    producer.send("repeated", [b"one"])
    answers = [until(producer.try_end, "the end", lambda a: a["error_code"] != CONCURRENT_TRANSACTIONS)
               for _ in range(5)]
    assert [a["error_code"] for a in answers] == [NONE] * 5
    assert {(a["producer_id"], a["producer_epoch"]) for a in answers} == {(producer.pid, producer.epoch + 1)}
    await_end(shared_kaas, "repeated", 2)
    assert end_offset(shared_kaas, "repeated", isolation=0) == 2


@ours
def test_the_next_transaction_need_not_ask_twice(shared_kaas):
    """Apache refuses it as long as the markers of the last one are under way."""
    create(shared_kaas, "next", 5)
    producer = Producer(shared_kaas)
    for number in range(20):
        for partition in range(5):
            assert producer.try_send("next", [b"%d" % number], partition) == NONE
        producer.end()


@both_protocols
def test_an_open_transaction_survives_a_crash(kaas, fixed):
    """As a sink with two-phase commits resumes: another process commits, by id and epoch."""
    create(kaas, "resumed")
    before = Producer(kaas, fixed=fixed)
    before.send("resumed", [b"before the crash"])
    kaas.kill()
    kaas.start()
    await_end(kaas, "resumed", 1, isolation=0)
    assert end_offset(kaas, "resumed") == 0, "read before it is committed"
    resumed = Producer(kaas, before.id, (before.pid, before.epoch), fixed)
    resumed.end()
    await_end(kaas, "resumed", 2)
    assert committed_values(kaas, "resumed", 1) == [b"before the crash"]


def test_readers_stay_behind_what_is_open_across_crashes(kaas):
    create(kaas, "stable")
    open_one = Producer(kaas)
    open_one.send("stable", [b"open"])
    for number in range(3):
        other = Producer(kaas)
        other.send("stable", [b"closed %d" % number])
        other.end()
        # A crash before that is durable would give markers a second time.
        await_state(kaas, other.id, "CompleteCommit")
        kaas.kill()
        kaas.start()
        await_end(kaas, "stable", 3 + 2 * number, isolation=0)
        assert end_offset(kaas, "stable") == 0
    open_one.end(commit=False)
    await_end(kaas, "stable", 8)
    assert committed_values(kaas, "stable", 3) == [b"closed %d" % n for n in range(3)]


def test_producer_ids_are_never_given_twice(kaas):
    seen = set()
    for round_number in range(4):
        fresh = {Producer(kaas).pid for _ in range(20)}
        assert len(fresh) == 20 and not fresh & seen
        seen |= fresh
        kaas.kill()
        kaas.start()


def test_a_known_id_keeps_its_producer_across_a_crash(kaas):
    first = Producer(kaas)
    kaas.kill()
    kaas.start()
    second = Producer(kaas, first.id)
    assert (second.pid, second.epoch) == (first.pid, first.epoch + 1)


def test_exactly_once_from_topic_to_topic_across_crashes(kaas, request):
    """Consume, transform, produce: each input once, whatever is killed when (KIP-98, KIP-447)."""
    count = 3000 if request.config.getoption("--long") else 400
    create(kaas, "input")
    create(kaas, "output")
    source = confluent_kafka.Producer({"bootstrap.servers": kaas.bootstrap, "enable.idempotence": True})
    for number in range(count):
        source.produce("input", b"%06d" % number)
    assert source.flush(60) == 0
    stopping = threading.Event()
    worker = threading.Thread(target=copy, args=(kaas, stopping))
    worker.start()
    try:
        for fraction in (0.2, 0.4, 0.6):
            until(lambda: end_offset(kaas, "output"), "progress", lambda end, f=fraction: end > count * f)
            kaas.kill()
            kaas.start()
        found = committed_values(kaas, "output", count)
    finally:
        stopping.set()
        worker.join()
    assert found == [b"%06d" % number for number in range(count)]


def copy(broker, stopping):
    """One incarnation after the other: any error ends one, its transaction with it."""
    while not stopping.is_set():
        consumer = producer = None
        try:
            producer = confluent(broker, "copier", **LASTING)
            consumer = confluent_kafka.Consumer({
                "bootstrap.servers": broker.bootstrap, "group.id": "copiers", "enable.auto.commit": False,
                "auto.offset.reset": "earliest", "isolation.level": "read_committed",
                "session.timeout.ms": 6000, **LASTING})
            consumer.subscribe(["input"])
            while not stopping.is_set():
                if messages := consumer.consume(20, timeout=1):
                    pass_on(producer, consumer, [m for m in messages if m.error() is None])
        except confluent_kafka.KafkaException:
            pass
        finally:
            if consumer is not None:
                consumer.close()


def pass_on(producer, consumer, messages):
    producer.begin_transaction()
    for message in messages:
        producer.produce("output", message.value())
    producer.send_offsets_to_transaction(consumer.position(consumer.assignment()),
                                         consumer.consumer_group_metadata(), 30)
    producer.commit_transaction(30)


def test_an_idle_id_is_forgotten(kaas_factory):
    broker = kaas_factory({"transactional.id.expiration.ms": "300",
                           "transaction.remove.expired.transaction.cleanup.interval.ms": "100"})
    producer = Producer(broker)
    until(lambda: describe(broker, producer.id), "the id to go", lambda a: a["error_code"] == 105)
    assert Producer(broker, producer.id).pid != producer.pid


@ours
def test_coordinators_tell_what_they_do(kaas):
    create(kaas, "told")
    producer = Producer(kaas)
    for commit in (True, False, True):
        producer.send("told", [b"one"])
        producer.end(commit)
    await_end(kaas, "told", 6)
    with urllib.request.urlopen(f"http://127.0.0.1:{kaas.health_port}/metrics", timeout=10) as answer:
        metrics = answer.read().decode()
    assert 'kaas_transactions_ended_total{result="commit"} 2' in metrics
    assert 'kaas_transactions_ended_total{result="abort"} 1' in metrics


def test_listed_by_many_brokers_ways(shared_kaas):
    ids = [Producer(shared_kaas, f"listed-{n}").id for n in range(60)]  # more than there are slots
    answer = call(shared_kaas, "ListTransactions", 2, {
        "state_filters": [], "producer_id_filters": [], "transactional_id_pattern": "listed-.*"})
    assert sorted(t["transactional_id"] for t in answer["transaction_states"]) == sorted(ids)
    assert len({t["producer_id"] for t in answer["transaction_states"]}) == 60
