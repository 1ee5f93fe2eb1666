"""Apache's console tools for groups: kafka-consumer-groups in all its verbs, kafka-groups, the console
consumer in a group, the verifiable consumer and producer."""

import datetime
import json
import re
import subprocess
import time

import apache
import confluent_kafka
import pytest
from kafka_wire.connection import Connection

pytestmark = pytest.mark.timeout(180)
PARTITIONS, RECORDS = 2, 10
BEGAN = int(time.time()) - 3600


@pytest.fixture
def tool(kaas_or_other, tools):
    def run(name, *arguments):
        code, printed = tools.run(name, "--bootstrap-server", kaas_or_other.bootstrap, *arguments)
        assert code == 0, printed
        return printed
    return run


@pytest.fixture
def groups(tool):
    """kafka-consumer-groups; its exit code is 0 whatever happens."""
    def run(*arguments):
        return tool("kafka-consumer-groups", *arguments)
    return run


def rows(shown, first):
    """The lines of a table as dictionaries; its head line begins with `first`."""
    lines = [line.split() for line in shown.splitlines() if line.strip()]
    head = next(i for i, words in enumerate(lines) if words[0] == first)
    # What it warns of stands between and behind.
    return [dict(zip(lines[head], words)) for words in lines[head + 1:]
            if len(words) >= len(lines[head]) and not words[0].startswith("[")]


@pytest.fixture
def filled(kaas_or_other, topic):
    """A topic with RECORDS in each partition, a second apart in time, from BEGAN on."""
    def make(name):
        topic(name, PARTITIONS)
        producer = confluent_kafka.Producer({"bootstrap.servers": kaas_or_other.bootstrap})
        for partition in range(PARTITIONS):
            for i in range(RECORDS):
                producer.produce(name, value=str(i), partition=partition, timestamp=(BEGAN + i) * 1000)
        assert producer.flush(30) == 0
        return name
    return make


def consumer(kaas, group, **more):
    return confluent_kafka.Consumer({"bootstrap.servers": kaas.bootstrap, "group.id": group,
                                     "auto.offset.reset": "earliest", "enable.auto.commit": False, **more})


def commit(kaas, group, topic, offset):
    """As a simple consumer, which is no member."""
    simple = consumer(kaas, group)
    simple.commit(offsets=[confluent_kafka.TopicPartition(topic, i, offset) for i in range(PARTITIONS)],
                  asynchronous=False)
    simple.close()


@pytest.fixture
def member(kaas_or_other, request):
    """A member of a group that has got its partitions."""
    def join(group, topic, **more):
        found = consumer(kaas_or_other, group, **more)
        request.addfinalizer(found.close)
        found.subscribe([topic])
        for _ in range(600):
            found.poll(0.1)
            if found.assignment():
                return found
        raise AssertionError("no partitions in a minute")
    return join


def test_groups_are_listed_by_state_and_type(kaas_or_other, groups, tool, filled, member):
    name = filled("listed")
    member("listed-live", name)
    commit(kaas_or_other, "listed-empty", name, 3)
    assert {"listed-live", "listed-empty"} <= set(groups("--list").split())
    states = {row["GROUP"]: row for row in rows(groups("--list", "--state"), "GROUP")}
    assert states["listed-live"]["STATE"] == "Stable" and states["listed-empty"]["STATE"] == "Empty"
    empty = groups("--list", "--state", "empty")
    assert "listed-empty" in empty and "listed-live" not in empty
    classic = groups("--list", "--type", "classic")
    assert "listed-live" in classic and "Classic" in classic
    assert "listed-live" not in groups("--list", "--type", "consumer")
    shown = {row["GROUP"]: row for row in rows(tool("kafka-groups", "--list"), "GROUP")}
    assert shown["listed-live"]["PROTOCOL"] == "consumer"


def test_a_group_is_described(kaas_or_other, groups, filled, member):
    name = filled("described")
    live = member("described", name, **{"client.id": "me", "group.instance.id": "fixed"})
    live.commit(offsets=[confluent_kafka.TopicPartition(name, 0, 4)], asynchronous=False)
    offsets = {row["PARTITION"]: row for row in rows(groups("--describe", "--group", "described"), "GROUP")}
    assert offsets["0"]["CURRENT-OFFSET"] == "4" and offsets["0"]["LAG"] == "6"
    assert offsets["1"]["CURRENT-OFFSET"] == "-" and offsets["1"]["LOG-END-OFFSET"] == "10"
    assert offsets["0"]["CONSUMER-ID"].startswith("fixed-") and offsets["0"]["HOST"] == "/127.0.0.1"
    [state] = rows(groups("--describe", "--group", "described", "--state"), "GROUP")
    assert state["ASSIGNMENT-STRATEGY"] == "range" and state["STATE"] == "Stable" and state["#MEMBERS"] == "1"
    shown = groups("--describe", "--group", "described", "--members", "--verbose")
    assert re.search(rf"fixed\s+/127\.0\.0\.1\s+me\s+2\s.*{name}\(0,1\)|"
                     rf"fixed\s+/127\.0\.0\.1\s+me\s+2\s.*{name}:0,1", shown), shown
    live.unsubscribe()
    live.close()


def test_a_group_without_members_is_described(kaas_or_other, groups, filled):
    name = filled("memberless")
    commit(kaas_or_other, "memberless", name, 7)
    shown = groups("--describe", "--group", "memberless")
    assert "has no active members" in shown
    assert {row["CURRENT-OFFSET"] for row in rows(shown, "GROUP")} == {"7"}
    assert "has no active members" in groups("--describe", "--group", "memberless", "--members")
    assert "Empty" in groups("--describe", "--group", "memberless", "--state")


