"""Every client reads a heavily compacted topic to its end: holes between records, between batches and
between segments, batches without a record, every codec.
"""

import json
import time
import urllib.request

import clients
import pytest
import records
from kafka_wire.connection import Connection

pytestmark = pytest.mark.timeout(600)
TOPIC = "compacted"
SECONDS = 60
# Each writes the same keys again, so all but the last few of its records go.
WRITERS = [client for client in clients.WRITERS if client.name not in ("java", "kcat")]
WRITES = [(writer, codec) for codec in records.CODECS for writer in WRITERS] * 2


@pytest.fixture(scope="module")
def compacted(tmp_path_factory):
    """A broker with the topic, compacted to where it is still appended to; and the records that are left."""
    from broker import Broker
    broker = Broker(tmp_path_factory.mktemp("kaas"), {"log.cleaner.backoff.ms": "200"}).start()
    try:
        with Connection(broker.bootstrap) as connection:
            answer = connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [{
                "name": TOPIC, "num_partitions": 1, "replication_factor": 1, "configs": [
                    {"name": "cleanup.policy", "value": "compact"},
                    {"name": "min.cleanable.dirty.ratio", "value": "0"},
                    {"name": "internal.segment.bytes", "value": "9000"}]}]})
            assert answer["topics"][0]["error_code"] == 0, answer
        for writer, codec in WRITES:
            writer.produce(broker.bootstrap, TOPIC, codec)
        active = await_clean(broker)
        yield broker, survivors(active)
        broker.stop()
    finally:
        broker.kill()


def await_clean(broker):
    """The offset from which on nothing is compacted, once all before it is."""
    [topic] = (broker.directory / "data").glob(f"{TOPIC}.*")
    deadline = time.monotonic() + SECONDS
    while True:
        lines = [json.loads(line) for manifest in sorted((topic / "0").glob("*/manifest-*.jsonl"))
                 for line in manifest.read_text().splitlines()]
        clean_to = max((line.get("clean_to", 0) for line in lines), default=0)
        active = max(int(path.stem) for path in (topic / "0").glob("*/*.log"))
        if clean_to == active > 0:
            return active
        assert time.monotonic() < deadline, f"clean to {clean_to}, appended to from {active} on"
        time.sleep(0.05)


def survivors(active):
    rows = [{"offset": n * records.COUNT + i, "key": records.key(i), "value": records.value(codec, i),
             "header": records.header(i)}
            for n, (_, codec) in enumerate(WRITES) for i in range(records.COUNT)]
    last = {row["key"]: row["offset"] for row in rows if row["offset"] < active}
    return [row for row in rows if row["offset"] >= active or last[row["key"]] == row["offset"]]


@pytest.mark.parametrize("reader", clients.READERS, ids=lambda client: client.name)
def test_reads_to_the_end(compacted, reader):
    broker, left = compacted
    assert len(left) < len(WRITES) * records.COUNT / 5, "little was compacted: the test sees little"
    assert reader.consume(broker.bootstrap, TOPIC, len(left)) == left


def test_the_metrics_tell(compacted):
    broker, left = compacted
    text = urllib.request.urlopen(f"http://127.0.0.1:{broker.health_port}/metrics", timeout=10).read().decode()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(values['kaas_compaction_runs_total{result="done"}']) > 0
    assert float(values["kaas_compaction_records_dropped_total"]) >= len(WRITES) * records.COUNT - len(left)
    assert float(values["kaas_compaction_bytes_out_total"]) > 0
    assert float(values["kaas_compaction_uncleanable_partitions"]) == 0
    assert float(values['kaas_codec_record_decode_total{site="compaction"}']) > 0
