"""Faults by chance, one after another, under clients of every kind; what they were promised is held at the end.

$KAAS_SEED replays the choice of faults (it is printed); `--long` makes 200 and more. Each broker is a host of its own
(network.py) and a machine of its own on one NFS server (nfs.py).
"""

import os
import random
import threading
import time

import confluent_kafka
import network as hosts
import pytest
from asking import until
from confluent_kafka import KafkaException
from kafka_wire.connection import Closed
from load import TOPIC, load
from network import CLIENTS
from nfs import STALEST
from prober import Prober
from steps import last

SESSION_SECONDS = 3
QUICK = {"broker.session.timeout.ms": str(SESSION_SECONDS * 1000), "broker.heartbeat.interval.ms": "500",
         "group.initial.rebalance.delay.ms": "0", "kaas.fsync.max.latency.ms": "1000"}
FAULTS, FAULTS_LONG = 8, 220
PAIRS = "pairs"


class PairWriter(threading.Thread):
    """Transactions that write one number to two partitions: both have it, or neither."""

    def __init__(self, bootstrap):
        super().__init__()
        self.bootstrap = bootstrap
        self.committed, self.aborted, self.unknown = set(), set(), set()
        self.stopping = threading.Event()
        self.failures = []
        self.producer = None

    def begin_anew(self):
        """What the last one left open is ended by this one."""
        self.producer = confluent_kafka.Producer({
            "bootstrap.servers": self.bootstrap, "transactional.id": "pairs", "linger.ms": 1,
            "transaction.timeout.ms": 60000, "socket.timeout.ms": 4000, "reconnect.backoff.max.ms": 200,
            "metadata.recovery.strategy": "none"})
        self.insist(self.producer.init_transactions, 10)

    def insist(self, call, *arguments):
        deadline = time.monotonic() + 90
        while True:
            try:
                return call(*arguments)
            except KafkaException as failed:
                if not failed.args[0].retriable() or time.monotonic() > deadline:
                    raise

    def run(self):
        try:
            number = 0
            while not self.stopping.is_set():
                self.transaction(number)
                number += 1
        except BaseException as failure:
            self.failures.append(failure)

    def transaction(self, number):
        aborts = number % 5 == 4
        try:
            if self.producer is None:
                self.begin_anew()
            self.producer.begin_transaction()
            for partition in (0, 1):
                self.producer.produce(PAIRS, str(number), partition=partition)
            if aborts:
                self.producer.flush(10)
                self.aborted.add(number)
                self.insist(self.producer.abort_transaction, 10)
            else:
                self.insist(self.producer.commit_transaction, 10)
                self.committed.add(number)
        except KafkaException as failed:
            if not aborts:
                self.unknown.add(number)
            if not failed.args[0].txn_requires_abort():
                self.producer = None
                return
            try:
                self.insist(self.producer.abort_transaction, 10)
            except KafkaException:
                self.producer = None

    def expect_atomic(self):
        assert not self.failures, self.failures
        assert self.committed
        self.begin_anew()  # ends what may be open still
        left, right = (self.read(partition) for partition in (0, 1))
        assert left == right, f"half a transaction: {set(left) ^ set(right)}"
        assert len(set(left)) == len(left), "a transaction twice"
        assert self.committed <= set(left), f"committed and gone: {sorted(self.committed - set(left))[:5]}"
        assert not self.aborted & set(left), f"aborted and there: {sorted(self.aborted & set(left))[:5]}"
        assert set(left) <= self.committed | self.unknown

    def read(self, partition):
        consumer = confluent_kafka.Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": "unused", "enable.auto.commit": False,
            "isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.partition.eof": True,
            "metadata.recovery.strategy": "none"})
        consumer.assign([confluent_kafka.TopicPartition(PAIRS, partition, 0)])
        values, deadline = [], time.monotonic() + 90
        try:
            while True:
                assert time.monotonic() < deadline, "no end"
                for message in consumer.consume(500, 1):
                    if message.error() is None:
                        values.append(int(message.value()))
                    elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                        return values
        finally:
            consumer.close()


