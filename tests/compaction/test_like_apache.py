"""The same batches, compacted by kaas and by Apache: Apache's kafka-dump-log reads both and sees the same.

What may differ is left out: where in which file a batch stands (segments roll and are joined at other
moments), when tombstones may go (each cleans at its own time), and size and checksum of what was packed
anew by another library.
"""

import json
import os
import pathlib
import re
import subprocess
import time

import pytest
from apache import Apache, tool_command
from asking import until
from dump_log import expect_agreement
from kafka_wire.batch import CODECS, Batch
from kafka_wire.connection import Connection

pytestmark = pytest.mark.timeout(600)
TOPIC = "compacted"
SECONDS = 120
CONFIGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "internal.segment.bytes": "3000",
           "index.interval.bytes": "300", "file.delete.delay.ms": "0"}
BEGAN_MS = int(time.time() * 1000) - 100_000


def create(bootstrap):
    with Connection(bootstrap) as connection:
        answer = connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [{
            "name": TOPIC, "num_partitions": 1, "replication_factor": 1,
            "configs": [{"name": name, "value": value} for name, value in CONFIGS.items()]}]})
        assert answer["topics"][0]["error_code"] == 0, answer


def produce(bootstrap, batches):
    with Connection(bootstrap) as connection:
        for batch in batches:
            answer = connection.call("Produce", 9, {
                "transactional_id": None, "acks": -1, "timeout_ms": 30000, "topic_data": [
                    {"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}]})
            partition = answer["responses"][0]["partition_responses"][0]
            assert partition["error_code"] == 0, partition


def history(rounds, first):
    """Keys that come again, others that come once, tombstones, packed batches, idempotent producers."""
    batches, sequences = [], {}
    for i in range(first, first + rounds):
        keys = [f"key-{(i * 7 + j * 3) % 11}".encode() for j in range(1 + i % 4)] + [f"once-{i}".encode()]
        values = [None if (i + j) % 5 == 0 else f"value-{i}-{j}".encode() * 3 for j in range(len(keys))]
        batch = Batch(values=values, keys=keys, base_timestamp=BEGAN_MS + i * 10,
                      timestamps=[BEGAN_MS + i * 10 + (j * 7) % 5 for j in range(len(keys))],
                      attributes=CODECS["gzip"] if i % 3 == 0 else 0)
        if i % 4 == 1:
            producer = 1000 + first + i % 3
            batch.producer_id, batch.producer_epoch = producer, 0
            batch.base_sequence = sequences.get(producer, 0)
            sequences[producer] = batch.base_sequence + len(keys)
        batches.append(batch.build())
    return batches


def kaas_partition(data: pathlib.Path) -> pathlib.Path:
    [topic] = data.glob(f"{TOPIC}.*")
    return topic / "0"


def kaas_state(partition: pathlib.Path):
    """How far the log is clean, and names that left it while their files are still there."""
    clean_to, gone = -1, set()
    for manifest in sorted(partition.glob("*/manifest-*.jsonl")):
        for line in map(json.loads, manifest.read_text().splitlines()):
            clean_to = max(clean_to, line.get("clean_to", -1))
            gone |= {tuple(name) for key in ("swap", "drop") for name in line.get(key, [])}
            gone -= {tuple(name) for name in line.get("reclaimed", [])}
    return clean_to, gone


def segments(partition: pathlib.Path):
    """By offset. Directories of earlier compactions may go while this looks: os.walk does not mind."""
    return sorted((pathlib.Path(folder, name) for folder, _, names in os.walk(partition) for name in names
                   if name.endswith(".log")), key=lambda path: path.name)


def kaas_is_clean(partition):
    clean_to, gone = kaas_state(partition)
    files = segments(partition)
    return not gone and clean_to == int(files[-1].stem) > 0


def apache_is_clean(data):
    checkpoint = data / "cleaner-offset-checkpoint"
    rows = checkpoint.read_text().splitlines() if checkpoint.exists() else []
    clean_to = max((int(row.split()[2]) for row in rows if row.startswith(f"{TOPIC} 0 ")), default=-1)
    return clean_to == int(segments(data / f"{TOPIC}-0")[-1].stem) > 0


FIELD = re.compile(r"(\w+): (\S+)")


def dump(files):
    """What kafka-dump-log says of each batch and record, without what may differ."""
    done = subprocess.run(
        tool_command("kafka-dump-log", "--print-data-log", "--files", ",".join(map(str, files))),
        capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    rows = []
    for line in done.stdout.splitlines():
        fields = dict(FIELD.findall(line))
        if line.startswith("baseOffset:"):
            assert fields["isvalid"] == "true", line
            fields.pop("position")
            fields["deleteHorizonMs"] = "deleteHorizonMs" in fields
            if fields["compresscodec"] != "none" or fields["deleteHorizonMs"]:
                fields.pop("size"), fields.pop("crc")
            rows.append(fields)
        elif line.startswith("|"):
            rows.append(line)
    return rows


def check_indexes(files):
    """Apache's own checks of our indexes: it reads each entry and what it points to."""
    indexes = [f"{path.parent}/{path.stem}{suffix}" for path in files for suffix in (".index", ".timeindex")
               if pathlib.Path(f"{path.parent}/{path.stem}{suffix}").exists()]
    assert indexes
    done = subprocess.run(tool_command("kafka-dump-log", "--index-sanity-check", "--files", ",".join(indexes)),
                          capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    passed, empty = (done.stdout.count(said) for said in ("passed sanity check", ".index is empty."))
    assert passed + empty == len(indexes) and passed > len(indexes) / 2, done.stdout


def test_both_leave_the_same(kaas_factory):
    kaas = kaas_factory({"log.cleaner.backoff.ms": "300"})
    with Apache(settings={"log.cleaner.backoff.ms": "300"}) as apache:
        for bootstrap in (kaas.bootstrap, apache.bootstrap):
            create(bootstrap)
        partition, data = kaas_partition(kaas.directory / "data"), apache.data_dir
        for stage, first in enumerate((0, 300, 600)):
            batches = history(300 if stage == 0 else 60, first)
            for bootstrap in (kaas.bootstrap, apache.bootstrap):
                produce(bootstrap, batches)
            until(lambda: kaas_is_clean(partition), "kaas is clean", seconds=SECONDS)
            until(lambda: apache_is_clean(data), "Apache is clean", seconds=SECONDS)
            ours, theirs = dump(segments(partition)), dump(segments(data / f"{TOPIC}-0"))
            assert ours == theirs, f"stage {stage}"
            records = sum(isinstance(row, str) for row in ours)
            assert 100 < records < (first + 300) * 2, "little was compacted: the test sees little"
            check_indexes(segments(partition)[:-1])
            assert expect_agreement(segments(partition)) == {".log": len(ours)}
