"""CreateTopics, DeleteTopics, CreatePartitions, DescribeConfigs."""

import uuid

from harness import Subject, case

STRANGER = uuid.UUID("01234567-89ab-4def-8123-456789abcdef")


def wanted(name: str, partitions: int = 1, factor: int = 1, **more) -> dict:
    return {"name": name, "num_partitions": partitions, "replication_factor": factor, **more}


def create(*topics: dict, **more) -> dict:
    return {"timeout_ms": 30000, "topics": list(topics), **more}


@case
def create_topics_of_every_version(k: Subject):
    k.ask_all("CreateTopics", lambda v: create(wanted(k.name(f"t{v}"), 2)))


@case
def create_topics_with_defaults(k: Subject):
    for version in (4, 5, 7):
        k.ask(f"v{version}", "CreateTopics", version, create(wanted(k.name(f"d{version}"), -1, -1)))


@case
def create_topics_twice(k: Subject):
    k.ask("first", "CreateTopics", 7, create(wanted(k.name("t"))))
    k.ask("again", "CreateTopics", 7, create(wanted(k.name("t"))))
    k.ask("twice in one request", "CreateTopics", 7,
          create(wanted(k.name("u")), wanted(k.name("u")), wanted(k.name("w"))))


@case
def create_topics_only_validated(k: Subject):
    k.ask("valid", "CreateTopics", 7, create(wanted(k.name("t"), 3), validate_only=True))
    k.ask("again", "CreateTopics", 7, create(wanted(k.name("t"), 3), validate_only=True))
    k.ask("invalid", "CreateTopics", 7, create(wanted(k.name("t"), 0), validate_only=True))
    k.ask("is not there", "Metadata", 9, {"topics": [{"name": k.name("t")}],
                                          "allow_auto_topic_creation": False})


@case
def create_topics_of_invalid_names(k: Subject):
    for label, name in (("empty", ""), ("dot", "."), ("dots", ".."), ("space", "a b"), ("slash", "a/b"),
                        ("long", "x" * 250), ("umlaut", "ä"), ("comma", "a,b"), ("star", "*")):
        k.ask(label, "CreateTopics", 7, create(wanted(name)))
    k.ask("longest", "CreateTopics", 7, create(wanted(k.name("x").ljust(249, "x"))))


@case
def create_topics_whose_metrics_would_collide(k: Subject):
    k.ask("dot", "CreateTopics", 7, create(wanted(k.name("a.b"))))
    k.ask("underscore", "CreateTopics", 7, create(wanted(k.name("a_b"))))


@case
def create_topics_of_wrong_sizes(k: Subject):
    for partitions in (0, -2, -1):
        k.ask(f"{partitions} partitions", "CreateTopics", 7,
              create(wanted(k.name(f"p{partitions}"), partitions)))
    for factor in (0, -2):
        k.ask(f"factor {factor}", "CreateTopics", 7, create(wanted(k.name(f"r{factor}"), 1, factor)))


@case
def create_topics_with_more_replicas_than_brokers(k: Subject):
    k.ask("two replicas", "CreateTopics", 7, create(wanted(k.name("r2"), 1, 2)))


def assigned(name: str, *rows: tuple[int, list[int]], partitions=-1, factor=-1) -> dict:
    return wanted(name, partitions, factor, assignments=[
        {"partition_index": p, "broker_ids": ids} for p, ids in rows])


@case
def create_topics_with_assignments(k: Subject):
    for label, topic in (
        ("good", assigned(k.name("a"), (0, [1]), (1, [1]))),
        ("other order", assigned(k.name("b"), (1, [1]), (0, [1]))),
        ("gap", assigned(k.name("c"), (0, [1]), (2, [1]))),
        ("not from zero", assigned(k.name("d"), (1, [1]))),
        ("negative", assigned(k.name("e"), (-1, [1]))),
        ("named twice", assigned(k.name("f"), (0, [1]), (0, [1]))),
        ("unknown broker", assigned(k.name("g"), (0, [99]))),
        ("broker twice", assigned(k.name("h"), (0, [1, 1]))),
        ("no brokers", assigned(k.name("i"), (0, []))),
        ("count set too", assigned(k.name("j"), (0, [1]), partitions=1)),
        ("factor set too", assigned(k.name("l"), (0, [1]), factor=1)),
    ):
        k.ask(label, "CreateTopics", 7, create(topic))


