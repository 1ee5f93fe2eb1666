"""Apache's kafka-dump-log and our `kaas log dump` on the same files, side by side."""

import json
import pathlib
import re
import subprocess

import broker
from apache import tool_command

SECONDS = 120
FIELD = re.compile(r"(\w+): (\S+)")

# Our names for what kafka-dump-log prints.
BATCH = {"baseOffset": "base_offset", "lastOffset": "last_offset", "count": "count", "size": "size",
         "position": "position", "baseSequence": "base_sequence", "lastSequence": "last_sequence",
         "producerId": "producer_id", "producerEpoch": "producer_epoch", "CreateTime": "max_timestamp",
         "partitionLeaderEpoch": "partition_leader_epoch", "isTransactional": "transactional",
         "isControl": "control", "compresscodec": "compression", "magic": "magic", "crc": "crc"}
RECORD = {"offset": "offset", "CreateTime": "timestamp"}
INDEX = {"offset": "offset", "position": "position"}
TIME_INDEX = {"timestamp": "timestamp", "offset": "offset"}
ABORTED = {"version": "version", "producerId": "producer_id", "firstOffset": "first_offset",
           "lastOffset": "last_offset", "lastStableOffset": "last_stable_offset"}
PRODUCER = {"producerId": "producer_id", "producerEpoch": "producer_epoch",
            "coordinatorEpoch": "coordinator_epoch", "lastTimestamp": "last_timestamp"}


KINDS = {".log": BATCH, ".index": INDEX, ".timeindex": TIME_INDEX, ".txnindex": ABORTED, ".snapshot": PRODUCER}


def plain(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def theirs(paths):
    """What kafka-dump-log says of each file, in our names; a row each batch, record or entry."""
    done = subprocess.run(
        tool_command("kafka-dump-log", "--print-data-log", "--files", ",".join(map(str, paths))),
        capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    rows, path = {path: [] for path in paths}, None
    for line in done.stdout.splitlines():
        fields = dict(FIELD.findall(line))
        if line.startswith("Dumping "):
            path = pathlib.Path(line.removeprefix("Dumping "))
        elif line.startswith("|"):
            row = {ours: fields[name] for name, ours in RECORD.items()}
            row["value"] = line.partition(" payload: ")[2] or None
            rows[path].append(row)
        elif not line.startswith("Log starting offset") and not line.endswith(".index is empty."):
            assert fields and fields.get("isvalid", "true") == "true", line
            rows[path].append({ours: fields[name] for name, ours in KINDS[path.suffix].items()})
    return rows


def ours(paths):
    """The same of `kaas log dump`."""
    done = subprocess.run([broker.binary(), "log", "dump", "--records", "-o", "json", *paths], capture_output=True,
                          text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    rows = {path: [] for path in paths}
    for item in map(json.loads, done.stdout.splitlines()):
        path = pathlib.Path(item["file"])
        names = RECORD if item["item"] == "record" else KINDS[path.suffix]
        row = {name: plain(item[name]) for name in names.values()}
        if item["item"] == "record":
            row["value"] = item["value"]
        rows[path].append(row)
    return rows


def expect_agreement(paths):
    """Both read all of the files and see the same. The number of rows of each kind of file."""
    said, counts = theirs(paths), {}
    for path, rows in ours(paths).items():
        assert rows == said[path], path
        counts[path.suffix] = counts.get(path.suffix, 0) + len(rows)
    return counts
