"""InitProducerId with a transactional id, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit,
WriteTxnMarkers, DescribeTransactions, ListTransactions, and Produce and Fetch of transactions."""

import uuid

from harness import Subject, case, fetch_body
from kafka_wire.batch import Batch

TRANSACTIONAL = 16
STRANGER = 4_000_000_000
FIXED_EPOCH = 4  # the last version of EndTxn under which a producer's epoch stays
LOADING = {14, 15, 16}  # until the coordinator of an id has its slot


# --- what a producer does ------------------------------------------------------------------------------


def new_id(k: Subject, name: str = "txn") -> str:
    """A transactional id whose coordinator is there."""
    txn = k.name(name)
    k.await_answer(lambda a: a["coordinators"][0]["error_code"] == 0, "FindCoordinator", 4,
                   {"key_type": 1, "coordinator_keys": [txn]})
    k.await_answer(lambda a: a["transaction_states"][0]["error_code"] not in LOADING,
                   "DescribeTransactions", 0, {"transactional_ids": [txn]})
    return txn


def new_group(k: Subject, name: str = "group") -> str:
    group = k.name(name)
    k.await_answer(lambda a: a["coordinators"][0]["error_code"] == 0, "FindCoordinator", 4,
                   {"key_type": 0, "coordinator_keys": [group]})
    k.await_answer(lambda a: a["groups"][0]["error_code"] not in LOADING, "DescribeGroups", 5,
                   {"groups": [group]})
    return group


def init_body(txn, timeout=60000, pid=-1, epoch=-1) -> dict:
    return {"transactional_id": txn, "transaction_timeout_ms": timeout, "producer_id": pid,
            "producer_epoch": epoch}


def init(k: Subject, txn) -> tuple[int, int]:
    answer = k.await_answer(lambda a: a["error_code"] == 0, "InitProducerId", 5, init_body(txn))
    return answer["producer_id"], answer["producer_epoch"]


def add_body(txn, pid, epoch, topics: dict, version=3, **more) -> dict:
    topics = [{"name": name, "partitions": partitions} for name, partitions in topics.items()]
    if version >= 4:
        return {"transactions": [{"transactional_id": txn, "producer_id": pid, "producer_epoch": epoch,
                                  "topics": topics, **more}]}
    return {"v3_and_below_transactional_id": txn, "v3_and_below_producer_id": pid,
            "v3_and_below_producer_epoch": epoch, "v3_and_below_topics": topics}


def add(k: Subject, txn, pid, epoch, topics: dict) -> None:
    answer = k.quiet("AddPartitionsToTxn", 3, add_body(txn, pid, epoch, topics))
    errors = {p["partition_error_code"] for t in answer["results_by_topic_v3_and_below"]
              for p in t["results_by_partition"]}
    assert errors <= {0}, answer


def end_body(txn, pid, epoch, commit=True) -> dict:
    return {"transactional_id": txn, "producer_id": pid, "producer_epoch": epoch, "committed": commit}


def settle(k: Subject, txn) -> None:
    """Waits until the transaction's markers are written: what comes before is a matter of time."""
    k.await_answer(lambda a: not a["transaction_states"][0]["transaction_state"].startswith("Prepare"),
                   "DescribeTransactions", 0, {"transactional_ids": [txn]})


def end(k: Subject, txn, pid, epoch, commit=True, version=FIXED_EPOCH) -> dict:
    answer = k.quiet("EndTxn", version, end_body(txn, pid, epoch, commit))
    assert answer["error_code"] == 0, answer
    settle(k, txn)
    return answer


def batch(pid, epoch, sequence=0, values=(b"one",), **more) -> Batch:
    return Batch(values=list(values), attributes=TRANSACTIONAL, producer_id=pid, producer_epoch=epoch,
                 base_sequence=sequence, **more)


def offset_commit_body(k: Subject, txn, group, pid, epoch, topic, version, offset=7, **more) -> dict:
    key = {"topic_id": k.topic_id(topic)} if version >= 6 else {"name": topic}
    return {"transactional_id": txn, "group_id": group, "producer_id": pid, "producer_epoch": epoch,
            "generation_id_or_member_epoch": -1, "member_id": "", **more,
            "topics": [{**key, "partitions": [{
                "partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1,
                "committed_metadata": "m"}]}]}


