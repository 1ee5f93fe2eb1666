"""The journal of a coordinator's slot in the hands of a person: read, mended, broken."""

import json
import pathlib
import re
import subprocess
import time

import pytest
from asking import health
from broker import binary
from kafka_wire.connection import Connection

GROUP, TOPIC = "orders-app", "orders"


def java_hash(text: str) -> int:
    value = 0
    for unit in text:
        value = (31 * value + ord(unit)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def slot_of(group: str) -> int:
    return abs(java_hash(group)) % 50


def newest_journal(kaas, slot: int) -> pathlib.Path:
    """The file that the next start reads: of the highest epoch that has been written."""
    files = [file for file in (kaas.directory / "data" / "__cluster" / "groups" / str(slot)).rglob("slot-*.jsonl")
             if file.stat().st_size > 0]
    return max(files, key=lambda file: (file.parent.name, int(file.stem.removeprefix("slot-"))))


def prepare(kaas):
    with Connection(kaas.bootstrap) as connection:
        connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [
            {"name": TOPIC, "num_partitions": 2, "replication_factor": 1}]})


def commit(kaas, group: str, offset: int, partition: int = 0) -> None:
    with Connection(kaas.bootstrap) as connection:
        connection.call("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": [group]})
        answer = connection.call("OffsetCommit", 8, {
            "group_id": group, "generation_id_or_member_epoch": -1, "member_id": "",
            "topics": [{"name": TOPIC, "partitions": [
                {"partition_index": partition, "committed_offset": offset,
                 "committed_leader_epoch": -1, "committed_metadata": "by hand"}]}]})
    assert answer["topics"][0]["partitions"][0]["error_code"] == 0, answer


def once_loaded(ask) -> dict:
    """Asks until no slot is on its way any more, as clients do."""
    deadline = time.monotonic() + 60
    while (answer := ask())["error_code"] == 14 and time.monotonic() < deadline:
        time.sleep(0.005)
    return answer


def committed(kaas, group: str, partition: int = 0) -> tuple[int, int]:
    """The error and the offset."""
    with Connection(kaas.bootstrap) as connection:
        answer = once_loaded(lambda: connection.call("OffsetFetch", 8, {"groups": [
            {"group_id": group, "topics": [{"name": TOPIC, "partition_indexes": [partition]}]}]})["groups"][0])
    if answer["error_code"]:
        return answer["error_code"], -1
    found = answer["topics"][0]["partitions"][0]
    return found["error_code"], found["committed_offset"]


def listed(connection) -> list[str]:
    answer = once_loaded(lambda: connection.call("ListGroups", 4, {}))
    assert answer["error_code"] == 0, answer
    return [group["group_id"] for group in answer["groups"]]


def without_checksum(line: str) -> str:
    return re.sub(r',"crc":"?\w+"?', "", line)


def test_every_line_is_json_that_names_what_it_is_about(kaas):
    prepare(kaas)
    commit(kaas, GROUP, 5)
    kaas.stop()
    lines = newest_journal(kaas, slot_of(GROUP)).read_text().splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)
    assert any(GROUP in line and TOPIC in line and "by hand" in line for line in lines)


def test_an_offset_that_was_mended_by_hand_is_the_one_that_counts(kaas):
    prepare(kaas)
    commit(kaas, GROUP, 41)
    commit(kaas, GROUP, 77, partition=1)
    kaas.stop()
    journal = newest_journal(kaas, slot_of(GROUP))
    lines = journal.read_text().splitlines()
    mended = [without_checksum(line.replace("41", "23")) if "by hand" in line and "41" in line else line
              for line in lines]
    assert mended != lines
    journal.write_text("\n".join(mended) + "\n")
    kaas.start()
    assert committed(kaas, GROUP) == (0, 23)
    assert committed(kaas, GROUP, partition=1) == (0, 77)
    commit(kaas, GROUP, 24)
    kaas.stop()
    kaas.start()
    assert committed(kaas, GROUP) == (0, 24)


def test_an_edit_that_keeps_its_old_checksum_is_refused_by_name(kaas):
    prepare(kaas)
    commit(kaas, GROUP, 41)
    kaas.stop()
    journal = newest_journal(kaas, slot_of(GROUP))
    journal.write_text(journal.read_text().replace("41", "23"))
    kaas.start()
    assert committed(kaas, GROUP)[0] != 0
    assert f"{journal.relative_to(kaas.directory / 'data')} at byte" in kaas.log()


@pytest.mark.parametrize("broken", ['{"offset":"of nothing"}', '{"group":17}', "no json"])
def test_a_slot_with_a_line_that_means_nothing_is_offline_and_the_others_serve(kaas, broken):
    other = next(name for name in (f"other-{i}" for i in range(99)) if slot_of(name) != slot_of(GROUP))
    prepare(kaas)
    commit(kaas, GROUP, 5)
    commit(kaas, other, 6)
    kaas.stop()
    journal = newest_journal(kaas, slot_of(GROUP))
    good = journal.read_text()
    lines = good.splitlines()
    at = next(i for i, line in enumerate(lines) if "by hand" in line)
    journal.write_text("\n".join(lines[:at + 1] + [broken] + lines[at + 1:]) + "\n")
    kaas.start()
    assert committed(kaas, other) == (0, 6)
    with Connection(kaas.bootstrap) as connection:
        assert committed(kaas, GROUP)[0] == 16, "NOT_COORDINATOR: clients look for it"
        found = connection.call("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": [GROUP, other]})
        assert [one["error_code"] for one in found["coordinators"]] == [0, 0], "on 15 Java's admin does not pause"
        beat = {"group_id": GROUP, "generation_id": 1, "member_id": "m"}
        assert connection.call("Heartbeat", 4, beat)["error_code"] == 16, "members do not think that all is well"
        assert listed(connection) == [other]
    assert (health(kaas)["slots_offline"], health(kaas)["status"]) == (1, "degraded")
    said = [line for line in kaas.log().splitlines()
            if f"{journal.relative_to(kaas.directory / 'data')} at byte" in line]
    assert len(said) == 1, kaas.log()
    place = int(re.search(r"at byte (\d+)", said[0])[1])
    assert journal.read_text()[place:].startswith(broken)
    kaas.stop()
    journal.write_text(good)
    kaas.start()
    assert committed(kaas, GROUP) == (0, 5)


def check(directory: pathlib.Path) -> tuple[int, str]:
    done = subprocess.run([binary(), "log", "check", directory], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_log_check_names_the_line_that_a_start_would_refuse(kaas):
    prepare(kaas)
    commit(kaas, GROUP, 5)
    kaas.stop()
    data = kaas.directory / "data"
    code, said = check(data)
    assert code == 0 and re.search(r", \d+ slots: all is well", said), said
    journal = newest_journal(kaas, slot_of(GROUP))
    lines = journal.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if "by hand" in line) + 1
    journal.write_text("".join(lines[:at]) + '{"group":17}\n' + "".join(lines[at:]))
    code, said = check(data)
    assert code == 1 and f"{journal} at byte {len(''.join(lines[:at]).encode())}: " in said, said