def configured(name: str, *pairs: tuple[str, str | None]) -> dict:
    return wanted(name, configs=[{"name": n, "value": v} for n, v in pairs])


@case
def create_topics_with_configs(k: Subject):
    for label, pairs in (
        ("good", [("retention.ms", "1000"), ("cleanup.policy", "compact,delete")]),
        ("unknown name", [("retention.mss", "1000")]),
        ("not a number", [("retention.ms", "soon")]),
        ("below its range", [("segment.bytes", "1")]),
        ("above its range", [("min.cleanable.dirty.ratio", "2")]),
        ("not of its values", [("cleanup.policy", "shred")]),
        ("not a boolean", [("preallocate", "maybe")]),
        ("boolean in capitals", [("preallocate", "TRUE")]),
        ("null", [("retention.ms", None)]),
        ("empty", [("retention.ms", "")]),
        ("spaces", [("retention.ms", " 1000 ")]),
        ("named twice", [("retention.ms", "1"), ("retention.ms", "2")]),
        ("lags that cross", [("min.compaction.lag.ms", "100"), ("max.compaction.lag.ms", "10")]),
        ("retention -1", [("retention.ms", "-1")]),
        ("retention -2", [("retention.ms", "-2")]),
        ("no policy", [("cleanup.policy", "")]),
        ("codec", [("compression.type", "zstd")]),
        ("unknown codec", [("compression.type", "zip")]),
        ("level", [("compression.zstd.level", "3")]),
        ("level too high", [("compression.gzip.level", "12")]),
        ("timestamp type", [("message.timestamp.type", "LogAppendTime")]),
        ("unknown timestamp type", [("message.timestamp.type", "Never")]),
        ("throttled replicas", [("leader.replication.throttled.replicas", "0:1,1:1")]),
        ("bad throttled replicas", [("leader.replication.throttled.replicas", "what")]),
        ("removed key", [("message.format.version", "3.0")]),
    ):
        k.ask(label, "CreateTopics", 7, create(configured(k.name(label.replace(" ", "-")), *pairs)))


@case
def delete_topics_of_every_version(k: Subject):
    for version in range(1, 7):
        name = k.topic(f"t{version}")
        body = {"topic_names": [name], "timeout_ms": 30000} if version < 6 else {
            "topics": [{"name": name}], "timeout_ms": 30000}
        k.ask(f"v{version}", "DeleteTopics", version, body)


@case
def delete_topics_by_id(k: Subject):
    name = k.topic("t")
    topic_id = k.topic_id(name)
    k.ask("unknown id", "DeleteTopics", 6, {"topics": [{"topic_id": STRANGER, "name": None}],
                                            "timeout_ms": 30000})
    k.ask("zero id, no name", "DeleteTopics", 6, {"topics": [{"name": None}], "timeout_ms": 30000})
    k.ask("id and name", "DeleteTopics", 6, {"topics": [{"topic_id": topic_id, "name": name}],
                                             "timeout_ms": 30000})
    k.ask("id", "DeleteTopics", 6, {"topics": [{"topic_id": topic_id, "name": None}],
                                    "timeout_ms": 30000})
    k.ask("id again", "DeleteTopics", 6, {"topics": [{"topic_id": topic_id, "name": None}],
                                          "timeout_ms": 30000})


@case
def delete_topics_that_are_odd(k: Subject):
    name = k.topic("t")
    k.ask("unknown", "DeleteTopics", 5, {"topic_names": [k.name("nobody")], "timeout_ms": 30000})
    k.ask("invalid name", "DeleteTopics", 5, {"topic_names": ["a b"], "timeout_ms": 30000})
    k.ask("twice", "DeleteTopics", 5, {"topic_names": [name, name], "timeout_ms": 30000})
    k.ask("none", "DeleteTopics", 5, {"topic_names": [], "timeout_ms": 30000})


def grow(name: str, count: int, assignments=None, **more) -> dict:
    return {"timeout_ms": 30000, "validate_only": False, **more, "topics": [{
        "name": name, "count": count,
        "assignments": None if assignments is None else [{"broker_ids": ids} for ids in assignments]}]}


