"""Consumer groups and their offsets: APIs 8, 9, 11 to 16, 42 and 47."""

import struct
import uuid

from harness import PATIENCE, Subject, case
from kafka_wire import codec
from kafka_wire.connection import Connection

NOT_THERE_YET = {14, 15, 16}  # the coordinator is loading, not known yet, or moves


def ready(k: Subject, group: str = "g") -> str:
    """A group's name, once its coordinator answers."""
    name = k.name(group)
    k.await_answer(lambda a: a["coordinators"][0]["error_code"] == 0, "FindCoordinator", 4,
                   {"key_type": 0, "coordinator_keys": [name]})
    k.await_answer(lambda a: a["groups"][0]["error_code"] not in NOT_THERE_YET, "OffsetFetch", 8,
                   {"groups": [{"group_id": name, "topics": []}]})
    return name


def subscription(*topics: str) -> bytes:
    """What a consumer tells its leader (ConsumerProtocolSubscription, version 0)."""
    names = b"".join(struct.pack(">h", len(t)) + t.encode() for t in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


def join_body(group, member="", protocols=(("range", b"meta"),), session=30000, rebalance=30000,
              kind="consumer", **more) -> dict:
    return {"group_id": group, "session_timeout_ms": session, "rebalance_timeout_ms": rebalance,
            "member_id": member, "protocol_type": kind,
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in protocols], **more}


def join(k: Subject, label, group, member="", version=9, **more):
    return k.ask(label, "JoinGroup", version, join_body(group, member, **more))


def new_id(k: Subject, group, **more) -> str:
    answer = k.quiet("JoinGroup", 9, join_body(group, **more))
    assert answer["error_code"] == 79, answer  # MEMBER_ID_REQUIRED
    return answer["member_id"]


def sync_body(group, member, generation=1, assignments=(), **more) -> dict:
    return {"group_id": group, "generation_id": generation, "member_id": member,
            "assignments": [{"member_id": m, "assignment": a} for m, a in assignments], **more}


def stable(k: Subject, group, protocols=(("range", b"meta"),), assignment=b"all", **more) -> str:
    """A stable group of one member, which it gives."""
    answer = k.quiet("JoinGroup", 9, join_body(group, new_id(k, group, protocols=protocols, **more),
                                               protocols=protocols, **more))
    assert answer["error_code"] == 0, answer
    member = answer["member_id"]
    answer = k.quiet("SyncGroup", 5, sync_body(group, member, answer["generation_id"],
                                               [(member, assignment)],
                                               protocol_type=answer["protocol_type"],
                                               protocol_name=answer["protocol_name"]))
    assert answer["error_code"] == 0, answer
    return member


def heartbeat_body(group, member, generation=1, **more) -> dict:
    return {"group_id": group, "generation_id": generation, "member_id": member, **more}


def commit_body(k: Subject, version, group, topic, partitions=((0, 5),), member="", generation=-1, **more):
    named = {"topic_id": topic} if isinstance(topic, uuid.UUID) else {"name": topic}
    return {"group_id": group, "member_id": member, "generation_id_or_member_epoch": generation, **more,
            "topics": [{**named, "partitions": [
                {"partition_index": p, "committed_offset": offset, "committed_leader_epoch": -1,
                 "committed_metadata": "", **dict(*extra)} for p, offset, *extra in partitions]}]}


def commit(k: Subject, label, group, topic, *partitions, version=9, **more):
    return k.ask(label, "OffsetCommit", version, commit_body(k, version, group, topic, partitions, **more))


def fetch_body(version, group, topics, **more) -> dict:
    """`topics`: None for all, or a dict of names (ids from version 10 on) and partitions."""
    listed = None if topics is None else [
        {("topic_id" if isinstance(t, uuid.UUID) else "name"): t, "partition_indexes": list(p)}
        for t, p in topics.items()]
    if version < 8:
        return {"group_id": group, "topics": listed, **more}
    return {"groups": [{"group_id": group, "topics": listed}], **more}