def test_a_group_that_is_not_there(groups):
    assert "GroupIdNotFoundException: Group nobody not found." in groups("--describe", "--group", "nobody")
    assert "GroupIdNotFoundException" in groups("--delete", "--group", "nobody")


def new_offsets(shown):
    return [row["NEW-OFFSET"] for row in sorted(rows(shown, "GROUP"), key=lambda row: row["PARTITION"])]


def test_offsets_are_reset_in_every_form(kaas_or_other, groups, filled, tmp_path):
    name = filled("reset")
    commit(kaas_or_other, "reset", name, 5)

    def reset(*form, scope=("--topic", name)):
        return new_offsets(groups("--reset-offsets", "--group", "reset", *scope, *form))
    assert reset("--to-earliest", "--dry-run") == ["0", "0"]
    assert reset("--to-current", "--dry-run") == ["5", "5"]
    assert reset("--shift-by", "-2", "--execute") == ["3", "3"]
    assert reset("--shift-by", "100", "--dry-run") == ["10", "10"]
    assert reset("--to-offset", "7", "--execute", scope=("--topic", f"{name}:1")) == ["7"]
    assert reset("--to-current", "--dry-run", scope=("--all-topics",)) == ["3", "7"]
    moment = datetime.datetime.fromtimestamp(BEGAN + 6, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.000")
    assert reset("--to-datetime", moment, "--dry-run") == ["6", "6"]
    assert reset("--by-duration", "PT1M", "--dry-run") == ["10", "10"]
    assert reset("--to-latest", "--execute") == ["10", "10"]
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{name},0,1\n{name},1,2\n")
    assert reset("--from-file", str(plan), "--execute", scope=()) == ["1", "2"]
    exported = groups("--reset-offsets", "--group", "reset", "--topic", name, "--to-current", "--export",
                      "--dry-run")
    assert f'"{name}",0,1' in exported.replace(f"{name},0,1", f'"{name}",0,1')


def test_offsets_of_a_group_with_members_are_not_reset(groups, filled, member):
    name = filled("busy")
    member("busy", name)
    shown = groups("--reset-offsets", "--group", "busy", "--topic", name, "--to-earliest", "--execute")
    assert "current state is Stable" in shown


def test_groups_and_their_offsets_are_deleted(kaas_or_other, groups, filled, member):
    name, other = filled("gone"), filled("other")
    live = member("gone", name)
    live.commit(offsets=[confluent_kafka.TopicPartition(name, 0, 4)], asynchronous=False)
    assert "GroupNotEmptyException: The group is not empty." in groups("--delete", "--group", "gone")
    shown = groups("--delete-offsets", "--group", "gone", "--topic", name)
    assert "subscribed" in shown
    commit(kaas_or_other, "gone-simple", other, 4)
    shown = groups("--delete-offsets", "--group", "gone-simple", "--topic", f"{other}:0")
    assert re.search(rf"{other}\s+0\s+Successful", shown)
    assert [row["PARTITION"] for row in rows(groups("--describe", "--group", "gone-simple"), "GROUP")] == ["1"]
    live.close()
    assert "'gone'" in groups("--delete", "--group", "gone", "--group", "gone-simple")
    assert not {"gone", "gone-simple"} & set(groups("--list").split())


def test_the_console_consumer_goes_on_where_its_group_was(tool, filled):
    name = filled("console")
    words = ("--topic", name, "--group", "console", "--timeout-ms", "30000")
    first = tool("kafka-console-consumer", *words, "--from-beginning", "--max-messages", "5")
    second = tool("kafka-console-consumer", *words, "--max-messages", "15")
    read = [line for line in (first + second).splitlines() if line.isdigit()]
    assert sorted(read) == sorted([str(i) for i in range(RECORDS)] * PARTITIONS)


@pytest.fixture
def process(kaas_or_other):
    """A tool that ends as its process ends."""
    def run(name, *arguments):
        done = subprocess.run(
            apache.tool_command(name, "--bootstrap-server", kaas_or_other.bootstrap, *arguments),
            capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    return run


def test_verifiable_producer_and_consumer(kaas_or_other, process, topic):
    name = topic("verifiable", PARTITIONS)
    sent = process("kafka-verifiable-producer", "--topic", name, "--max-messages", "1000", "--acks", "-1",
                "--throughput", "-1")
    assert len(re.findall('"name":"producer_send_success"', sent)) == 1000
    shown = process("kafka-verifiable-consumer", "--topic", name, "--group-id", "verifiable", "--max-messages",
                 "1000", "--reset-policy", "earliest", "--verbose")
    events = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
    names = [event["name"] for event in events]
    assert names[0] == "startup_complete" and "partitions_assigned" in names and names[-1].startswith("shutdown_")
    read = [event["value"] for event in events if event["name"] == "record_data"]
    assert len(read) == 1000 and set(read) == {str(i) for i in range(1000)}
    committed = [event for event in events if event["name"] == "offsets_committed"]
    assert committed and all(event["success"] for event in committed)
    with Connection(kaas_or_other.bootstrap) as connection:
        answer = connection.call("OffsetFetch", 8, {"groups": [{"group_id": "verifiable", "topics": None}],
                                                    "require_stable": True})
    [fetched] = answer["groups"][0]["topics"]
    assert sum(partition["committed_offset"] for partition in fetched["partitions"]) == 1000
