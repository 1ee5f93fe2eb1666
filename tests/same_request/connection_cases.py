"""Frames, headers and ApiVersions."""

import struct

from harness import Subject, case
from kafka_wire import codec


def api_versions(name="test", version="1.0", **more) -> dict:
    return {"client_software_name": name, "client_software_version": version, **more}


@case
def api_versions_of_every_version(k: Subject):
    k.ask_all("ApiVersions", lambda v: api_versions() if v >= 3 else {})


@case
def api_versions_too_new_is_answered_in_version_0(k: Subject):
    connection = k.open()
    # Whatever stands behind the header of an unknown version is not looked at.
    connection.send_frame(connection.request_bytes("ApiVersions", 99, b"\x01\x02\x03", 7, 2))
    frame = connection.receive_frame()
    body = codec.decode(codec.api("ApiVersions").response, 0, frame[4:])
    k.note("answer", body)
    k.ask("the connection lives", "ApiVersions", 3, api_versions())


@case
def api_versions_client_software_name_is_checked(k: Subject):
    for label, name, version in (
        ("empty name", "", "1"), ("empty version", "a", ""), ("space", "a b", "1"),
        ("leading dash", "-a", "1"), ("trailing dot", "a.", "1"), ("inner marks", "a.b-c", "1.0-2"),
        ("umlaut", "kä", "1"), ("long", "a" * 300, "1"), ("one character", "a", "1"),
        ("newline", "a\nb", "1"), ("underscore", "a_b", "1")):
        k.ask(label, "ApiVersions", 3, api_versions(name, version))


@case
def api_versions_of_another_cluster_or_node(k: Subject):
    k.ask("other cluster", "ApiVersions", 5, api_versions(cluster_id="nobodys", node_id=1))
    k.ask("other node", "ApiVersions", 5, api_versions(cluster_id=None, node_id=77))
    k.ask("unset", "ApiVersions", 5, api_versions(cluster_id=None, node_id=-1))
    cluster = k.quiet("DescribeCluster", 0, {})["cluster_id"]
    k.ask("own", "ApiVersions", 5, api_versions(cluster_id=cluster, node_id=1))
    k.ask("own cluster, other node", "ApiVersions", 5, api_versions(cluster_id=cluster, node_id=77))
    k.ask("own cluster, no node", "ApiVersions", 5, api_versions(cluster_id=cluster, node_id=-1))
    k.ask("no cluster, own node", "ApiVersions", 5, api_versions(cluster_id=None, node_id=1))


def header(key: int, version: int, correlation: int = 1, client: bytes | None = b"c") -> bytes:
    name = struct.pack(">h", -1) if client is None else struct.pack(">h", len(client)) + client
    return struct.pack(">hhi", key, version, correlation) + name


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


@case
def frames_of_wrong_length(k: Subject):
    k.send_raw("negative", struct.pack(">i", -1))
    k.send_raw("most negative", struct.pack(">i", -(1 << 31)))
    k.send_raw("zero", struct.pack(">i", 0))
    k.send_raw("above socket.request.max.bytes", struct.pack(">i", 104857601))
    k.send_raw("greatest", struct.pack(">i", (1 << 31) - 1))
    k.send_raw("one byte", framed(b"\0"))


@case
def headers_that_are_wrong(k: Subject):
    k.send_raw("unknown key", framed(header(999, 0)))
    k.send_raw("negative key", framed(header(-1, 0)))
    k.send_raw("version too new", framed(header(3, 99) + b"\0" * 8))
    k.send_raw("version negative", framed(header(3, -1) + b"\0" * 8))
    k.send_raw("client id longer than the frame", framed(struct.pack(">hhih", 3, 1, 1, 500) + b"abc"))
    k.send_raw("client id of length -2", framed(struct.pack(">hhih", 3, 1, 1, -2)))
    k.send_raw("header only", framed(header(3, 1)))
    k.send_raw("removed key LeaderAndIsr", framed(header(4, 0) + b"\0" * 16))
    k.send_raw("removed version of Fetch", framed(header(1, 0) + b"\0" * 16))
    k.send_raw("endless tag count", framed(header(3, 12) + b"\xff\xff\xff\xff\x0f"))


