"""Encodes and decodes any message of protocol/*.wire, in any version.

A message is a dict by the field names of its definition; what is left out has its default. Records and
bytes are `bytes`, uuids `uuid.UUID`, unknown tagged fields stand under "_tags" as {tag: bytes}.
"""

import functools
import pathlib
import struct
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "wiregen"))
import model  # noqa: E402

FORMATS = {"int8": ">b", "int16": ">h", "uint16": ">H", "error": ">h", "int32": ">i", "int64": ">q",
           "float64": ">d", "bool": ">?"}


@functools.cache
def protocol() -> model.Protocol:
    return model.load(ROOT / "protocol")


@functools.cache
def api(name: str) -> model.Api:
    return next(a for a in protocol().apis if a.name == name)


@functools.cache
def api_of_key(key: int) -> model.Api:
    return next(a for a in protocol().apis if a.key == key)


@functools.cache
def error_name(code: int) -> str:
    return next((e.name for e in protocol().errors if e.code == code), f"unknown error {code}")


class DecodeError(Exception):
    pass


# --- writing -----------------------------------------------------------------------------------------


def unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def default(field: model.Field, version: int):
    if field.array:
        return None if field.default_null and field.nullable else []
    if field.default == "null" or (field.type == "records" and field.default is None):
        return None
    if field.struct:
        return {}
    if field.type in ("bytes", "records"):
        return b""
    if field.type == "string":
        return field.default if field.default not in (None, '""') else ""
    if field.type == "uuid":
        return uuid.UUID(int=0)
    if field.type == "bool":
        return field.default == "true"
    return (float if field.type == "float64" else lambda t: int(t, 0))(field.default or "0")


def write_length(out: bytearray, length: int | None, flexible: bool, narrow: bool) -> None:
    if flexible:
        out += unsigned_varint(0 if length is None else length + 1)
    else:
        out += struct.pack(">h" if narrow else ">i", -1 if length is None else length)


def write_single(out: bytearray, field: model.Field, version: int, flexible: bool, value) -> None:
    flexible_here = flexible and not field.inflexible
    if field.struct:
        if field.nullable and not field.array:
            out += b"\xff" if value is None else b"\x01"
            if value is None:
                return
        write_fields(out, field.struct.fields, version, flexible, value)
    elif field.type == "uuid":
        out += value.bytes
    elif field.type in ("string", "bytes", "records"):
        data = value.encode() if isinstance(value, str) else value
        write_length(out, None if data is None else len(data), flexible_here, field.type == "string")
        out += data or b""
    else:
        out += struct.pack(FORMATS[field.type], value)


def write_value(out: bytearray, field: model.Field, version: int, flexible: bool, value) -> None:
    if not field.array:
        write_single(out, field, version, flexible, value)
        return
    write_length(out, None if value is None else len(value), flexible, False)
    for item in value or []:
        write_single(out, field, version, flexible, item)


def write_fields(out: bytearray, fields, version: int, flexible: bool, values: dict) -> None:
    known = {field.name for field in fields} | {"_tags"}
    for name in values:
        if name not in known:
            raise KeyError(f"no field {name}; there are {sorted(known)}")
    tags: dict[int, bytes] = dict(values.get("_tags", {}))
    for field in fields:
        if version not in field.versions:
            continue
        value = values.get(field.name, default(field, version))
        if field.tag is None:
            write_value(out, field, version, flexible, value)
        elif field.name in values and value != default(field, version):
            tagged = bytearray()
            write_value(tagged, field, version, flexible, value)
            tags[field.tag] = bytes(tagged)
    if flexible:
        out += unsigned_varint(len(tags))
        for tag in sorted(tags):
            out += unsigned_varint(tag) + unsigned_varint(len(tags[tag])) + tags[tag]


def encode(message: model.Message, version: int, values: dict) -> bytes:
    out = bytearray()
    write_fields(out, message.fields, version, message.flexible_in(version), values)
    return bytes(out)


# --- reading -----------------------------------------------------------------------------------------


class Reader:
    def __init__(self, data: bytes):
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise DecodeError(f"{count} bytes wanted at {self.at} of {len(self.data)}")
        self.at += count
        return self.data[self.at - count:self.at]

    def unpack(self, form: str):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def unsigned_varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def length(self, flexible: bool, narrow: bool) -> int | None:
        count = self.unsigned_varint() - 1 if flexible else self.unpack(">h" if narrow else ">i")
        return None if count < 0 else count


def read_single(reader: Reader, field: model.Field, version: int, flexible: bool):
    if field.struct:
        if field.nullable and not field.array and reader.unpack(">b") < 0:
            return None
        return read_fields(reader, field.struct.fields, version, flexible)
    if field.type == "uuid":
        return uuid.UUID(bytes=reader.take(16))
    if field.type in ("string", "bytes", "records"):
        count = reader.length(flexible and not field.inflexible, field.type == "string")
        data = None if count is None else reader.take(count)
        if field.type == "string" and data is not None:
            return data.decode(errors="replace")  # Apache replaces what is not UTF-8, we send it back
        return data
    return reader.unpack(FORMATS[field.type])


def read_value(reader: Reader, field: model.Field, version: int, flexible: bool):
    if not field.array:
        return read_single(reader, field, version, flexible)
    count = reader.length(flexible, False)
    if count is None:
        return None
    return [read_single(reader, field, version, flexible) for _ in range(count)]


def read_fields(reader: Reader, fields, version: int, flexible: bool) -> dict:
    values = {}
    for field in fields:
        if version in field.versions:
            if field.tag is None:
                values[field.name] = read_value(reader, field, version, flexible)
            else:
                values[field.name] = default(field, version)
    if flexible:
        by_tag = {f.tag: f for f in fields if f.tag is not None and version in f.versions}
        for _ in range(reader.unsigned_varint()):
            tag, size = reader.unsigned_varint(), reader.unsigned_varint()
            inner = Reader(reader.take(size))
            if tag in by_tag:
                values[by_tag[tag].name] = read_value(inner, by_tag[tag], version, flexible)
            else:
                values.setdefault("_tags", {})[tag] = inner.data
    return values


def decode(message: model.Message, version: int, data: bytes) -> dict:
    reader = Reader(data)
    values = read_fields(reader, message.fields, version, message.flexible_in(version))
    if reader.at != len(data):
        raise DecodeError(f"{len(data) - reader.at} bytes are left over")
    return values
