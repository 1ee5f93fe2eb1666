"""FindCoordinator, and the internal topics whose partitions are the coordinators' slots."""

from harness import Subject, case

from kafka_wire import batch

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
GROUP, TRANSACTION, SHARE = 0, 1, 2


def keys(key_type: int, *wanted: str) -> dict:
    return {"key_type": key_type, "coordinator_keys": list(wanted)}


def await_coordinator(k: Subject, key_type: int) -> None:
    """Apache makes the topic when it is first asked, and says meanwhile that there is none."""
    k.await_answer(lambda a: a["coordinators"][0]["error_code"] == 0,
                   "FindCoordinator", 4, keys(key_type, "any"))


@case
def find_coordinator_of_every_version(k: Subject):
    for name, key_type in (("group", GROUP), ("transaction", TRANSACTION)):
        await_coordinator(k, key_type)
        for version in range(7):
            old = {"key": "g"} if version == 0 else {"key": "g", "key_type": key_type}
            k.ask(f"{name} v{version}", "FindCoordinator", version,
                  old if version < 4 else keys(key_type, "g", "ü", "日本", "", "g"))


@case
def find_coordinator_of_share_groups(k: Subject):
    k.ask("too early", "FindCoordinator", 5, keys(SHARE, "g:AAAAAAAAAAAAAAAAAAAAAQ:0"))
    for label, key in (("no key", ""), ("only a group", "g"), ("no topic", "g::0"), ("no group", ":AAAA:0"),
                       ("bad topic", "g:short:0"), ("bad partition", "g:AAAAAAAAAAAAAAAAAAAAAQ:x")):
        k.ask(label, "FindCoordinator", 6, keys(SHARE, key))


@case
def find_coordinator_of_unknown_types(k: Subject):
    for key_type in (3, -1, 127):
        k.ask(f"one key of type {key_type}", "FindCoordinator", 3, {"key": "g", "key_type": key_type})
        k.ask(f"keys of type {key_type}", "FindCoordinator", 4, keys(key_type, "g", "h"))


@case
def internal_topics_as_clients_see_them(k: Subject):
    for topic, key_type in ((OFFSETS, GROUP), (TRANSACTIONS, TRANSACTION)):
        await_coordinator(k, key_type)
        k.ask(f"{topic} metadata", "Metadata", 12, {"topics": [{"name": topic}]})
        k.ask(f"{topic} partitions", "DescribeTopicPartitions", 0,
              {"topics": [{"name": topic}], "response_partition_limit": 2})
        k.ask(f"{topic} configs", "DescribeConfigs", 4, {"resources": [{
            "resource_type": 2, "resource_name": topic, "configuration_keys": [
                "cleanup.policy", "compression.type", "segment.bytes",
                "unclean.leader.election.enable", "retention.ms"]}]})


@case
def internal_topics_take_nothing_from_clients(k: Subject):
    records = batch.Batch(values=[b"v"]).build()
    for topic, key_type in ((OFFSETS, GROUP), (TRANSACTIONS, TRANSACTION)):
        await_coordinator(k, key_type)
        k.await_leaders(topic, 50)
        k.produce(f"{topic} produce", topic, records)
        k.produce(f"{topic} produce to a partition that is not there", topic, records, partition=77)
        k.ask(f"{topic} delete records", "DeleteRecords", 2, {"timeout_ms": 10000, "topics": [{
            "name": topic, "partitions": [{"partition_index": p, "offset": 0} for p in (0, 77)]}]})
        k.ask(f"{topic} create", "CreateTopics", 7, {"timeout_ms": 10000, "topics": [
            {"name": topic, "num_partitions": 3, "replication_factor": 1}]})