class Faults:
    """Each is a method that harms and heals; what it chooses, it takes from `chance`."""

    def __init__(self, cluster, network, chance):
        self.cluster, self.network, self.nfs, self.chance = cluster, network, cluster.nfs, chance

    def any_broker(self):
        return self.cluster.broker(self.chance.choice(sorted(self.cluster.brokers)))

    def follower(self):
        reigns = self.cluster.controller()
        return self.cluster.broker(self.chance.choice([i for i in sorted(self.cluster.brokers) if i != reigns]))

    def briefly(self):
        return self.chance.uniform(0.1, SESSION_SECONDS * 0.6)

    def for_long(self):
        return SESSION_SECONDS + self.chance.uniform(0.5, 2)

    def kill(self):
        broker = self.any_broker()
        broker.kill()
        last(self.chance.choice([0, self.briefly()]))
        broker.start()

    def kill_all(self):
        self.cluster.kill()
        self.cluster.start()

    def restart(self):
        broker = self.any_broker()
        broker.stop()
        broker.start()

    def freeze(self):
        broker = self.any_broker()
        broker.freeze()
        last(self.chance.choice([self.briefly(), self.for_long()]))
        broker.thaw()

    def freeze_all(self):
        for broker in self.cluster.brokers.values():
            broker.freeze()
        last(self.chance.choice([self.briefly(), self.for_long()]))
        for broker in self.cluster.brokers.values():
            broker.thaw()

    def machine_and_server(self):
        broker = self.any_broker()
        self.nfs.tell(f"die {broker.node_id}")
        broker.kill()
        self.nfs.tell(self.chance.choice(["restart", "crash"]))
        self.nfs.tell(f"revive {broker.node_id}")
        broker.start()

    def server_restart(self):
        self.nfs.tell("restart")

    def server_stall(self):
        with self.nfs.stalled():
            last(self.chance.choice([self.briefly(), self.for_long()]))

    def mount_stall(self):
        with self.nfs.stalled(self.any_broker().node_id):
            last(self.briefly())

    def failed_sync(self):
        node_id = self.any_broker().node_id
        asked = int(self.nfs.tell(f"count {node_id} fsync"))
        self.nfs.tell(f"fail {node_id} fsync EIO {self.chance.randint(1, 3)} *{TOPIC}*")
        until(lambda: int(self.nfs.tell(f"count {node_id} fsync")) > asked, "a sync")
        self.nfs.tell(f"clear {node_id}")

    def full_volume(self):
        self.nfs.tell("size 4096")
        last(self.briefly())
        self.nfs.tell("size 0")

    def cut(self, broker, seconds):
        """From all, from brokers or from clients, in one direction or both."""
        others = [i for i in self.cluster.brokers if i != broker.node_id]
        ends = self.chance.choice([others, [*others, CLIENTS], [CLIENTS]])
        directions = self.chance.choice([(True, False), (False, True), (True, True)])
        broker.lost = True
        self.network.cut(*[(broker.node_id, end) for end in ends if directions[0]],
                         *[(end, broker.node_id) for end in ends if directions[1]])
        last(seconds)
        self.network.heal()
        broker.lost = False

    def cut_briefly(self):
        self.cut(self.any_broker(), self.briefly())

    def cut_follower(self):
        self.cut(self.follower(), self.for_long())

    def names(self):
        return sorted(name for name in vars(Faults)
                      if not name.startswith("_") and name not in HELPERS)


HELPERS = {"any_broker", "follower", "briefly", "for_long", "cut", "names"}


@pytest.fixture
def cluster(network, nfs_factory, cluster_factory):
    nfs = nfs_factory(3)
    for line in STALEST:
        nfs.tell(line)
    made = cluster_factory(3, QUICK, mounts=dict(enumerate(nfs.mounts, 1)), network=network)
    made.nfs = nfs
    return made


@pytest.mark.timeout(7200)
@pytest.mark.skipif(hosts.missing() is not None, reason=str(hosts.missing()))
def test_faults_by_chance(cluster, network, request):
    seed = int(os.environ.get("KAAS_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"KAAS_SEED={seed}")
    faults = Faults(cluster, network, random.Random(seed))
    done = []
    cluster.create_well(PAIRS, 2)
    pairs = PairWriter(cluster.bootstrap)
    print(cluster.home, cluster.nfs.home)
    with load(cluster) as clients, Prober(cluster, "probed") as prober:
        pairs.start()
        try:
            for _ in range(FAULTS_LONG if request.config.getoption("--long") else FAULTS):
                name = faults.chance.choice(faults.names())
                done.append(name)
                print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
                try:
                    getattr(faults, name)()
                    cluster.await_members({1, 2, 3})
                    for topic in (TOPIC, PAIRS, "probed"):
                        cluster.await_writable(topic)
                    clients.await_progress()
                    assert not prober.failures, prober.failures
                except (AssertionError, OSError, Closed) as failed:
                    raise AssertionError(f"seed {seed}, after {done}: {failed}\n{cluster.logs()}") from failed
        finally:
            pairs.stopping.set()
            pairs.join()
    prober.expect_linear()
    pairs.expect_atomic()