def committed(k: Subject, group, topic, stable=False) -> dict:
    return {"groups": [{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}],
            "require_stable": stable}


def markers_body(pid, epoch, topics: dict, commit=False, coordinator_epoch=0, **more) -> dict:
    return {"markers": [{"producer_id": pid, "producer_epoch": epoch, "transaction_result": commit,
                         "coordinator_epoch": coordinator_epoch, **more,
                         "topics": [{"name": n, "partition_indexes": p} for n, p in topics.items()]}]}


def look_committed(k: Subject, label, topic) -> None:
    """What a reader of committed data sees: records, aborted transactions, where it ends."""
    k.ask(f"{label}: fetch", "Fetch", 11, fetch_body(topic, isolation_level=1))
    k.ask(f"{label}: offsets", "ListOffsets", 7, {"replica_id": -1, "isolation_level": 1, "topics": [
        {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]})


def ask_sorted(k: Subject, label, api, version, body) -> None:
    """What Apache answers in the order of hash tables."""
    def in_order(value):
        if isinstance(value, dict):
            return {name: in_order(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return sorted((in_order(inner) for inner in value), key=repr)
        return value

    k.note(label, in_order(k.quiet(api, version, body)))


# --- the cases -----------------------------------------------------------------------------------------


@case
def transactional_producer_ids_of_every_version(k: Subject):
    txn = new_id(k)
    init(k, txn)
    for version in range(0, 6):
        k.ask(f"v{version}", "InitProducerId", version, init_body(txn))
    for version in range(0, 6):
        k.ask(f"new v{version}", "InitProducerId", version, init_body(new_id(k, f"new{version}")))


@case
def transactional_producer_ids_refused(k: Subject):
    txn = new_id(k)
    for version in (1, 5):
        k.ask(f"no id v{version}", "InitProducerId", version, init_body(""))
        for timeout in (0, -1, 900_000, 900_001, 2**31 - 1):
            k.ask(f"timeout {timeout} v{version}", "InitProducerId", version, init_body(txn, timeout))
    k.ask("epoch without id", "InitProducerId", 4, init_body(txn, epoch=3))
    k.ask("id without epoch", "InitProducerId", 4, init_body(txn, pid=3))
    k.ask("strange characters", "InitProducerId", 4, init_body(new_id(k, "ä \" \\ \n 💸")))


@case
def transactional_producer_that_goes_on(k: Subject):
    """KIP-360."""
    txn = new_id(k)
    pid, epoch = init(k, txn)
    for version in (3, 4, 5):
        k.ask(f"another id v{version}", "InitProducerId", version, init_body(txn, pid=STRANGER, epoch=0))
        k.ask(f"a newer epoch v{version}", "InitProducerId", version, init_body(txn, pid=pid, epoch=9))
    k.ask("its own", "InitProducerId", 4, init_body(txn, pid=pid, epoch=epoch))
    k.ask("its own again", "InitProducerId", 4, init_body(txn, pid=pid, epoch=epoch))
    k.ask("its next", "InitProducerId", 4, init_body(txn, pid=pid, epoch=epoch + 1))
    k.ask("its first", "InitProducerId", 4, init_body(txn, pid=pid, epoch=epoch))
    k.ask("unknown to the coordinator", "InitProducerId", 4,
          init_body(new_id(k, "other"), pid=STRANGER, epoch=7))


@case
def transactional_producer_fences_an_open_transaction(k: Subject):
    txn, topic = new_id(k), k.topic()
    pid, epoch = init(k, txn)
    add(k, txn, pid, epoch, {topic: [0]})
    k.produce("batch", topic, batch(pid, epoch), transactional_id=txn)
    k.ask("a new producer", "InitProducerId", 4, init_body(txn))
    settle(k, txn)
    k.ask("aborted", "DescribeTransactions", 0, {"transactional_ids": [txn]})
    k.ask("again", "InitProducerId", 4, init_body(txn))
    for version in range(0, 4):
        k.ask(f"the zombie adds v{version}", "AddPartitionsToTxn", version,
              add_body(txn, pid, epoch, {topic: [0]}))
    for version in range(0, 5):
        k.ask(f"the zombie ends v{version}", "EndTxn", version, end_body(txn, pid, epoch))
    for version in (3, 9, 10, 11, 12):
        k.produce(f"the zombie writes v{version}", topic, batch(pid, epoch, 1), version,
                  transactional_id=txn)
    for version in (2, 4):
        k.ask(f"the zombie begins v{version}", "InitProducerId", version + 1,
              init_body(txn, pid=pid, epoch=epoch))
    look_committed(k, "readers", topic)


@case
def add_partitions_to_txn_of_every_version(k: Subject):
    txn, topic = new_id(k), k.topic(partitions=3)
    pid, epoch = init(k, txn)
    for version in range(0, 6):
        k.ask(f"v{version}", "AddPartitionsToTxn", version,
              add_body(txn, pid, epoch, {topic: [2, 0]}, version))
        k.ask(f"again v{version}", "AddPartitionsToTxn", version,
              add_body(txn, pid, epoch, {topic: [0, 1]}, version))
        k.ask(f"nothing v{version}", "AddPartitionsToTxn", version,
              add_body(txn, pid, epoch, {}, version))


@case
def add_partitions_to_txn_refused(k: Subject):
    txn, topic = new_id(k), k.topic(partitions=2)
    nobody, other = k.name("nobody"), new_id(k, "other")
    pid, epoch = init(k, txn)
    for version in range(0, 6):
        for label, body in {
            "no id": add_body("", pid, epoch, {topic: [0]}, version),
            "unknown id": add_body(other, pid, epoch, {topic: [0]}, version),
            "another producer": add_body(txn, STRANGER, epoch, {topic: [0]}, version),
            "an older epoch": add_body(txn, pid, epoch - 1, {topic: [0]}, version),
            "a newer epoch": add_body(txn, pid, epoch + 1, {topic: [0, 1]}, version),
            "unknown topic": add_body(txn, pid, epoch, {nobody: [0], topic: [0]}, version),
            "unknown partition": add_body(txn, pid, epoch, {topic: [0, 9]}, version),
            "invalid topic": add_body(txn, pid, epoch, {"a b": [0]}, version),
            "offsets": add_body(txn, pid, epoch, {"__transaction_state": [0], topic: [0]}, version),
            "partition twice": add_body(txn, pid, epoch, {topic: [0, 0]}, version),
        }.items():
            k.ask(f"{label} v{version}", "AddPartitionsToTxn", version, body)


@case
def add_partitions_to_txn_asked_by_brokers(k: Subject):
    one, two, topic = new_id(k, "one"), new_id(k, "two"), k.topic(partitions=2)
    pid, epoch = init(k, one)
    other, _ = init(k, two)
    both = {"transactions": add_body(one, pid, epoch, {topic: [0]}, 4)["transactions"] +
            add_body(two, other, 5, {topic: [0]}, 4)["transactions"]}
    for version in (4, 5):
        k.ask(f"two v{version}", "AddPartitionsToTxn", version, both)
        k.ask(f"verify v{version}", "AddPartitionsToTxn", version,
              add_body(one, pid, epoch, {topic: [0, 1]}, version, verify_only=True))
        k.ask(f"verify an older epoch v{version}", "AddPartitionsToTxn", version,
              add_body(one, pid, epoch - 1, {topic: [0]}, version, verify_only=True))
        k.ask(f"verify another producer v{version}", "AddPartitionsToTxn", version,
              add_body(one, STRANGER, epoch, {topic: [0]}, version, verify_only=True))
        k.ask(f"verify no id v{version}", "AddPartitionsToTxn", version,
              add_body("", pid, epoch, {topic: [0]}, version, verify_only=True))
        k.ask(f"verify nothing v{version}", "AddPartitionsToTxn", version,
              add_body(one, pid, epoch, {}, version, verify_only=True))


@case
def end_txn_of_every_version(k: Subject):
    for version in range(0, 6):
        txn, topic = new_id(k, f"txn{version}"), k.topic(f"t{version}")
        pid, epoch = init(k, txn)
        for commit in (True, False):
            add(k, txn, pid, epoch, {topic: [0]})
            k.produce(f"batch v{version}", topic, batch(pid, epoch, 0 if version > 4 else int(not commit)),
                      transactional_id=txn)
            k.ask(f"end {commit} v{version}", "EndTxn", version, end_body(txn, pid, epoch, commit))
            settle(k, txn)
            k.ask(f"the same again {commit} v{version}", "EndTxn", version,
                  end_body(txn, pid, epoch, commit))
            k.ask(f"the other way {commit} v{version}", "EndTxn", version,
                  end_body(txn, pid, epoch, not commit))
            epoch += version > 4
        look_committed(k, f"v{version}", topic)


@case
def end_txn_refused(k: Subject):
    txn, other = new_id(k), new_id(k, "other")
    pid, epoch = init(k, txn)
    for version in range(0, 6):
        for commit in (True, False):
            for label, body in {
                "no id": end_body("", pid, epoch, commit),
                "unknown id": end_body(other, pid, epoch, commit),
                "another producer": end_body(txn, STRANGER, epoch, commit),
                "an older epoch": end_body(txn, pid, epoch - 1, commit),
                "a newer epoch": end_body(txn, pid, epoch + 1, commit),
            }.items():
                k.ask(f"{label} {commit} v{version}", "EndTxn", version, body)
        k.ask(f"nothing to commit v{version}", "EndTxn", version, end_body(txn, pid, epoch))
    for version in range(0, 5):
        k.ask(f"nothing to abort v{version}", "EndTxn", version, end_body(txn, pid, epoch, False))


@case
def end_txn_without_anything_gives_an_epoch(k: Subject):
    txn, topic = new_id(k), k.topic()
    pid, epoch = init(k, txn)
    k.ask("abort of nothing", "EndTxn", 5, end_body(txn, pid, epoch, False))
    settle(k, txn)
    k.ask("described", "DescribeTransactions", 0, {"transactional_ids": [txn]})
    k.ask("the same again", "EndTxn", 5, end_body(txn, pid, epoch, False))
    k.ask("the next", "EndTxn", 5, end_body(txn, pid, epoch + 1, False))
    settle(k, txn)
    k.ask("the first, late", "EndTxn", 5, end_body(txn, pid, epoch, False))
    add(k, txn, pid, epoch + 2, {topic: [0]})
    end(k, txn, pid, epoch + 2, True, 5)
    k.ask("abort after a commit", "EndTxn", 5, end_body(txn, pid, epoch + 3, False))
    settle(k, txn)
    k.ask("commit of nothing", "EndTxn", 5, end_body(txn, pid, epoch + 4, True))


@case
def produce_in_a_transaction(k: Subject):
    """Of producers that add their partitions."""
    for version in (3, 8, 9, 10, 11):
        txn, topic = new_id(k, f"txn{version}"), k.topic(f"t{version}")
        pid, epoch = init(k, txn)
        k.produce(f"before it is added v{version}", topic, batch(pid, epoch), version,
                  transactional_id=txn)
        add(k, txn, pid, epoch, {topic: [0]})
        k.produce(f"added v{version}", topic, batch(pid, epoch), version, transactional_id=txn)
        k.produce(f"the same again v{version}", topic, batch(pid, epoch), version, transactional_id=txn)
        k.produce(f"acks 1 v{version}", topic, batch(pid, epoch, 1), version, acks=1,
                  transactional_id=txn)
        k.produce(f"the next v{version}", topic, batch(pid, epoch, 2), version, transactional_id=txn)
        k.produce(f"a gap v{version}", topic, batch(pid, epoch, 9), version, transactional_id=txn)
        k.produce(f"outside of it v{version}", topic, Batch(producer_id=pid, producer_epoch=epoch,
                                                            base_sequence=2), version)
        look_committed(k, f"open v{version}", topic)
        end(k, txn, pid, epoch)
        look_committed(k, f"committed v{version}", topic)
        k.produce(f"behind it v{version}", topic, batch(pid, epoch, 3), version, transactional_id=txn)
        k.produce(f"without one v{version}", topic, Batch(producer_id=pid, producer_epoch=epoch,
                                                          base_sequence=3), version)


@case
def produce_adds_its_partition(k: Subject):
    """KIP-890, transaction version 2."""
    for version in (12, 13):
        txn, topic = new_id(k, f"txn{version}"), k.topic(f"t{version}", partitions=2)
        named = k.topic_id(topic) if version >= 13 else topic
        pid, epoch = init(k, txn)
        k.produce(f"first v{version}", named, batch(pid, epoch), version, transactional_id=txn)
        k.ask(f"described v{version}", "DescribeTransactions", 0, {"transactional_ids": [txn]})
        k.produce(f"a sequence that is not the first v{version}", named, batch(pid, epoch, 4), version,
                  partition=1, transactional_id=txn)
        answer = end(k, txn, pid, epoch, version=5)
        k.note(f"next epoch v{version}", answer["producer_epoch"])
        k.produce(f"the old epoch v{version}", named, batch(pid, epoch, 1), version, transactional_id=txn)
        k.produce(f"the next v{version}", named, batch(pid, epoch + 1), version, transactional_id=txn)
        end(k, txn, pid, epoch + 1, False, 5)
        look_committed(k, f"v{version}", topic)


@case
def produce_in_a_transaction_refused(k: Subject):
    txn, other, topic = new_id(k), new_id(k, "other"), k.topic(partitions=2)
    pid, epoch = init(k, txn)
    add(k, txn, pid, epoch, {topic: [0]})
    for version in (3, 9, 10, 11, 12):
        for label, records, more in (
            ("no id", batch(pid, epoch), {}),
            ("an empty id", batch(pid, epoch), {"transactional_id": ""}),
            ("unknown id", batch(pid, epoch), {"transactional_id": other}),
            ("another producer", batch(STRANGER, 0), {"transactional_id": txn}),
            ("a newer epoch", batch(pid, epoch + 1), {"transactional_id": txn}),
            ("no producer", Batch(attributes=TRANSACTIONAL), {"transactional_id": txn}),
            ("an id, and no transaction", Batch(), {"transactional_id": txn}),
        ):
            k.produce(f"{label} v{version}", topic, records, version, **more)
        two = [{"index": i, "records": batch(producer, epoch).build()}
               for i, producer in enumerate((pid, STRANGER))]
        k.ask(f"two producers v{version}", "Produce", version, {
            "acks": -1, "timeout_ms": 1000, "transactional_id": txn,
            "topic_data": [{"name": topic, "partition_data": two}]})
        k.produce(f"unknown topic v{version}", k.name("nobody"), batch(pid, epoch), version,
                  transactional_id=txn)
        k.produce(f"unknown partition v{version}", topic, batch(pid, epoch), version, partition=9,
                  transactional_id=txn)
        k.produce(f"no such acks v{version}", topic, batch(pid, epoch), version, acks=7,
                  transactional_id=txn)
    k.produce("a control batch", topic, Batch(attributes=48, producer_id=pid, producer_epoch=epoch,
                                              base_sequence=0), transactional_id=txn)


@case
def control_batches_are_apaches(k: Subject):
    txn, topic = new_id(k), k.topic()
    pid, epoch = init(k, txn)
    for sequence, commit in enumerate((True, False)):
        add(k, txn, pid, epoch, {topic: [0]})
        k.produce("batch", topic, batch(pid, epoch, sequence), transactional_id=txn)
        end(k, txn, pid, epoch, commit)
    answer = k.quiet("Fetch", 11, fetch_body(topic))
    records = answer["responses"][0]["partitions"][0]["records"]
    at, found = 0, []
    while at < len(records):
        size = 12 + int.from_bytes(records[at + 8:at + 12], "big")
        found.append(records[at + 61:at + size].hex())
        at += size
    k.note("records of each batch", found)
    look_committed(k, "all", topic)


@case
def add_offsets_to_txn(k: Subject):
    txn, other, group = new_id(k), new_id(k, "other"), new_group(k)
    pid, epoch = init(k, txn)
    for version in range(0, 5):
        for label, body in {
            "no id": ("", pid, epoch), "unknown id": (other, pid, epoch),
            "another producer": (txn, STRANGER, epoch), "an older epoch": (txn, pid, epoch - 1),
            "its own": (txn, pid, epoch), "again": (txn, pid, epoch),
        }.items():
            k.ask(f"{label} v{version}", "AddOffsetsToTxn", version, {
                "transactional_id": body[0], "producer_id": body[1], "producer_epoch": body[2],
                "group_id": group})
    k.ask("no group", "AddOffsetsToTxn", 3, {"transactional_id": txn, "producer_id": pid,
                                             "producer_epoch": epoch, "group_id": ""})


@case
def txn_offset_commit_of_every_version(k: Subject):
    for version in range(0, 7):
        txn, group = new_id(k, f"txn{version}"), new_group(k, f"group{version}")
        topic = k.topic(f"t{version}")
        pid, epoch = init(k, txn)
        body = offset_commit_body(k, txn, group, pid, epoch, topic, version)
        if version < 5:
            k.ask(f"before it is added v{version}", "TxnOffsetCommit", version, body)
            k.quiet("AddOffsetsToTxn", 3, {"transactional_id": txn, "producer_id": pid,
                                           "producer_epoch": epoch, "group_id": group})
        k.ask(f"v{version}", "TxnOffsetCommit", version, body)
        k.ask(f"again v{version}", "TxnOffsetCommit", version, body)
        k.ask(f"pending v{version}", "OffsetFetch", 8, committed(k, group, topic))
        k.ask(f"unstable v{version}", "OffsetFetch", 8, committed(k, group, topic, True))
        end(k, txn, pid, epoch, version % 2 == 0, 4 if version < 5 else 5)
        k.ask(f"ended v{version}", "OffsetFetch", 8, committed(k, group, topic, True))
        k.ask(f"behind it v{version}", "TxnOffsetCommit", version, body)


@case
def txn_offset_commit_refused(k: Subject):
    txn, other, group, topic = new_id(k), new_id(k, "other"), new_group(k), k.topic()
    pid, epoch = init(k, txn)
    k.quiet("AddOffsetsToTxn", 3, {"transactional_id": txn, "producer_id": pid, "producer_epoch": epoch,
                                   "group_id": group})
    for version in range(0, 7):
        def commit(label, *who, topic=topic, **more):
            k.ask(f"{label} v{version}", "TxnOffsetCommit", version,
                  offset_commit_body(k, *who, topic, version, **more))

        commit("no id", "", group, pid, epoch)
        commit("unknown id", other, group, pid, epoch)
        commit("no group", txn, "", pid, epoch)
        commit("another producer", txn, group, STRANGER, epoch)
        commit("an older epoch", txn, group, pid, epoch - 1)
        commit("a newer epoch", txn, group, pid, epoch + 1)
        commit("negative offset", txn, group, pid, epoch, offset=-1)
        if version >= 3:
            commit("a generation", txn, group, pid, epoch, generation_id_or_member_epoch=3)
            commit("a member", txn, group, pid, epoch, generation_id_or_member_epoch=3, member_id="x")
            commit("a static member", txn, group, pid, epoch, group_instance_id="x")
        body = offset_commit_body(k, txn, group, pid, epoch, topic, version)
        unknown = {"topic_id": uuid.UUID(int=77)} if version >= 6 else {"name": k.name("nobody")}
        body["topics"].append({**unknown, "partitions": body["topics"][0]["partitions"]})
        k.ask(f"unknown topic v{version}", "TxnOffsetCommit", version, body)
        body = offset_commit_body(k, txn, group, pid, epoch, topic, version)
        body["topics"][0]["partitions"].append({"partition_index": 9, "committed_offset": 1,
                                                "committed_metadata": None})
        k.ask(f"unknown partition v{version}", "TxnOffsetCommit", version, body)
        body["topics"] = []
        k.ask(f"no topics v{version}", "TxnOffsetCommit", version, body)


@case
def write_txn_markers(k: Subject):
    """As `kafka-transactions abort` does."""
    for version in (1, 2):
        txn, topic = new_id(k, f"txn{version}"), k.topic(f"t{version}", partitions=2)
        init(k, txn)
        pid, epoch = init(k, txn)
        add(k, txn, pid, epoch, {topic: [0, 1]})
        for partition in (0, 1):
            k.produce(f"batch v{version}", topic, batch(pid, epoch), partition=partition,
                      transactional_id=txn)
        ask = lambda label, body, v=version: ask_sorted(  # noqa: E731
            k, f"{label} v{v}", "WriteTxnMarkers", v, body)
        ask("none", {"markers": []})
        ask("no partitions", markers_body(pid, epoch, {}))
        ask("unknown topic", markers_body(pid, epoch, {k.name("nobody"): [0]}))
        ask("unknown partition", markers_body(pid, epoch, {topic: [9]}))
        ask("an older epoch", markers_body(pid, epoch - 1, {topic: [0]}))
        ask("no epoch", markers_body(pid, -1, {topic: [0]}))
        ask("no producer", markers_body(-1, epoch, {topic: [0]}))
        ask("abort", markers_body(pid, epoch, {topic: [0]}, coordinator_epoch=5))
        ask("abort again", markers_body(pid, epoch, {topic: [0]}, coordinator_epoch=5))
        ask("an older coordinator", markers_body(pid, epoch, {topic: [0]}, coordinator_epoch=4))
        ask("commit of the other, with the unknown",
            markers_body(pid, epoch, {topic: [1], k.name("nobody"): [0]}, commit=True))
        ask("of somebody else", markers_body(STRANGER, 3, {topic: [0, 1]}, commit=True))
        twice = markers_body(pid, epoch, {topic: [0]}, coordinator_epoch=6)
        ask("two markers", {"markers": twice["markers"] + markers_body(
            pid, epoch, {topic: [1]}, coordinator_epoch=7)["markers"]})
        if version >= 2:
            ask("a bumped epoch", markers_body(pid, epoch + 1, {topic: [0]}, coordinator_epoch=8,
                                               transaction_version=2))
            ask("the same, again", markers_body(pid, epoch + 1, {topic: [0]}, coordinator_epoch=8,
                                                transaction_version=2))
            ask("one too late", markers_body(pid, epoch, {topic: [0]}, coordinator_epoch=8,
                                             transaction_version=2))
        producers = k.quiet("DescribeProducers", 0, {"topics": [{"name": topic, "partition_indexes": [0]}]})
        active = producers["topics"][0]["partitions"][0]["active_producers"]
        active.sort(key=lambda producer: producer["producer_epoch"])
        for producer in active:
            del producer["last_timestamp"]  # of the marker: the broker's clock
        k.note(f"producers v{version}", producers)
        look_committed(k, f"v{version}", topic)


@case
def describe_transactions(k: Subject):
    txn, topic, other = new_id(k), k.topic(partitions=3), k.topic("u")
    describe = lambda label, *ids: ask_sorted(  # noqa: E731
        k, label, "DescribeTransactions", 0, {"transactional_ids": list(ids)})
    describe("none")
    describe("no id", "")
    describe("unknown", txn)
    pid, epoch = init(k, txn)
    describe("empty", txn)
    describe("twice", txn, txn)
    add(k, txn, pid, epoch, {topic: [2, 0], other: [0]})
    describe("ongoing", txn, "", new_id(k, "other"))
    end(k, txn, pid, epoch)
    describe("committed", txn)
    add(k, txn, pid, epoch, {topic: [1]})
    end(k, txn, pid, epoch, False)
    describe("aborted", txn)
    init(k, txn)
    describe("begun anew", txn)


@case
def list_transactions(k: Subject):
    topic = k.topic()
    ids = [new_id(k, name) for name in ("a1", "a2", "b1")]
    producers = [init(k, txn) for txn in ids]
    add(k, ids[1], *producers[1], {topic: [0]})
    add(k, ids[2], *producers[2], {topic: [0]})
    end(k, ids[2], *producers[2])

    def ask(label, version=2, **filters):
        """Only ids of this case are compared."""
        body = {"state_filters": [], "producer_id_filters": [], **filters}
        answer = k.quiet("ListTransactions", version, body)
        answer["transaction_states"] = sorted(
            (t for t in answer["transaction_states"] if t["transactional_id"].startswith(k.prefix)),
            key=lambda t: t["transactional_id"])
        k.note(label, answer)

    for version in (0, 1, 2):
        ask(f"all v{version}", version)
        ask(f"by state v{version}", version, state_filters=["Ongoing"])
        ask(f"by states v{version}", version, state_filters=["Empty", "CompleteCommit", "Dead"])
        ask(f"by unknown states v{version}", version, state_filters=["ongoing", "Ended", "Ended", "Empty"])
        ask(f"by unknown states alone v{version}", version, state_filters=["Ended"])
        ask(f"by producer v{version}", version,
            producer_id_filters=[producers[0][0], producers[2][0], STRANGER])
        ask(f"by both v{version}", version, producer_id_filters=[producers[0][0]],
            state_filters=["Ongoing"])
    for duration in (-1, 0, 3_600_000, 10**15):
        ask(f"longer than {duration}", duration_filter=duration)
    for pattern in ("", ".*a.", f"{k.prefix}a1", "a1", ".*[ab]1$", f"^{k.prefix}(a|b)\\d", "(?i).*A1",
                    ".*\\pL1", ".*(", "*", "[", "a{1001}", "(?=a)", "\\1"):
        ask(f"by pattern {pattern.replace(k.prefix, '')!r}", transactional_id_pattern=pattern)
    ask("no pattern", transactional_id_pattern=None)