@case
def header_without_client_id(k: Subject):
    connection = k.open()
    connection.client_id = None
    k.ask("null client id", "Metadata", 1, {"topics": []})
    connection.client_id = ""
    k.ask("empty client id", "Metadata", 1, {"topics": []})


PLAIN = ("Produce", "Fetch", "ListOffsets", "Metadata", "CreateTopics", "DeleteTopics", "CreatePartitions",
         "DescribeConfigs", "DescribeCluster", "DescribeTopicPartitions", "OffsetForLeaderEpoch")
COORDINATED = ("OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup",
               "DescribeGroups", "ListGroups", "DeleteGroups", "OffsetDelete", "InitProducerId",
               "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "WriteTxnMarkers", "TxnOffsetCommit",
               "DescribeTransactions", "ListTransactions")


def send_body(k: Subject, label: str, name: str, version: int, body: bytes) -> None:
    """Notes whether the connection is closed."""
    connection = k.open()
    connection.send_frame(connection.request_bytes(name, version, body, 1))
    k.note(label, "closed" if connection.is_closed() else "open")
    k.reopen()


@case
def bodies_cut_short(k: Subject):
    """Half of an all-default request of every API, in its oldest and its newest version."""
    for name in PLAIN + COORDINATED:
        api = codec.api(name)
        for version in sorted({api.request.stable.low, api.request.stable.high}):
            body = codec.encode(api.request, version, {})
            if body:
                send_body(k, f"{name} v{version}", name, version, body[:len(body) // 2])


@case
def bodies_of_coordinators_that_promise_too_much(k: Subject):
    """What a body begins with is as long as a number can say: a group, a list of them."""
    for name in COORDINATED:
        api = codec.api(name)
        for version in sorted({api.request.stable.low, api.request.stable.high}):
            flexible = api.request.flexible_in(version)
            send_body(k, f"{name} v{version} a string", name, version, b"\xff\x7f" if flexible else b"\x7f\xff")
            send_body(k, f"{name} v{version} an array", name, version,
                      b"\xff\xff\xff\xff\x07" if flexible else b"\x7f\xff\xff\xff")


@case
def bodies_of_coordinators_with_bytes_left_over(k: Subject):
    for name in COORDINATED:
        api = codec.api(name)
        for version in sorted({api.request.stable.low, api.request.stable.high}):
            body = codec.encode(api.request, version, {})
            send_body(k, f"{name} v{version}", name, version, body + b"\0\0\0")


@case
def body_with_bytes_left_over(k: Subject):
    body = codec.encode(codec.api("Metadata").request, 12, {"topics": []})
    k.ask("flexible", "Metadata", 12, body + b"\0\0\0")
    body = codec.encode(codec.api("Metadata").request, 1, {"topics": []})
    k.ask("plain", "Metadata", 1, body + b"\0\0\0")


@case
def arrays_that_promise_too_much(k: Subject):
    k.ask("plain array of 2^31-1", "Metadata", 1, struct.pack(">i", (1 << 31) - 1))
    name = k.topic()
    everything = k.quiet("Metadata", 1, struct.pack(">i", -2))  # any negative count is null
    k.note("plain array of -2", [t for t in everything["topics"] if t["name"] == name])
    k.ask("compact array of 2^31-2", "Metadata", 9, b"\xff\xff\xff\xff\x07")
    k.ask("string longer than the frame", "Metadata", 1, struct.pack(">ih", 1, 30000) + b"abc")
    k.ask("string of length -1", "Metadata", 1, struct.pack(">ih", 1, -1))
    k.ask("string that is not UTF-8", "Metadata", 1, struct.pack(">ih", 1, 2) + b"\xff\xfe")


@case
def unknown_tags_are_passed_over(k: Subject):
    k.ask("answer", "Metadata", 12, {"topics": [], "_tags": {77: b"x" * 100, 9000: b""}})


@case
def requests_in_a_row_are_answered_in_order(k: Subject):
    connection = k.open()
    sent = [connection.send("Metadata", 1, {"topics": []}) for _ in range(20)]
    answers = [connection.receive("Metadata", 1, correlation) for correlation in sent]
    k.note("count", len(answers))