@case
def create_partitions(k: Subject):
    name = k.topic("t", 2)
    for version in range(0, 4):
        k.ask(f"v{version}", "CreatePartitions", version, grow(name, 3 + version))
    k.ask("same", "CreatePartitions", 3, grow(name, 6))
    k.ask("fewer", "CreatePartitions", 3, grow(name, 1))
    k.ask("zero", "CreatePartitions", 3, grow(name, 0))
    k.ask("negative", "CreatePartitions", 3, grow(name, -1))
    k.ask("validated only", "CreatePartitions", 3, grow(name, 9, validate_only=True))
    k.ask("unknown topic", "CreatePartitions", 3, grow(k.name("nobody"), 3))
    k.ask("assigned", "CreatePartitions", 3, grow(name, 8, [[1], [1]]))
    k.ask("assigned, wrong count", "CreatePartitions", 3, grow(name, 10, [[1]]))
    k.ask("assigned to a stranger", "CreatePartitions", 3, grow(name, 9, [[99]]))
    k.ask("assigned to none", "CreatePartitions", 3, grow(name, 9, [[]]))
    twice = grow(name, 9)
    twice["topics"] *= 2
    k.ask("named twice", "CreatePartitions", 3, twice)
    k.ask("afterwards", "Metadata", 9, {"topics": [{"name": name}]})


def describe(kind: int, name: str, keys=None, **more) -> dict:
    return {**more, "resources": [{"resource_type": kind, "resource_name": name,
                                   "configuration_keys": keys}]}


ROW = ("name", "value", "read_only", "config_source", "is_sensitive", "config_type")


@case
def describe_configs_of_a_topic(k: Subject):
    name = k.topic("t", retention_ms=12345, cleanup_policy="compact")
    for version in range(1, 5):
        k.ask(f"v{version}", "DescribeConfigs", version,
              describe(2, name, ["retention.ms", "cleanup.policy", "segment.bytes", "compression.type"]))
    k.ask("synonyms and documentation", "DescribeConfigs", 4,
          describe(2, name, ["retention.ms", "segment.ms", "max.message.bytes"], include_synonyms=True,
                   include_documentation=True))
    k.ask("no keys", "DescribeConfigs", 4, describe(2, name, []))
    k.ask("unknown key", "DescribeConfigs", 4, describe(2, name, ["what.is.this", "retention.ms"]))
    k.ask("unknown topic", "DescribeConfigs", 4, describe(2, k.name("nobody")))
    k.ask("invalid topic", "DescribeConfigs", 4, describe(2, "a b"))
    k.ask("empty topic", "DescribeConfigs", 4, describe(2, ""))


@case
def describe_configs_of_a_topic_names_all_keys(k: Subject):
    answer = k.quiet("DescribeConfigs", 4, describe(2, k.topic("t"), include_synonyms=True))
    k.note("rows", {"configs": [{f: row[f] for f in ROW} for row in answer["results"][0]["configs"]]})


@case
def describe_configs_of_a_broker(k: Subject):
    keys = ["log.retention.hours", "num.io.threads", "log.cleaner.threads", "node.id",
            "auto.create.topics.enable", "message.max.bytes", "ssl.keystore.password"]
    k.ask("own", "DescribeConfigs", 4, describe(4, "1", keys, include_synonyms=True))
    k.ask("default", "DescribeConfigs", 4, describe(4, "", keys, include_synonyms=True))
    k.ask("stranger", "DescribeConfigs", 4, describe(4, "99", keys))
    k.ask("not a number", "DescribeConfigs", 4, describe(4, "one", keys))


@case
def describe_configs_of_a_broker_names_all_keys(k: Subject):
    answer = k.quiet("DescribeConfigs", 4, describe(4, "1"))
    k.note("rows", {"configs": [{f: row[f] for f in ROW} for row in answer["results"][0]["configs"]]})


@case
def describe_configs_of_broker_loggers(k: Subject):
    k.ask("root", "DescribeConfigs", 4, describe(8, "1", ["root"]))
    k.ask("all", "DescribeConfigs", 4, describe(8, "1"))
    k.ask("stranger", "DescribeConfigs", 4, describe(8, "99"))
    k.ask("not a number", "DescribeConfigs", 4, describe(8, "one"))


@case
def describe_configs_of_odd_resources(k: Subject):
    for kind in (0, 1, 3, 5, 99, -1):
        k.ask(f"type {kind}", "DescribeConfigs", 4, describe(kind, "x"))
    body = describe(2, k.topic("t"), ["retention.ms"])
    body["resources"] *= 2
    k.ask("named twice", "DescribeConfigs", 4, body)
    k.ask("none", "DescribeConfigs", 4, {"resources": []})
