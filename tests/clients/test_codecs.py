"""Every client writes in every codec, and every client reads what every other wrote."""

import clients
import pytest
import records

pytestmark = pytest.mark.timeout(300)


def readers_of(writer, codec):
    """A JVM start costs seconds: Java reads every writer in one codec, and one writer in all."""
    turn = (clients.WRITERS.index(writer) + records.CODECS.index(codec)) % len(records.CODECS)
    for reader in clients.READERS:
        if reader.name != "java" or turn == 0 or writer.name == "franz":
            yield reader


@pytest.mark.parametrize("codec", records.CODECS)
@pytest.mark.parametrize("writer", clients.WRITERS, ids=lambda client: client.name)
def test_what_one_writes_all_read(kaas_or_other, topic, writer, codec):
    name = topic(f"{writer.name}-{codec}")
    writer.produce(kaas_or_other.bootstrap, name, codec)
    for reader in readers_of(writer, codec):
        found = reader.consume(kaas_or_other.bootstrap, name)
        assert found == records.expected(codec, writer.headers), f"{reader.name} reads {writer.name}"


@pytest.mark.parametrize("kept_as", ("uncompressed", "gzip", "snappy", "lz4", "zstd"))
def test_what_the_topic_packs_anew_all_read(kaas_or_other, topic, kept_as):
    writer = clients.WRITERS[0]
    codec = "gzip" if kept_as == "lz4" else "lz4"
    name = topic(f"kept-as-{kept_as}", compression_type=kept_as)
    writer.produce(kaas_or_other.bootstrap, name, codec)
    for reader in clients.READERS:
        found = reader.consume(kaas_or_other.bootstrap, name)
        assert found == records.expected(codec, writer.headers), f"{reader.name} reads {kept_as}"
