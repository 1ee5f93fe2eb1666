"""Clients at work while a test breaks brokers, and the check of all that they were promised."""

import contextlib
import threading
import time

import confluent_kafka
from asking import until
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from ledger import Writer, expect_complete

TOPIC = "ledger"
PARTITIONS = 6
PLAIN = {4, 5}  # the others are written by idempotent producers
GROUPS = 3
SECONDS = 90
# A client asks elsewhere once a broker has been silent for so long.
SILENCE_MS = 4000
# Of a commit, while its coordinator is on its way.
AGAIN = {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.REQUEST_TIMED_OUT,
         KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError._TRANSPORT, KafkaError._WAIT_COORD,
         KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE}
REBALANCED = {KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS,
              KafkaError._ASSIGNMENT_LOST, KafkaError._NO_OFFSET}


class GroupReader(threading.Thread):
    """The one member of a group: reads all partitions, and commits what it has read."""

    def __init__(self, bootstrap, group):
        super().__init__()
        self.group = group
        self.seen = {}  # (partition, offset): number
        self.committed = {}  # partition: offset, acknowledged
        self.returned = []  # where an assignment began before what was committed
        self.errors = []
        self.assignments = 0
        self.resumed = {}  # partition: least offset that may come first after an assignment
        self.stopping = threading.Event()
        self.consumer = confluent_kafka.Consumer({
            "bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50, "reconnect.backoff.max.ms": 200,
            "session.timeout.ms": 45000, "socket.timeout.ms": SILENCE_MS, "isolation.level": "read_committed",
            "error_cb": lambda e: e.fatal() and self.errors.append(e)})
        self.consumer.subscribe([TOPIC], on_assign=self.assigned)

    def assigned(self, _, partitions):
        self.assignments += 1
        self.resumed = {p.partition: self.committed.get(p.partition, 0) for p in partitions}

    def run(self):
        while not self.stopping.is_set():
            read = {}
            for message in self.consumer.consume(200, timeout=0.1):
                if message.error() is not None:
                    self.errors.append(message.error())
                    continue
                partition, offset = message.partition(), message.offset()
                least = self.resumed.pop(partition, 0)
                if offset < least:
                    self.returned.append((partition, offset, least))
                self.seen[partition, offset] = int(message.value())
                read[partition] = offset + 1
            if read:
                self.commit(read)
        self.consumer.close()

    def commit(self, read):
        wanted = [TopicPartition(TOPIC, p, offset) for p, offset in read.items()]
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                results = self.consumer.commit(offsets=wanted, asynchronous=False)
                refused = [p.error for p in results if p.error is not None]
                if not refused:
                    self.committed |= read
                    return
                code, error = refused[0].code(), refused[0]
            except KafkaException as failed:
                code, error = failed.args[0].code(), failed.args[0]
            if code in REBALANCED:
                return
            if code not in AGAIN or time.monotonic() > deadline:
                self.errors.append(error)
                return
            self.stopping.wait(0.02)


class Load:
    """Writers of every partition and members of three groups."""

    def __init__(self, cluster, partitions=PARTITIONS):
        self.cluster = cluster
        silence = {"socket.timeout.ms": SILENCE_MS, "request.timeout.ms": SILENCE_MS}
        self.writers = [Writer(cluster.bootstrap, TOPIC, p not in PLAIN, partition=p, config=silence)
                        for p in range(partitions)]
        self.readers = [GroupReader(cluster.bootstrap, f"readers-{g}") for g in range(GROUPS)]

    def start(self):
        for writer in self.writers:
            writer.start()
        for reader in self.readers:
            reader.start()
        self.await_progress()

    def stop(self):
        for writer in self.writers:
            writer.stopping.set()
        for writer in self.writers:
            writer.join()
        for reader in self.readers:
            reader.stopping.set()
        for reader in self.readers:
            reader.join()

    def await_progress(self, partitions=None, seconds=SECONDS):
        """Each partition acknowledges what was sent after now, and each group commits."""
        writers = [w for w in self.writers if partitions is None or w.partition in partitions]
        sent = {w.partition: w.sent for w in writers}

        def missing():
            return [w.partition for w in writers
                    if not any(n in w.acknowledged for n in range(sent[w.partition], w.sent))]
        until(missing, "every partition acknowledges", lambda late: not late, seconds)
        if partitions is None:
            known = [sum(r.committed.values()) for r in self.readers]
            until(lambda: [r.group for r, k in zip(self.readers, known, strict=True)
                           if sum(r.committed.values()) <= k],
                  "every group commits", lambda late: not late, seconds)

    def expect_nothing_lost(self):
        """After the clients have stopped, on a cluster that is whole again."""
        self.cluster.await_writable(TOPIC)
        at = {}
        for writer in self.writers:
            found = expect_complete(self.cluster.bootstrap, TOPIC, writer, writer.partition not in PLAIN)
            at |= {(writer.partition, offset): number for offset, number in found.items()}
        for reader in self.readers:
            assert not reader.errors, (reader.group, reader.errors[:5])
            assert not reader.returned, f"{reader.group} began before what it had committed: {reader.returned}"
            changed = [where for where, number in reader.seen.items() if at.get(where) != number]
            assert not changed, f"{len(changed)} records that were read have changed or are gone: {changed[:5]}"
            self.expect_committed(reader)

    def expect_committed(self, reader):
        asked = {"groups": [{"group_id": reader.group, "topics": [
            {"name": TOPIC, "partition_indexes": list(range(len(self.writers)))}]}]}

        def ask():
            coordinator = self.cluster.coordinator(reader.group)
            return self.cluster.call("OffsetFetch", 8, asked, coordinator)["groups"][0]
        group = until(ask, f"offsets of {reader.group}", lambda g: g["error_code"] == 0)
        found = {p["partition_index"]: p["committed_offset"] for p in group["topics"][0]["partitions"]}
        lost = {p: (o, found[p]) for p, o in reader.committed.items() if found[p] < o}
        assert not lost, f"{reader.group}: committed and gone: {lost}"


@contextlib.contextmanager
def load(cluster, partitions=PARTITIONS):
    """Clients at work; when the block is left well, nothing that they were promised may be missing."""
    cluster.create_well(TOPIC, partitions)
    work = Load(cluster, partitions)
    try:
        work.start()
        yield work
        work.await_progress()
    finally:
        work.stop()
    work.expect_nothing_lost()