def fetch(k: Subject, label, group, topics, version=9, **more):
    return k.ask(label, "OffsetFetch", version, fetch_body(version, group, topics, **more))


class Other:
    """A second client beside the case's own connection."""

    def __init__(self, k: Subject):
        self.k = k
        self.connection = Connection(k.address, client_id="other", timeout=PATIENCE)

    def send(self, api, version, body) -> None:
        self.waiting = (api, version, self.connection.send(api, version, body))

    def receive(self, label):
        answer = self.connection.receive(*self.waiting)
        self.k.note(label, answer)
        return answer


# --- JoinGroup, SyncGroup, Heartbeat, LeaveGroup -------------------------------------------------------


@case
def join_group_of_every_version(k: Subject):
    for version in codec.api("JoinGroup").request.stable:
        group = ready(k, f"g{version}")
        answer = join(k, f"v{version}", group, version=version)
        if answer["error_code"] == 79:
            join(k, f"v{version} again", group, answer["member_id"], version)


@case
def join_group_with_what_does_not_fit(k: Subject):
    group = ready(k)
    for version in (0, 4, 9):
        join(k, f"v{version} no group", "", version=version)
        join(k, f"v{version} unknown member of no group", group + "none", "m", version)
        join(k, f"v{version} session too short", group, session=5999, version=version)
        join(k, f"v{version} session too long", group, session=1800001, version=version)
        join(k, f"v{version} negative session", group, session=-1, version=version)
        join(k, f"v{version} no protocols", group, protocols=(), version=version)
        join(k, f"v{version} no protocol type", group, kind="", version=version)
        k.ask(f"v{version} and then the group is", "DescribeGroups", 6, {"groups": [group]})
    stable(k, group)
    for version in (0, 4, 9):
        join(k, f"v{version} other protocol", group, protocols=(("x", b""),), version=version)
        join(k, f"v{version} other protocol type", group, kind="connect", version=version)
        join(k, f"v{version} unknown member", group, "m", version)
    join(k, "empty client id is no harm", group, version=9)


@case
def join_group_again(k: Subject):
    group = ready(k)
    member = stable(k, group)
    join(k, "leader", group, member, protocols=(("range", b"new"),))
    join(k, "lost answer", group, member, protocols=(("range", b"new"),))
    k.ask("sync with the old generation", "SyncGroup", 5, sync_body(group, member, 1))
    k.ask("sync", "SyncGroup", 5, sync_body(group, member, 2, [(member, b"2")]))
    join(k, "changed metadata", group, member, protocols=(("range", b"newer"), ("more", b"")))


@case
def join_group_names_a_protocol_of_the_group(k: Subject):
    group = ready(k)
    first = new_id(k, group, protocols=(("a", b"a1"), ("b", b"b1"), ("c", b"c1")))
    join(k, "three", group, first, protocols=(("a", b"a1"), ("b", b"b1"), ("c", b"c1")))
    other = Other(k)
    second = new_id(k, group, protocols=(("c", b"c2"), ("b", b"b2")))
    other.send("JoinGroup", 9, join_body(group, second, (("c", b"c2"), ("b", b"b2"))))
    k.await_answer(lambda a: a["error_code"] == 27, "Heartbeat", 4, heartbeat_body(group, first))
    answer = k.quiet("JoinGroup", 9, join_body(group, first, (("b", b"b1"), ("c", b"c1"))))
    k.note("leader", [answer["protocol_name"] in ("b", "c"), answer["leader"] == first,
                      sorted(m["metadata"] for m in answer["members"])[0][:1]
                      == answer["protocol_name"].encode()])
    follower = other.connection.receive(*other.waiting)
    k.note("follower", [follower["error_code"], follower["members"], follower["leader"] == first,
                        follower["protocol_name"] == answer["protocol_name"]])


