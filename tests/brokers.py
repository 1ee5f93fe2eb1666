"""Several kaas brokers on one data directory, as a cluster of a test's own.

    cluster = cluster_factory(3)             # broker ids 1 to 3, started at once
    cluster.create("orders", partitions=6)
    cluster.broker(cluster.controller()).kill()
    cluster.await_writable("orders")

Every question goes over the wire to a broker that answers; a wait is a bounded poll for a condition.
"""

import concurrent.futures
import contextlib
import pathlib
import signal
import tempfile

import pytest
from asking import health, until
from broker import Broker, free_port
from kafka_wire.batch import Batch
from kafka_wire.connection import Connection

# Bounds for a machine under load: from a broker's death to all partitions elsewhere.
WRITABLE_SECONDS = 60


class ClusterBroker(Broker):
    """One member: a log and ports of its own, and the directory that all share."""

    def __init__(self, home, data, node_id, settings, network=None):
        if network:
            self.host, self.prefix = network.address(node_id), network.command(node_id)
        own = pathlib.Path(home) / f"broker-{node_id}-{free_port()}"
        own.mkdir()
        internal = free_port()
        super().__init__(own, {
            "kaas.mode": "volume", "node.id": str(node_id), "log.dirs": str(data),
            "kaas.internal.listener": f"{self.host}:{internal}",
            "kaas.internal.advertised": f"{self.host}:{internal}", **settings})
        self.node_id = node_id
        self.frozen = False
        self.lost = False  # a fault has it, and it is not asked

    @property
    def running(self):
        return self.process is not None and not self.frozen and not self.lost

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)
        self.frozen = False

    def kill(self):
        super().kill()
        self.frozen = False


