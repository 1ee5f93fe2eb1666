"""Record batches of magic 2 (KIP-98), built and read without the broker's code."""

import dataclasses
import gzip
import struct

from .codec import unsigned_varint

HEADER = struct.Struct(">qiibIhiqqqhii")  # base offset ... record count; 61 bytes
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def _crc_table() -> list[int]:
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def varint(value: int) -> bytes:
    return unsigned_varint((value << 1) ^ (value >> 63) if value < 0 else value << 1)


def record(delta: int, key: bytes | None, value: bytes | None, timestamp_delta: int = 0,
           headers: tuple = ()) -> bytes:
    out = b"\0" + varint(timestamp_delta) + varint(delta)
    for part in (key, value):
        out += varint(-1) if part is None else varint(len(part)) + part
    out += varint(len(headers))
    for name, content in headers:
        out += varint(len(name)) + name.encode()
        out += varint(-1) if content is None else varint(len(content)) + content
    return varint(len(out)) + out


def pack(codec: int, body: bytes) -> bytes:
    """As a client would; of a number that names no codec, the bytes as they are."""
    if codec == CODECS["gzip"]:
        return gzip.compress(body, mtime=0)
    if codec == CODECS["snappy"]:
        import snappy
        return snappy.compress(body)
    if codec == CODECS["lz4"]:
        import lz4.frame
        return lz4.frame.compress(body, block_linked=False)  # Java reads no other
    if codec == CODECS["zstd"]:
        import zstandard
        return zstandard.ZstdCompressor().compress(body)
    return body


@dataclasses.dataclass
class Batch:
    """A batch to build: every header field can be set to something wrong."""

    values: list = dataclasses.field(default_factory=lambda: [b"value"])
    keys: list | None = None
    base_offset: int = 0
    leader_epoch: int = -1
    magic: int = 2
    attributes: int = 0
    base_timestamp: int = 1_700_000_000_000
    max_timestamp: int | None = None
    timestamps: list | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    last_offset_delta: int | None = None
    count: int | None = None
    length: int | None = None
    crc: int | None = None
    body: bytes | None = None  # instead of records made from keys and values

    def build(self) -> bytes:
        stamps = self.timestamps or [self.base_timestamp] * len(self.values)
        keys = self.keys or [None] * len(self.values)
        body = self.body
        if body is None:
            body = b"".join(record(i, keys[i], value, stamps[i] - self.base_timestamp)
                            for i, value in enumerate(self.values))
            body = pack(self.attributes & 7, body)
        count = len(self.values) if self.count is None else self.count
        last = len(self.values) - 1 if self.last_offset_delta is None else self.last_offset_delta
        newest = max(stamps, default=self.base_timestamp) if self.max_timestamp is None else self.max_timestamp
        checked = struct.pack(">hiqqqhii", self.attributes, last, self.base_timestamp, newest,
                              self.producer_id, self.producer_epoch, self.base_sequence, count) + body
        crc = crc32c(checked) if self.crc is None else self.crc
        length = len(checked) + 9 if self.length is None else self.length
        return struct.pack(">qiibI", self.base_offset, length, self.leader_epoch, self.magic,
                           crc) + checked


@dataclasses.dataclass
class Header:
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int


def headers(records: bytes) -> list[Header]:
    """The whole batches in what Fetch answered; a cut one at the end is left out, as clients do."""
    found, at = [], 0
    while at + HEADER.size <= len(records):
        header = Header(*HEADER.unpack_from(records, at))
        if at + 12 + header.length > len(records):
            break
        found.append(header)
        at += 12 + header.length
    return found