@case
def join_group_with_repeated_protocols_and_odd_names(k: Subject):
    group = ready(k)
    join(k, "umlaut", group, protocols=(("ü", b""),))
    join(k, "empty name", group, protocols=(("", b""),))
    member = new_id(k, group, protocols=(("", b"x"),))
    join(k, "empty name again", group, member, protocols=(("", b"x"),))
    k.ask("sync", "SyncGroup", 5, sync_body(group, member, 1, [(member, b"1")]))
    k.ask("described", "DescribeGroups", 5, {"groups": [group]})


@case
def static_member_comes_back(k: Subject):
    for version in (5, 8, 9):
        group = ready(k, f"g{version}")
        first = join(k, f"v{version} comes", group, version=version, group_instance_id="i")
        member = first["member_id"]
        k.ask(f"v{version} sync", "SyncGroup", 5, sync_body(group, member, 1, [(member, b"mine")],
                                                          group_instance_id="i"))
        again = join(k, f"v{version} again", group, version=version, group_instance_id="i")
        k.note(f"v{version} is another", again["member_id"] != member)
        k.ask(f"v{version} sync again", "SyncGroup", 5,
              sync_body(group, again["member_id"], 1, group_instance_id="i"))
        for api, api_version, body in (
            ("Heartbeat", 4, heartbeat_body(group, member, group_instance_id="i")),
            ("SyncGroup", 5, sync_body(group, member, 1, group_instance_id="i")),
            ("JoinGroup", 9, join_body(group, member, group_instance_id="i")),
            ("LeaveGroup", 5, {"group_id": group, "members": [
                {"member_id": member, "group_instance_id": "i"}]}),
            ("Heartbeat", 4, heartbeat_body(group, member)),
            ("Heartbeat", 4, heartbeat_body(group, again["member_id"], group_instance_id="j")),
        ):
            k.ask(f"v{version} the old one, {api}", api, api_version, body)
        k.ask(f"v{version} described", "DescribeGroups", 5, {"groups": [group]})
        join(k, f"v{version} with other protocols", group, again["member_id"], version=version,
             group_instance_id="i", protocols=(("range", b"new"), ("more", b"")))


@case
def static_member_that_was_given_an_id_as_a_dynamic_one(k: Subject):
    group = ready(k)
    join(k, "join", group, new_id(k, group), group_instance_id="i")


@case
def sync_group_of_every_version(k: Subject):
    group = ready(k)
    member = stable(k, group)
    k.ask_all("SyncGroup", lambda v: sync_body(group, member))
    k.ask_all("SyncGroup", lambda v: sync_body(group, member, 0))
    k.ask_all("SyncGroup", lambda v: sync_body("", member))
    k.ask_all("SyncGroup", lambda v: sync_body(group, "nobody"))


@case
def sync_group_with_what_does_not_fit(k: Subject):
    group = ready(k)
    k.ask("no such group", "SyncGroup", 5, sync_body(group, "m", protocol_type="consumer", protocol_name="range"))
    member = stable(k, group)
    for label, more in (("no protocol", {}), ("no name", {"protocol_type": "consumer"}),
                        ("no type", {"protocol_name": "range"}),
                        ("other type", {"protocol_type": "x", "protocol_name": "range"}),
                        ("other name", {"protocol_type": "consumer", "protocol_name": "x"}),
                        ("both", {"protocol_type": "consumer", "protocol_name": "range"})):
        for version in (4, 5):
            body = {} if version < 5 else more
            k.ask(f"v{version} {label}", "SyncGroup", version, sync_body(group, member, **body))
    k.ask("late assignments", "SyncGroup", 5, sync_body(
        group, member, 1, [(member, b"other")], protocol_type="consumer", protocol_name="range"))
    k.ask("described", "DescribeGroups", 5, {"groups": [group]})


@case
def sync_group_of_a_leader_that_forgets_members(k: Subject):
    group = ready(k)
    member = join(k, "join", group, new_id(k, group))["member_id"]
    k.ask("sync", "SyncGroup", 5, sync_body(group, member, 1, [("stranger", b"x")],
                                          protocol_type="consumer", protocol_name="range"))
    k.ask("described", "DescribeGroups", 5, {"groups": [group]})