class Cluster:
    """N brokers. `brokers` is by id; those that were killed or stopped can be started again.

    `mounts`: where each sees the shared directory, by id; without it all see the same one. `network`: each
    runs on the host of its id there.
    """

    def __init__(self, home, count=3, settings=None, mounts=None, network=None):
        self.home = pathlib.Path(home)
        self.mounts = mounts
        self.network = network
        self.data = self.home / "data"
        self.settings = dict(settings or {})
        self.brokers = {}
        for node_id in range(1, count + 1):
            self.add(node_id)

    def make(self, node_id, settings=None):
        """A process on the same directory that is not one of `brokers`."""
        data = self.mounts[node_id] if self.mounts else self.data
        return ClusterBroker(self.home, data, node_id, {**self.settings, **(settings or {})}, self.network)

    def add(self, node_id, settings=None):
        """One more, not started yet."""
        self.brokers[node_id] = self.make(node_id, settings)
        return self.brokers[node_id]

    def broker(self, node_id):
        return self.brokers[node_id]

    def start(self, ids=None):
        """All at once, as a machine that boots starts them."""
        ids = list(ids or self.brokers)
        with concurrent.futures.ThreadPoolExecutor(len(ids)) as pool:
            list(pool.map(lambda i: self.brokers[i].start(), ids))
        return self

    def kill(self):
        for broker in self.brokers.values():
            broker.kill()

    def stop(self):
        """SIGTERM to all at once; each must leave well."""
        running = [b for b in self.brokers.values() if b.process is not None]
        for broker in running:
            if broker.frozen:
                broker.thaw()
        with concurrent.futures.ThreadPoolExecutor(max(len(running), 1)) as pool:
            list(pool.map(lambda b: b.stop(), running))

    @property
    def running(self):
        return [b for b in self.brokers.values() if b.running]

    @property
    def bootstrap(self):
        return ",".join(b.bootstrap for b in self.brokers.values())

    def logs(self):
        return "\n".join(f"--- broker {i}\n{b.log()[-3000:]}" for i, b in self.brokers.items())

    # Questions.

    def call(self, api, version, body, through=None, timeout=20):
        """One request to a broker; without `through`, to the first that runs."""
        broker = self.brokers[through] if through is not None else self.running[0]
        with Connection(broker.bootstrap, timeout=timeout) as connection:
            return connection.call(api, version, body)

    def metadata(self, topics=None, through=None, timeout=20):
        asked = None if topics is None else [{"name": name} for name in topics]
        return self.call("Metadata", 12, {"topics": asked, "allow_auto_topic_creation": False}, through, timeout)

    def members(self, through=None):
        """Ids of the brokers that clients are told of."""
        return {b["node_id"] for b in self.metadata([], through)["brokers"]}

    def cluster_id(self, through=None):
        return self.metadata([], through)["cluster_id"]

    def leaders(self, topic, through=None, timeout=20):
        """{partition: leader id}, -1 where there is none."""
        found, = self.metadata([topic], through, timeout)["topics"]
        return {p["partition_index"]: p["leader_id"] for p in found["partitions"]}

    def led(self, topic, through=None):
        """{broker id: partitions that it leads}"""
        led = {}
        for partition, leader in self.leaders(topic, through).items():
            led.setdefault(leader, set()).add(partition)
        return led

    def controller(self, among=None):
        """The id of the one running broker that says that it reigns."""
        def reigning():
            says = {}
            for broker in self.running:
                if among is None or broker.node_id in among:
                    with contextlib.suppress(OSError):
                        says[broker.node_id] = health(broker)["is_controller"]
            return [i for i, reigns in says.items() if reigns]
        found, = until(reigning, "one controller", lambda ids: len(ids) == 1)
        return found

    def coordinator(self, group, through=None):
        def ask():
            answer = self.call("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": [group]}, through)
            return answer["coordinators"][0]
        return until(ask, f"a coordinator of {group}", lambda c: c["error_code"] == 0)["node_id"]

    # Administration.

    def create(self, topic, partitions=1, through=None, configs=None):
        answer = self.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [{
            "name": topic, "num_partitions": partitions, "replication_factor": -1,
            "configs": [{"name": k, "value": v} for k, v in (configs or {}).items()]}]}, through, 60)
        return answer["topics"][0]

    def create_well(self, topic, partitions=1, through=None, configs=None):
        answer = self.create(topic, partitions, through, configs)
        assert answer["error_code"] == 0, answer
        self.await_writable(topic)

    def delete(self, topic, through=None):
        answer = self.call("DeleteTopics", 6, {"timeout_ms": 30000, "topics": [
            {"name": topic}]}, through, 60)
        return answer["responses"][0]

    # Waits.

    def await_members(self, ids, seconds=WRITABLE_SECONDS):
        """Until every running broker tells clients of these and no others."""
        for broker in self.running:
            until(lambda b=broker: self.members(b.node_id), f"broker {broker.node_id} knows {ids}",
                  lambda known: known == set(ids), seconds)

    def await_leaders(self, topic, wanted, seconds=WRITABLE_SECONDS, through=None):
        """Until `wanted({broker: partitions})` holds."""
        return until(lambda: self.led(topic, through), f"leaders of {topic}", wanted, seconds)

    def await_writable(self, topic, seconds=WRITABLE_SECONDS):
        """Until the leader that metadata names serves each partition."""
        def refused():
            leaders = self.leaders(topic)
            wrong = {p: "no leader" for p, leader in leaders.items()
                     if leader not in self.brokers or not self.brokers[leader].running}
            for leader in set(leaders.values()) - {-1}:
                mine = [p for p in leaders if leaders[p] == leader and p not in wrong]
                if mine:
                    wrong |= self._refusals(topic, mine, leader)
            return wrong or not leaders
        until(refused, f"{topic} is writable", lambda wrong: not wrong, seconds)

    def _refusals(self, topic, partitions, leader):
        answer = self.call("ListOffsets", 7, {"replica_id": -1, "isolation_level": 0, "topics": [{
            "name": topic, "partitions": [{"partition_index": p, "timestamp": -1} for p in partitions]}]},
            leader)
        return {p["partition_index"]: p["error_code"] for p in answer["topics"][0]["partitions"]
                if p["error_code"] != 0}

    def append(self, topic, partition, values, through):
        """One batch; the answer's error code and base offset, whoever leads."""
        answer = self.call("Produce", 9, {"acks": -1, "timeout_ms": 10000, "topic_data": [{
            "name": topic, "partition_data": [{"index": partition, "records": Batch(values=values).build()}]}]},
            through)
        found = answer["responses"][0]["partition_responses"][0]
        return found["error_code"], found["base_offset"]


@pytest.fixture
def cluster_factory():
    """Makes clusters; what still lives at the end is stopped, and must stop well, if the test went well."""
    with contextlib.ExitStack() as cleanup:
        def make(count=3, settings=None, home=None, start=True, mounts=None, network=None):
            home = home or cleanup.enter_context(tempfile.TemporaryDirectory(prefix="kaas-"))
            cluster = Cluster(home, count, settings, mounts, network)
            cleanup.callback(cluster.kill)
            if start:
                cluster.start()
                cluster.await_members(cluster.brokers)
                cleanup.push(lambda kind, *_: kind is None and cluster.stop())
            return cluster
        yield make
