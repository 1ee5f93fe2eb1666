"""What is too large for a record of __consumer_offsets: 1 MiB and 12 bytes."""

import time

from group_cases import (Other, commit_body, fetch_body, heartbeat_body, join, join_body, new_id, ready, stable,
                         sync_body)
from harness import Subject, case

LARGE = 1 << 20  # fits, and nothing beside it


@case
def sync_group_with_an_assignment_too_large(k: Subject):
    group = ready(k)
    member = new_id(k, group)
    answer = k.quiet("JoinGroup", 9, join_body(group, member))
    k.ask("sync", "SyncGroup", 5, sync_body(group, member, answer["generation_id"], [(member, b"x" * LARGE)],
                                          protocol_type="consumer", protocol_name="range"))
    k.ask("heartbeat", "Heartbeat", 4, heartbeat_body(group, member, answer["generation_id"]))
    k.ask("described", "DescribeGroups", 5, {"groups": [group]})
    answer = k.quiet("JoinGroup", 9, join_body(group, member))
    k.ask("less is kept", "SyncGroup", 5, sync_body(
        group, member, answer["generation_id"], [(member, b"x" * (LARGE - 1024)), ("stranger", b"x")],
        protocol_type="consumer", protocol_name="range"))
    k.note("described", len(k.quiet("DescribeGroups", 5, {"groups": [group]})["groups"][0]["members"][0][
        "member_assignment"]))


@case
def sync_group_with_an_assignment_too_large_for_followers_too(k: Subject):
    group = ready(k)
    member = stable(k, group)
    other = Other(k)
    second = new_id(k, group)
    other.send("JoinGroup", 9, join_body(group, second))
    k.await_answer(lambda a: a["error_code"] == 27, "Heartbeat", 4, heartbeat_body(group, member))
    first = k.quiet("JoinGroup", 9, join_body(group, member))
    other.connection.receive(*other.waiting)
    other.send("SyncGroup", 5, sync_body(group, second, first["generation_id"], protocol_type="consumer",
                                         protocol_name="range"))
    time.sleep(0.2)
    k.ask("leader", "SyncGroup", 5, sync_body(group, member, first["generation_id"], [(member, b"x" * LARGE)],
                                            protocol_type="consumer", protocol_name="range"))
    other.receive("follower")


@case
def join_group_with_metadata_too_large(k: Subject):
    group = ready(k)
    protocols = (("range", b"x" * LARGE),)
    answer = join(k, "first", group, protocols=protocols)
    join(k, "again", group, answer["member_id"], protocols=protocols)
    k.ask("sync", "SyncGroup", 5, sync_body(group, answer["member_id"], 1, protocol_type="consumer",
                                          protocol_name="range"))
    k.ask("described", "DescribeGroups", 5, {"groups": [group]})


@case
def static_member_comes_back_with_metadata_too_large(k: Subject):
    group = ready(k)
    answer = k.quiet("JoinGroup", 9, join_body(group, group_instance_id="i"))
    member = answer["member_id"]
    k.quiet("SyncGroup", 5, sync_body(group, member, 1, [(member, b"x" * (LARGE // 2))], group_instance_id="i",
                                      protocol_type="consumer", protocol_name="range"))
    join(k, "again", group, group_instance_id="i", protocols=(("range", b"x" * (LARGE // 2)),))
    k.ask("the old one lives", "Heartbeat", 4, heartbeat_body(group, member, group_instance_id="i"))
    k.note("described", [m["member_id"] == member for m in k.quiet("DescribeGroups", 5, {"groups": [group]})[
        "groups"][0]["members"]])


@case
def offset_commit_of_too_much(k: Subject):
    name, group = k.topic(), ready(k)
    extra = {"committed_metadata": "x" * 4096}
    for label, count in (("less", 250), ("too much", 260)):
        answer = k.quiet("OffsetCommit", 9, commit_body(k, 9, group, name, ((0, count, extra),) * count))
        k.note(label, sorted({p["error_code"] for t in answer["topics"] for p in t["partitions"]}))
    answer = k.quiet("OffsetCommit", 9, commit_body(k, 9, group, name, ((0, 1, extra),) * 260 + ((7, 1),)))
    k.note("and a partition that is not there", sorted({p["error_code"] for t in answer["topics"]
                                                       for p in t["partitions"]}))
    k.note("fetched", k.quiet("OffsetFetch", 9, fetch_body(9, group, {name: (0,)}))["groups"][0]["topics"][0][
        "partitions"][0]["committed_offset"])
