"""Fixtures of the client suites. $KAAS_TEST_AGAINST names a running broker to test instead; "apache" starts one."""

import os
import pathlib
import sys
import types

import apache
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import clients  # noqa: E402
from kafka_wire.connection import Connection  # noqa: E402


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    """Before the first test's clock starts: a cold build takes longer than any test may."""
    here = pathlib.Path(__file__).parent
    if not session.config.option.collectonly and any(item.path.parent == here for item in session.items):
        clients.prepare()


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    with apache.Tools(tmp_path_factory.mktemp("tools")) as running:
        yield running


@pytest.fixture(scope="module")
def kaas_or_other(request):
    address = os.environ.get("KAAS_TEST_AGAINST")
    return types.SimpleNamespace(bootstrap=address) if address not in (None, "apache") else request.getfixturevalue("shared_kaas")


@pytest.fixture
def topic(kaas_or_other):
    """Makes a topic, with one partition unless told otherwise."""
    def make(name, partitions=1, **configs):
        with Connection(kaas_or_other.bootstrap) as connection:
            answer = connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [{
                "name": name, "num_partitions": partitions, "replication_factor": 1,
                "configs": [{"name": k.replace("_", "."), "value": str(v)}
                            for k, v in configs.items()]}]})
            assert answer["topics"][0]["error_code"] == 0, answer
        return name
    return make