@case
def heartbeat_of_every_version(k: Subject):
    group = ready(k)
    k.ask_all("Heartbeat", lambda v: heartbeat_body(group, "m"))
    member = stable(k, group)
    k.ask_all("Heartbeat", lambda v: heartbeat_body(group, member))
    k.ask_all("Heartbeat", lambda v: heartbeat_body(group, member, 2))
    k.ask_all("Heartbeat", lambda v: heartbeat_body(group, "nobody"))
    k.ask_all("Heartbeat", lambda v: heartbeat_body("", member))


@case
def heartbeat_in_a_rebalance(k: Subject):
    group = ready(k)
    member = stable(k, group)
    other = Other(k)
    other.send("JoinGroup", 9, join_body(group, new_id(k, group)))
    k.await_answer(lambda a: a["error_code"] == 27, "Heartbeat", 4, heartbeat_body(group, member))
    k.ask("rebalancing", "Heartbeat", 4, heartbeat_body(group, member))
    k.ask("sync", "SyncGroup", 5, sync_body(group, member, 1, protocol_type="consumer", protocol_name="range"))
    k.ask("left", "LeaveGroup", 5, {"group_id": group, "members": [{"member_id": member}]})
    other.receive("the other leads")


@case
def leave_group_of_every_version(k: Subject):
    for version in codec.api("LeaveGroup").request.stable:
        group = ready(k, f"g{version}")

        def body(member, group=group, version=version):
            if version < 3:
                return {"group_id": group, "member_id": member}
            return {"group_id": group, "members": [{"member_id": member, "reason": "done"}]
                    if version > 4 else [{"member_id": member}]}

        k.ask(f"v{version} no group", "LeaveGroup", version, body("m"))
        member = stable(k, group)
        k.ask(f"v{version} stranger", "LeaveGroup", version, body("m"))
        k.ask(f"v{version} member", "LeaveGroup", version, body(member))
        k.ask(f"v{version} member again", "LeaveGroup", version, body(member))
        k.ask(f"v{version} is empty", "DescribeGroups", 5, {"groups": [group]})
        k.ask(f"v{version} empty group id", "LeaveGroup", version, {**body(member), "group_id": ""})


@case
def leave_group_of_several(k: Subject):
    group = ready(k)
    member = k.quiet("JoinGroup", 9, join_body(group, group_instance_id="i"))["member_id"]
    pending = new_id(k, group)
    k.ask("none", "LeaveGroup", 5, {"group_id": group, "members": []})
    k.ask("several", "LeaveGroup", 5, {"group_id": group, "members": [
        {"member_id": "", "group_instance_id": "j"}, {"member_id": "", "group_instance_id": None},
        {"member_id": "x", "group_instance_id": "i"}, {"member_id": pending},
        {"member_id": "", "group_instance_id": "i", "reason": "by its name"},
        {"member_id": member, "group_instance_id": "i"}]})
    k.ask("described", "DescribeGroups", 5, {"groups": [group]})


# --- offsets ---------------------------------------------------------------------------------------------


@case
def offset_commit_and_fetch_of_every_version(k: Subject):
    name, group = k.topic(partitions=2), ready(k)
    topic_id = k.topic_id(name)

    def topic(version):
        return topic_id if version >= 10 else name

    for version in codec.api("OffsetCommit").request.stable:
        commit(k, f"v{version}", group, topic(version), (0, version), (1, version), version=version)
    for version in codec.api("OffsetFetch").request.stable:
        fetch(k, f"v{version}", group, {topic(version): (0, 1, 7)}, version)
        if version >= 2:
            fetch(k, f"v{version} all", group, None, version)
            fetch(k, f"v{version} all of nobody", group + "none", None, version)
        fetch(k, f"v{version} nothing", group, {}, version)
        fetch(k, f"v{version} of nobody", group + "none", {topic(version): (0,)}, version)


