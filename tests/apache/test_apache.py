"""The Apache harness keeps its promises: ports, data, tools, endings. Starts a real node twice."""

import pathlib
import socket

import pytest

import apache


def test_a_node_answers_runs_tools_and_leaves_nothing():
    with apache.Apache(fsync=True) as node:
        node.tool("kafka-topics", "--create", "--topic", "t", "--partitions", "3")
        described = node.tool("kafka-topics", "--describe", "--topic", "t").stdout
        assert "PartitionCount: 3" in described
        assert "flush.messages=1" in described, "fsync=True must reach the topics"
        port, directory = node.port, node.directory
    assert not directory.exists()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()


def test_data_survives_kill_when_the_directory_is_ours(tmp_path: pathlib.Path):
    node = apache.Apache(data_dir=tmp_path)
    node.start()
    try:
        node.tool("kafka-topics", "--create", "--topic", "kept")
        node.kill()
        node.start()
        assert node.tool("kafka-topics", "--list").stdout.split() == ["kept"]
    finally:
        node.stop()
    assert node.data_dir.exists()


def test_a_bad_setting_fails_with_the_log():
    with pytest.raises(apache.ApacheError, match="num.partitions"):
        apache.Apache(settings={"num.partitions": "many"}).start()


def test_an_unknown_tool_is_refused_by_name():
    with pytest.raises(apache.ApacheError, match="kafka-nothing"):
        apache.tool_command("kafka-nothing")
