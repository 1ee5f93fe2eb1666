"""Metadata, DescribeCluster, DescribeQuorum, DescribeTopicPartitions, FindCoordinator."""

import uuid

from harness import Subject, case

STRANGER = uuid.UUID("01234567-89ab-4def-8123-456789abcdef")


def only(answer: dict, *names: str) -> dict:
    """The topics of interest: others of other cases may be there too."""
    answer["topics"] = [t for t in answer["topics"] if t["name"] in names]
    return answer


@case
def metadata_of_one_topic_in_every_version(k: Subject):
    name = k.topic(partitions=3)
    k.ask_all("Metadata", lambda v: {"topics": [{"name": name}]})


@case
def metadata_of_all_topics(k: Subject):
    name = k.topic()
    k.note("v0 empty list", only(k.quiet("Metadata", 0, {"topics": []}), name))
    k.note("v1 null", only(k.quiet("Metadata", 1, {"topics": None}), name))
    k.note("v12 null", only(k.quiet("Metadata", 12, {"topics": None}), name))


@case
def metadata_of_no_topic(k: Subject):
    k.ask("v1 empty list", "Metadata", 1, {"topics": []})
    k.ask("v13 empty list", "Metadata", 13, {"topics": []})


@case
def metadata_of_unknown_topics(k: Subject):
    for version in (0, 1, 4, 9, 10, 12, 13):
        body = {"topics": [{"name": k.name("nobody")}]}
        if version >= 4:
            body["allow_auto_topic_creation"] = False
            k.ask(f"v{version}", "Metadata", version, body)
    k.ask("by id", "Metadata", 12, {"topics": [{"topic_id": STRANGER, "name": None}]})
    k.ask("by id, v10", "Metadata", 10, {"topics": [{"topic_id": STRANGER, "name": ""}]})
    k.ask("zero id, null name", "Metadata", 12, {"topics": [{"name": None}]})


@case
def metadata_by_id(k: Subject):
    name = k.topic(partitions=2)
    topic_id = k.topic_id(name)
    k.ask("v12", "Metadata", 12, {"topics": [{"topic_id": topic_id, "name": None}]})
    k.ask("v13", "Metadata", 13, {"topics": [{"topic_id": topic_id, "name": None}]})
    k.ask("id and name", "Metadata", 12, {"topics": [{"topic_id": topic_id, "name": name}]})
    k.ask("id and other name", "Metadata", 12, {"topics": [{"topic_id": topic_id, "name": "x"}]})
    k.ask("known and unknown", "Metadata", 12, {"topics": [
        {"topic_id": topic_id, "name": None}, {"topic_id": STRANGER, "name": None}]})


@case
def metadata_of_invalid_names(k: Subject):
    for label, name in (("empty", ""), ("dot", "."), ("dots", ".."), ("space", "a b"), ("slash", "a/b"),
                        ("long", "x" * 250), ("longest", "x" * 249), ("umlaut", "ä")):
        for create in (False, True):
            if label == "longest" and create:
                continue
            k.ask(f"{label} {create}", "Metadata", 9,
                  {"topics": [{"name": name}], "allow_auto_topic_creation": create})


@case
def metadata_of_a_topic_named_twice(k: Subject):
    name = k.topic()
    k.ask("answer", "Metadata", 9, {"topics": [{"name": name}, {"name": name}]})


@case
def metadata_creates_topics_when_asked(k: Subject):
    name = k.name("auto")
    k.ask("first", "Metadata", 9, {"topics": [{"name": name}], "allow_auto_topic_creation": True})
    k.note("then", k.await_answer(
        lambda a: a["topics"][0]["error_code"] == 0, "Metadata", 9,
        {"topics": [{"name": name}], "allow_auto_topic_creation": False}))


@case
def metadata_tells_authorized_operations_when_asked(k: Subject):
    name = k.topic()
    k.ask("v8", "Metadata", 8, {"topics": [{"name": name}], "include_cluster_authorized_operations": True,
                                "include_topic_authorized_operations": True})
    k.ask("v12", "Metadata", 12, {"topics": [{"name": name}], "include_topic_authorized_operations": True})


def quorum_of(*topics):
    return {"topics": [{"topic_name": name, "partitions": [{"partition_index": i} for i in indexes]}
                       for name, indexes in topics]}


@case
def describe_quorum(k: Subject):
    k.ask_all("DescribeQuorum", lambda v: quorum_of(("__cluster_metadata", [0])))


@case
def describe_quorum_of_anything_else(k: Subject):
    log = "__cluster_metadata"
    for label, topics in (("nothing", []), ("another topic", [("t", [0])]), ("no partition", [(log, [])]),
                          ("another partition", [(log, [1])]), ("two partitions", [(log, [0, 1])]),
                          ("two topics", [(log, [0]), ("t", [0])]), ("twice", [(log, [0]), (log, [0])])):
        k.ask(label, "DescribeQuorum", 2, quorum_of(*topics))


@case
def describe_cluster(k: Subject):
    for version in (0, 1, 2):
        k.ask(f"v{version}", "DescribeCluster", version, {})
        k.ask(f"v{version} operations", "DescribeCluster", version,
              {"include_cluster_authorized_operations": True})
    for endpoint in (0, 2, 3, -1):
        k.ask(f"endpoint type {endpoint}", "DescribeCluster", 1, {"endpoint_type": endpoint})
    k.ask("fenced", "DescribeCluster", 2, {"include_fenced_brokers": True})


def wanted(*names: str, limit: int = 2000, cursor: tuple | None = None) -> dict:
    body = {"topics": [{"name": n} for n in names], "response_partition_limit": limit}
    if cursor:
        body["cursor"] = {"topic_name": cursor[0], "partition_index": cursor[1]}
    return body


@case
def describe_topic_partitions(k: Subject):
    a, b = k.topic("a", 3), k.topic("b", 2)
    k.ask("both", "DescribeTopicPartitions", 0, wanted(a, b))
    k.ask("other order", "DescribeTopicPartitions", 0, wanted(b, a))
    k.ask("twice", "DescribeTopicPartitions", 0, wanted(a, a))
    k.ask("unknown", "DescribeTopicPartitions", 0, wanted(k.name("nobody"), a))
    k.ask("invalid name", "DescribeTopicPartitions", 0, wanted("a b", a))


@case
def describe_topic_partitions_with_a_cursor(k: Subject):
    a, b = k.topic("a", 3), k.topic("b", 2)
    for limit in (0, -1, 1, 2, 3, 4, 5, 6):
        k.ask(f"limit {limit}", "DescribeTopicPartitions", 0, wanted(a, b, limit=limit))
    k.ask("from the middle", "DescribeTopicPartitions", 0, wanted(a, b, cursor=(a, 1)))
    k.ask("from the second", "DescribeTopicPartitions", 0, wanted(a, b, cursor=(b, 0)))
    k.ask("past the end", "DescribeTopicPartitions", 0, wanted(a, b, cursor=(b, 9)))
    k.ask("negative", "DescribeTopicPartitions", 0, wanted(a, b, cursor=(a, -1)))
    k.ask("of a topic not asked for", "DescribeTopicPartitions", 0, wanted(a, cursor=(b, 0)))
    k.ask("of an unknown topic", "DescribeTopicPartitions", 0, wanted(a, b, cursor=(k.name("aa"), 0)))


@case
def find_coordinator_of_odd_keys(k: Subject):
    k.ask("unknown type", "FindCoordinator", 4, {"key_type": 9, "coordinator_keys": ["g"]})
    k.ask("no keys", "FindCoordinator", 4, {"key_type": 0, "coordinator_keys": []})