@case
def offset_commit_of_what_is_not_there(k: Subject):
    name, group = k.topic(partitions=2), ready(k)
    for version in (2, 6, 9):
        commit(k, f"v{version} unknown topic", group, k.name("nobody"), (0, 1), version=version)
        commit(k, f"v{version} unknown partitions", group, name, (0, 1), (9, 1), (-1, 1), (1, 2), version=version)
        commit(k, f"v{version} no partitions", group, name, version=version)
        k.ask(f"v{version} no topics", "OffsetCommit", version, {
            "group_id": group, "member_id": "", "generation_id_or_member_epoch": -1, "topics": []})
    commit(k, "unknown id", group, uuid.UUID(int=77), (0, 1), version=10)
    commit(k, "zero id", group, uuid.UUID(int=0), (0, 1), version=10)
    commit(k, "unknown partition by id", group, k.topic_id(name), (9, 1), (0, 3), version=10)
    fetch(k, "fetched", group, None)


@case
def offset_commit_of_odd_values(k: Subject):
    name, group = k.topic(partitions=4), ready(k)
    commit(k, "negative offset", group, name, (0, -5))
    commit(k, "largest", group, name, (1, 2**63 - 1))
    commit(k, "leader epoch", group, name, (2, 1, {"committed_leader_epoch": 7}))
    commit(k, "negative leader epoch", group, name, (3, 1, {"committed_leader_epoch": -2}))
    fetch(k, "fetched", group, {name: (0, 1, 2, 3)})
    commit(k, "metadata", group, name, (0, 1, {"committed_metadata": "ein \"Wört\"\n"}))
    commit(k, "no metadata", group, name, (1, 1, {"committed_metadata": None}))
    commit(k, "4096", group, name, (2, 1, {"committed_metadata": "x" * 4096}))
    commit(k, "4097 beside a good one", group, name, (3, 8, {"committed_metadata": "x" * 4097}), (0, 9))
    commit(k, "4096 umlauts", group, name, (3, 4, {"committed_metadata": "ü" * 4096}))
    commit(k, "2049 of two units", group, name, (3, 5, {"committed_metadata": "\U0001F600" * 2049}))
    fetch(k, "fetched again", group, {name: (0, 1, 2, 3)})
    commit(k, "twice", group, name, (0, 1), (0, 2))
    fetch(k, "the last one", group, {name: (0, 0)})


@case
def offset_commit_of_members(k: Subject):
    name, group = k.topic(), ready(k)
    for version in (2, 8, 9):
        commit(k, f"v{version} no group", group, name, (0, 1), version=version, member="m", generation=1)
    member = stable(k, group)
    for label, who in (("member", {"member": member, "generation": 1}),
                       ("stranger", {"member": "m", "generation": 1}),
                       ("old generation", {"member": member, "generation": 0}),
                       ("member without generation", {"member": member, "generation": -1}),
                       ("nobody", {})):
        for version in (2, 6, 9):
            commit(k, f"v{version} {label}", group, name, (0, 1), version=version, **who)
    commit(k, "unknown instance", group, name, (0, 1), member=member, generation=1, group_instance_id="i")
    join(k, "new generation", group, member)
    commit(k, "old generation", group, name, (0, 1), member=member, generation=1)
    commit(k, "before the assignment", group, name, (0, 1), member=member, generation=2)
    fetch(k, "fetched", group, None)


@case
def offset_commit_and_fetch_of_the_group_without_a_name(k: Subject):
    name = k.topic()
    ready(k)
    for version in (2, 5, 9):
        k.await_answer(lambda a: a["topics"][0]["partitions"][0]["error_code"] not in NOT_THERE_YET,
                       "OffsetCommit", 9, commit_body(k, 9, "", name, ((0, 7),)))
        commit(k, f"v{version} commit", "", name, (0, 7), version=version)
        fetch(k, f"v{version} fetch", "", {name: (0,)}, version)
    k.ask("describe", "DescribeGroups", 5, {"groups": [""]})
    k.ask("delete offsets", "OffsetDelete", 0, {"group_id": "", "topics": []})
    k.ask("delete", "DeleteGroups", 2, {"groups_names": [""]})


