"""Directories of a broker: DescribeLogDirs and AlterReplicaLogDirs.

Which directory a partition lies in is each broker's own affair, so answers are compared without it.
"""

from harness import Subject, case


def asked(topics) -> dict:
    return {"topics": topics if topics is None else [
        {"topic": name, "partitions": list(partitions)} for name, partitions in topics.items()]}


def describe(k: Subject, label: str, topics, version: int = 5) -> dict:
    """Notes what both brokers must agree upon; gives the answer."""
    answer = k.quiet("DescribeLogDirs", version, asked(topics))
    logs = sorted((topic["name"].removeprefix(k.prefix), partition["partition_index"],
                   partition["is_future_key"], partition["partition_size"], partition["offset_lag"])
                  for result in answer["results"] for topic in result["topics"]
                  for partition in topic["partitions"] if topic["name"].startswith(k.prefix))
    k.note(label, {
        "throttle_time_ms": answer["throttle_time_ms"],
        "error_code": answer.get("error_code", "absent"),
        "directories": len(answer["results"]),
        "keys": sorted({key for result in answer["results"] for key in result}),
        "errors": [result["error_code"] for result in answer["results"]],
        "full": all(result.get("total_bytes", 2) > result.get("usable_bytes", 1) > 0
                    for result in answer["results"]),
        "cordoned": [result.get("is_cordoned", "absent") for result in answer["results"]],
        "logs": [list(log) for log in logs],
    })
    return answer


def place(k: Subject, topic: str, partition: int = 0) -> tuple[str, str]:
    """The directory of a partition, and another one that may take it."""
    answer = k.quiet("DescribeLogDirs", 5, asked({topic: [partition]}))
    here = [result["log_dir"] for result in answer["results"] if result["topics"]]
    others = [result["log_dir"] for result in answer["results"]
              if not result["topics"] and not result["is_cordoned"]]
    return here[0], others[0]


def to(path: str, topic: str, *partitions: int) -> dict:
    return {"dirs": [{"path": path, "topics": [{"name": topic, "partitions": list(partitions)}]}]}


def await_moved(k: Subject, topic: str, path: str) -> None:
    def arrived(answer):
        logs = [(result["log_dir"], partition["is_future_key"]) for result in answer["results"]
                for found in result["topics"] for partition in found["partitions"]]
        return logs == [(path, False)]
    k.await_answer(arrived, "DescribeLogDirs", 5, asked({topic: [0]}))


@case
def describe_log_dirs_of_every_version(k: Subject):
    name = k.topic(partitions=2)
    k.fill(name)
    for version in range(1, 6):
        describe(k, f"v{version}", {name: [0, 1]}, version)


@case
def describe_log_dirs_by_what_is_asked(k: Subject):
    name, other = k.topic(partitions=3), k.topic("other")
    k.fill(name, 2, 1)
    describe(k, "all", None)
    describe(k, "one partition", {name: [1]})
    describe(k, "two topics", {name: [0], other: [0]})
    describe(k, "no partitions", {name: []})
    describe(k, "no topics", {})
    describe(k, "unknown topic", {k.name("nobody"): [0]})
    describe(k, "unknown partition", {name: [0, 9, -1]})


@case
def move_to_another_directory_and_back(k: Subject):
    name = k.topic()
    k.fill(name, 5)
    for turn in ("there", "back"):
        here, there = place(k, name)
        k.ask(f"move {turn}", "AlterReplicaLogDirs", 2, to(there, name, 0))
        await_moved(k, name, there)
        describe(k, turn, {name: [0]})
        k.note(f"the old one is left, {turn}", place(k, name) == (there, here))
        k.await_leaders(name, 1)
        k.fill(name, 1)
    k.ask("the end", "ListOffsets", 7, {"replica_id": -1, "topics": [
        {"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}]})


@case
def move_of_every_version_to_where_it_is(k: Subject):
    name = k.topic()
    k.fill(name)
    here, _ = place(k, name)
    k.ask_all("AlterReplicaLogDirs", lambda v: to(here, name, 0))
    describe(k, "stays", {name: [0]})


@case
def move_that_cannot_be(k: Subject):
    name = k.topic()
    here, there = place(k, name)
    for label, path in (("unknown directory", "/nowhere"), ("no directory", ""), ("relative", "data")):
        k.ask(label, "AlterReplicaLogDirs", 2, to(path, name, 0))
    k.ask("unknown topic", "AlterReplicaLogDirs", 2, to(there, k.name("nobody"), 0))
    k.ask("unknown partition", "AlterReplicaLogDirs", 2, to(there, name, 9))
    k.ask("negative partition", "AlterReplicaLogDirs", 2, to(there, name, -1))
    k.ask("unknown topic and directory", "AlterReplicaLogDirs", 2, to("/nowhere", k.name("nobody"), 0))
    k.ask("nothing", "AlterReplicaLogDirs", 2, {"dirs": []})
    k.ask("no topics", "AlterReplicaLogDirs", 2, {"dirs": [{"path": there, "topics": []}]})
    some = k.quiet("AlterReplicaLogDirs", 2, to(here, name, 0, 7))  # in the order of a hash table
    k.note("some of it", sorted((p["partition_index"], p["error_code"]) for p in some["results"][0]["partitions"]))


@case
def move_to_a_cordoned_directory(k: Subject):
    name = k.topic()
    answer = k.quiet("DescribeLogDirs", 5, asked(None))
    cordoned = [result["log_dir"] for result in answer["results"] if result["is_cordoned"]]
    k.note("cordoned", len(cordoned))
    k.ask("move", "AlterReplicaLogDirs", 2, to(cordoned[0], name, 0))
    k.ask("unknown topic", "AlterReplicaLogDirs", 2, to(cordoned[0], k.name("nobody"), 0))
    many = k.topic("many", partitions=6)
    answer = k.quiet("DescribeLogDirs", 5, asked({many: range(6)}))
    k.note("new partitions", [result["is_cordoned"] for result in answer["results"] if result["topics"]])
