"""Two clients of one partition that write down all that they ask and are told, for the checker in linear.py.

    with Prober(cluster, "probed") as prober:
        ...                                  # faults
    prober.expect_linear()

They speak the protocol themselves, so that nothing repeats, waits or forgets for them. A batch is one record; its
base timestamp is its number, so that headers alone tell what was read.
"""

import contextlib
import threading
import time

from asking import until
from kafka_wire.batch import Batch, headers
from kafka_wire.connection import Closed, Connection
from linear import History

SECONDS = 90
# A host that was lost must not keep a client for long: it asks elsewhere.
PATIENCE = 3
REFUSED = {3, 5, 6, 7, 13, 14, 15, 16, 41, 56, 74, 75, 76}


class Prober:
    def __init__(self, cluster, topic):
        self.cluster, self.topic = cluster, topic
        self.history = History()
        self.stopping = threading.Event()
        self.failures = []

    def __enter__(self):
        # Records that are numbered by their timestamps are of 1970.
        self.cluster.create_well(self.topic, 1, configs={"retention.ms": "-1"})
        answer = until(lambda: self.cluster.call("InitProducerId", 4, {
            "transactional_id": None, "transaction_timeout_ms": 60000, "producer_id": -1, "producer_epoch": -1}),
            "a producer id", lambda a: a["error_code"] == 0)
        self.producer = answer["producer_id"], answer["producer_epoch"]
        self.threads = [threading.Thread(target=self.insist, args=(work,)) for work in (self.write, self.read)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def insist(self, work):
        """Each thread asks over a connection of its own, which is made anew after any trouble."""
        try:
            work(Asking(self.cluster, self.topic))
        except BaseException as failure:
            self.failures.append(failure)

    def write(self, asking):
        number = 0
        while not self.stopping.is_set():
            batch = Batch(base_timestamp=number, producer_id=self.producer[0], producer_epoch=self.producer[1],
                          base_sequence=number).build()
            body = {"transactional_id": None, "acks": -1, "timeout_ms": 10000, "topic_data": [
                {"name": self.topic, "partition_data": [{"index": 0, "records": batch}]}]}
            begun, deadline = time.monotonic(), time.monotonic() + SECONDS
            while True:
                answer = asking.ask("Produce", 9, body)
                found = answer and answer["responses"][0]["partition_responses"][0]
                if found and found["error_code"] == 0:
                    break
                assert not found or found["error_code"] in REFUSED, found
                assert time.monotonic() < deadline, f"record {number} is not acknowledged: {found}"
            self.history.append(number, begun, time.monotonic(), found["base_offset"], (*self.producer, number))
            number += 1

    def read(self, asking):
        """Now from the end, now from some place before it."""
        end, turn = 0, 0
        while not self.stopping.is_set():
            turn += 1
            offset = end if turn % 4 else (turn * 7919) % (end + 1)
            begun = time.monotonic()
            answer = asking.ask("Fetch", 11, {
                "max_wait_ms": 20, "min_bytes": 1, "max_bytes": 1 << 20, "topics": [{"topic": self.topic, "partitions": [
                    {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 16}]}]})
            found = answer and answer["responses"] and answer["responses"][0]["partitions"][0]
            if not found or found["error_code"] in REFUSED:
                continue
            # Also out of range: it says that the log is shorter than what was read before.
            assert found["error_code"] == 0, (
                f"{time.strftime('%H:%M:%S')} read up to {end}, and at {offset}: {found} of {asking.leader}")
            values = self.values_from(offset, found["records"] or b"")
            self.history.read(offset, values, begun, time.monotonic(), found["high_watermark"])
            end = offset + len(values) if turn % 4 else end

    def values_from(self, offset, records):
        found = [(h.base_offset, h.base_timestamp) for h in headers(records) if h.base_offset >= offset]
        assert [at for at, _ in found] == list(range(offset, offset + len(found))), "offsets have a gap"
        return [value for _, value in found]

    def log(self):
        """All that is there, once nobody writes any more."""
        asking, values, deadline = Asking(self.cluster, self.topic), [], time.monotonic() + SECONDS
        while True:
            assert time.monotonic() < deadline, f"no end within {SECONDS} s"
            answer = asking.ask("Fetch", 11, {
                "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": [{"topic": self.topic, "partitions": [
                    {"partition": 0, "fetch_offset": len(values), "partition_max_bytes": 1 << 20}]}]})
            found = answer and answer["responses"] and answer["responses"][0]["partitions"][0]
            if not found or found["error_code"] in REFUSED:
                continue
            assert found["error_code"] == 0, found
            values += self.values_from(len(values), found["records"] or b"")
            if len(values) >= found["high_watermark"]:
                return values

    def expect_linear(self):
        assert not self.failures, self.failures
        assert self.history.acknowledged and self.history.reads
        faults = self.history.faults(self.log())
        assert not faults, f"{len(faults)} faults: {faults[:5]}"


class Asking:
    """One request at a time to whoever is said to lead."""

    def __init__(self, cluster, topic):
        self.cluster, self.topic = cluster, topic
        self.connection = self.leader = None

    def ask(self, api, version, body):
        """None when there was no answer: what was asked may have happened, or may yet."""
        try:
            if self.connection is None:
                leader = self.cluster.leaders(self.topic, timeout=PATIENCE).get(0, -1)
                if leader not in self.cluster.brokers:
                    return None
                self.connection = Connection(self.cluster.broker(leader).bootstrap, timeout=PATIENCE)
                self.leader = leader
            answer = self.connection.call(api, version, body)
        except (OSError, Closed, IndexError):
            self.drop()
            return None
        first = answer["responses"][0] if answer["responses"] else {}
        errors = {p["error_code"] for p in [*first.get("partition_responses", []), *first.get("partitions", [])]}
        if errors & REFUSED:
            self.drop()
        return answer

    def drop(self):
        connection, self.connection = self.connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.close()