@case
def offset_fetch_of_several_groups(k: Subject):
    name, one, two = k.topic(partitions=2), ready(k, "one"), ready(k, "two")
    commit(k, "one", one, name, (0, 1))
    commit(k, "two", two, name, (1, 2))
    for version in (8, 9):
        k.ask(f"v{version}", "OffsetFetch", version, {"groups": [
            {"group_id": two, "topics": None}, {"group_id": one, "topics": [
                {"name": name, "partition_indexes": [0, 1]}]},
            {"group_id": k.name("none"), "topics": None}], "require_stable": True})
    k.ask("no groups", "OffsetFetch", 8, {"groups": []})
    k.ask("one group twice", "OffsetFetch", 8, {"groups": [{"group_id": one, "topics": None}] * 2})


@case
def offset_fetch_by_topic_id(k: Subject):
    name, group = k.topic(), ready(k)
    topic_id = k.topic_id(name)
    commit(k, "by id", group, topic_id, (0, 4), version=10)
    fetch(k, "by id", group, {topic_id: (0, 1)}, 10)
    fetch(k, "all", group, None, 10)
    fetch(k, "unknown id", group, {uuid.UUID(int=77): (0,), topic_id: (0,)}, 10)
    fetch(k, "zero id", group, {uuid.UUID(int=0): (0,)}, 10)
    fetch(k, "unknown name", group, {k.name("nobody"): (0,)}, 9)
    fetch(k, "odd partitions", group, {name: (-1, 0, 0)}, 9)


@case
def offsets_of_a_deleted_topic_go(k: Subject):
    name, group = k.topic(), ready(k)
    commit(k, "commit", group, name, (0, 4))
    k.quiet("DeleteTopics", 6, {"topics": [{"name": name}], "timeout_ms": 30000})
    k.await_answer(lambda a: not a["groups"][0]["topics"], "OffsetFetch", 9, fetch_body(9, group, None))
    fetch(k, "gone", group, {name: (0,)})
    k.await_answer(lambda a: a["topics"][0]["error_code"] == 3, "Metadata", 12,
                   {"topics": [{"name": name}], "allow_auto_topic_creation": False})
    again = k.topic()
    fetch(k, "not of the next one", group, {again: (0,)})


@case
def offset_delete(k: Subject):
    name, other, group = k.topic(partitions=2), k.topic("other"), ready(k)

    def delete(label, topics):
        k.ask(label, "OffsetDelete", 0, {"group_id": group, "topics": [
            {"name": t, "partitions": [{"partition_index": p} for p in ps]} for t, ps in topics.items()]})

    delete("no group", {name: (0,)})
    commit(k, "simple", group, name, (0, 1), (1, 2))
    delete("one", {name: (0,)})
    delete("again", {name: (0,)})
    delete("unknown", {name: (1, 9, -1), k.name("nobody"): (0, 1)})
    delete("nothing", {})
    fetch(k, "fetched", group, None)
    member = stable(k, group, (("range", subscription(name)),))
    commit(k, "both", group, name, (0, 1), member=member, generation=1)
    commit(k, "both", group, other, (0, 2), member=member, generation=1)
    delete("one is read", {name: (0,), other: (0,)})
    fetch(k, "fetched again", group, None)


@case
def offset_delete_of_another_protocol(k: Subject):
    name, group = k.topic(), ready(k)
    stable(k, group, kind="connect")
    k.ask("delete", "OffsetDelete", 0, {"group_id": group, "topics": [
        {"name": name, "partitions": [{"partition_index": 0}]}]})


@case
def offset_delete_with_a_subscription_that_cannot_be_read(k: Subject):
    name, group = k.topic(), ready(k)
    stable(k, group, (("range", b"\x00"),))
    k.ask("delete", "OffsetDelete", 0, {"group_id": group, "topics": [
        {"name": name, "partitions": [{"partition_index": 0}]}]})


# --- tools' view -------------------------------------------------------------------------------------------


