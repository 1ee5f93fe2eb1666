"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments, UnregisterBroker."""

from harness import Subject, case


def elect(topics, **more) -> dict:
    rows = None if topics is None else [{"topic": name, "partitions": ps} for name, ps in topics]
    return {"topic_partitions": rows, "timeout_ms": 30000, **more}


@case
def elect_leaders_of_what_needs_none(k: Subject):
    name = k.topic("t")
    for version in (0, 1, 2):
        k.ask(f"v{version}", "ElectLeaders", version, elect([(name, [0])]))
    for label, topics, kind in (
        ("unclean", [(name, [0])], 1),
        ("unknown type", [(name, [0])], 2),
        ("unknown partition", [(name, [0, 7, -1])], 0),
        ("unknown topic", [(k.name("x"), [0])], 0),
        ("no partitions", [(name, [])], 0),
        ("no topics", [], 0),
    ):
        k.ask(label, "ElectLeaders", 2, elect(topics, election_type=kind))


def alter(name: str, *rows, **more) -> dict:
    return {"timeout_ms": 30000, "topics": [{"name": name, "partitions": [
        {"partition_index": p, "replicas": replicas} for p, replicas in rows]}], **more}


@case
def reassign_partitions_of_one_broker(k: Subject):
    name = k.topic("t")
    for version in (0, 1):
        k.ask(f"same, v{version}", "AlterPartitionReassignments", version, alter(name, (0, [1])))
    for label, rows in (
        ("nothing to cancel", [(0, None)]),
        ("empty", [(0, [])]),
        ("unknown broker", [(0, [99])]),
        ("twice", [(0, [1, 1])]),
        ("unknown partition", [(7, [1]), (-1, [1])]),
    ):
        k.ask(label, "AlterPartitionReassignments", 1, alter(name, *rows))
    k.ask("unknown topic", "AlterPartitionReassignments", 1, alter(k.name("x"), (0, [1])))
    k.ask("no topics", "AlterPartitionReassignments", 1, {"timeout_ms": 30000, "topics": []})
    for label, topics in (("all", None), ("none", []),
                          ("one", [{"name": name, "partition_indexes": [0, 7]}]),
                          ("unknown", [{"name": k.name("x"), "partition_indexes": [0]}])):
        k.ask(f"list {label}", "ListPartitionReassignments", 0,
              {"timeout_ms": 30000, "topics": topics})


@case
def unregister_an_unknown_broker(k: Subject):
    k.ask("unknown", "UnregisterBroker", 0, {"broker_id": 99})
