"""DESIGN rule 8: no record of a plain topic is decoded, whoever writes and reads it. Its counters say so."""

import urllib.request

import clients
import pytest
import records
from kafka_wire.connection import Connection

pytestmark = pytest.mark.timeout(300)


def decoded(kaas) -> dict:
    """The decode counters by site."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{kaas.health_port}/metrics", timeout=10).read().decode()
    rows = [line.rsplit(" ", 1) for line in text.splitlines()
            if line.startswith("kaas_codec_record_decode_total{")]
    assert rows, "the decode counters are gone: this test would see nothing"
    return {series: float(value) for series, value in rows}


def create(kaas, name, **configs):
    with Connection(kaas.bootstrap) as connection:
        answer = connection.call("CreateTopics", 7, {"timeout_ms": 30000, "topics": [{
            "name": name, "num_partitions": 1, "replication_factor": 1,
            "configs": [{"name": k.replace("_", "."), "value": v} for k, v in configs.items()]}]})
        assert answer["topics"][0]["error_code"] == 0, answer


def test_no_client_makes_kaas_decode_records_of_plain_topics(kaas):
    for writer in clients.WRITERS:
        create(kaas, writer.name)
        writer.produce(kaas.bootstrap, writer.name, "zstd")
        for reader in clients.READERS:
            assert len(reader.consume(kaas.bootstrap, writer.name)) == records.COUNT
    assert set(decoded(kaas).values()) == {0}


def test_the_counters_count(kaas):
    create(kaas, "compacted", cleanup_policy="compact")
    clients.Go("franz").produce(kaas.bootstrap, "compacted", "zstd")
    assert sum(decoded(kaas).values()) > 0