@case
def describe_groups_of_every_version(k: Subject):
    group = ready(k)
    none = ready(k, "none")
    k.ask_all("DescribeGroups", lambda v: {"groups": [none]})
    stable(k, group, (("range", subscription("t")),), b"assigned")
    k.ask_all("DescribeGroups", lambda v: {"groups": [group]})
    k.ask("operations", "DescribeGroups", 5, {"groups": [group], "include_authorized_operations": True})
    k.ask("none", "DescribeGroups", 5, {"groups": []})


@case
def describe_groups_in_each_state(k: Subject):
    group = ready(k)
    member = new_id(k, group)
    k.ask("an id was given", "DescribeGroups", 5, {"groups": [group]})
    join(k, "join", group, member)
    k.ask("completing", "DescribeGroups", 5, {"groups": [group]})
    k.ask("sync", "SyncGroup", 5, sync_body(group, member, 1, [(member, b"x")]))
    other = Other(k)
    other.send("JoinGroup", 9, join_body(group, new_id(k, group)))
    k.await_answer(lambda a: a["error_code"] == 27, "Heartbeat", 4, heartbeat_body(group, member))
    answer = k.quiet("DescribeGroups", 5, {"groups": [group]})["groups"][0]
    k.note("preparing", [answer["group_state"], answer["protocol_type"], answer["protocol_data"],
                         len(answer["members"]), [m["member_metadata"] for m in answer["members"]],
                         sorted(m["client_id"] for m in answer["members"])])
    k.ask("left", "LeaveGroup", 5, {"group_id": group, "members": [{"member_id": member}]})
    second = other.receive("the other")["member_id"]
    k.ask("left too", "LeaveGroup", 5, {"group_id": group, "members": [{"member_id": second}]})
    k.ask("empty", "DescribeGroups", 5, {"groups": [group]})


def listed(k: Subject, label: str, version: int = 5, **filters) -> None:
    """Notes the groups of this case; others of the broker come and go."""
    answer = k.quiet("ListGroups", version, filters)
    k.note(label, {**answer, "groups": sorted((g for g in answer["groups"] if g["group_id"].startswith(k.prefix)),
                                              key=lambda g: g["group_id"])})


@case
def list_groups_of_every_version(k: Subject):
    name, simple, group = k.topic(), ready(k, "simple"), ready(k, "stable")
    commit(k, "simple", simple, name, (0, 1))
    stable(k, group)
    for version in codec.api("ListGroups").request.stable:
        listed(k, f"v{version}", version)
    for states in (["Stable"], ["EMPTY", " stable "], ["Dead"], ["nonsense"], [""], ["PreparingRebalance"]):
        listed(k, f"states {states}", 5, states_filter=states)
    for types in (["classic"], ["Classic", "share"], ["consumer"], ["nonsense"], [""], ["streams"]):
        listed(k, f"types {types}", 5, types_filter=types)
    listed(k, "both", 5, types_filter=["classic"], states_filter=["empty"])


@case
def delete_groups(k: Subject):
    name, group, other = k.topic(), ready(k), ready(k, "other")
    for version in codec.api("DeleteGroups").request.stable:
        k.ask(f"v{version} no such", "DeleteGroups", version, {"groups_names": [group]})
        member = stable(k, group)
        commit(k, f"v{version} commit", group, name, (0, 1), member=member, generation=1)
        k.ask(f"v{version} stable", "DeleteGroups", version, {"groups_names": [group]})
        k.ask(f"v{version} leave", "LeaveGroup", 5, {"group_id": group, "members": [{"member_id": member}]})
        k.ask(f"v{version} empty", "DeleteGroups", version, {"groups_names": [group]})
        fetch(k, f"v{version} nothing is left", group, None)
    commit(k, "simple", other, name, (0, 1))
    k.ask("twice in one", "DeleteGroups", 2, {"groups_names": [other, other]})
    k.ask("none", "DeleteGroups", 2, {"groups_names": []})
    k.ask("has an id given", "JoinGroup", 9, join_body(group))
    k.ask("goes all the same", "DeleteGroups", 2, {"groups_names": [group]})
