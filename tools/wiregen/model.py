"""Definitions of protocol/*.wire: the model and its parser. README.md tells the format."""

from __future__ import annotations

import dataclasses
import pathlib
import re

OPEN = 32767  # the end of a range such as 3+

SCALARS = {  # name: bytes on the wire
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "error": 2,
    "int32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
VARIABLE = ("string", "bytes", "records")


class DefinitionError(Exception):
    """Something is wrong with a definition; the text starts with file:line."""


@dataclasses.dataclass(frozen=True)
class Range:
    """Versions from low to high, both included."""

    low: int
    high: int

    @staticmethod
    def parse(text: str) -> Range | None:
        match = re.fullmatch(r"(\d+)(\+|-(\d+))?", text)
        if not match:
            return None
        low = int(match[1])
        if match[2] is None:
            return Range(low, low)
        return Range(low, OPEN if match[2] == "+" else int(match[3]))

    def clamp(self, other: Range) -> Range:
        return Range(max(self.low, other.low), min(self.high, other.high))

    def inside(self, other: Range) -> bool:
        return other.low <= self.low <= self.high <= other.high

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __iter__(self):
        return iter(range(self.low, self.high + 1))

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


@dataclasses.dataclass
class Field:
    name: str
    type: str  # without [] and ?
    array: bool
    versions: Range
    nullable: Range | None
    tag: int | None
    default: str | None  # as written; None when it is the type's zero
    ignorable: bool
    inflexible: bool
    struct: Struct | None = None

    @property
    def default_null(self) -> bool:
        return self.default == "null" or self.type == "records"


@dataclasses.dataclass
class Struct:
    name: str
    fields: list[Field]
    where: str


@dataclasses.dataclass
class Message:
    """One request, response, header or stored record; `structs` are in order of use, inner ones first."""

    name: str
    kind: str
    versions: Range
    flexible: Range | None
    unstable: int | None  # the version that Apache does not release yet
    fields: list[Field]
    structs: list[Struct]
    api: Api | None = None

    def flexible_in(self, version: int) -> bool:
        return self.flexible is not None and version in self.flexible

    @property
    def stable(self) -> Range:
        return Range(self.versions.low, self.versions.high - (1 if self.unstable is not None else 0))


@dataclasses.dataclass
class Api:
    key: int
    name: str
    file: str
    advertised: Range | None
    listeners: list[str]
    forwardable: bool
    cluster_action: bool
    since: str | None  # the release of ours that serves it
    kafka: dict[str, str]  # what older Kafka releases served
    request: Message | None = None
    response: Message | None = None


@dataclasses.dataclass
class ErrorCode:
    code: int
    name: str
    retriable: bool
    refreshes_metadata: bool


@dataclasses.dataclass
class Protocol:
    apis: list[Api]
    standalone: list[Message]  # headers and stored records
    errors: list[ErrorCode]

    def messages(self) -> list[Message]:
        both = [m for api in self.apis for m in (api.request, api.response)]
        return both + self.standalone


def load(folder: pathlib.Path) -> Protocol:
    protocol = Protocol([], [], [])
    for path in sorted(folder.glob("*.wire")):
        FileParser(path, protocol).parse()
    protocol.apis.sort(key=lambda api: api.key)
    _check_unique([api.key for api in protocol.apis], "API key")
    _check_unique([m.name for m in protocol.messages()], "message")
    _check_unique([e.code for e in protocol.errors], "error code")
    return protocol


def _check_unique(values: list, what: str) -> None:
    for value in values:
        if values.count(value) > 1:
            raise DefinitionError(f"protocol: {what} {value} is defined twice")


class FileParser:
    """One file: an API (its facts, request, response and shared structs), or headers, records, errors."""

    def __init__(self, path: pathlib.Path, protocol: Protocol):
        self.path = path
        self.protocol = protocol
        self.number = 0
        self.api: Api | None = None
        self.blocks: list[tuple[Message | str, Struct]] = []  # in order, with the message or its name
        self.block: list[Line] = []

    def fail(self, text: str, number: int | None = None):
        raise DefinitionError(f"{self.path.name}:{number or self.number}: {text}")

    def parse(self) -> None:
        lines: list[Line] = []
        heads: list[tuple[list[str], int, list[Line]]] = []
        for self.number, raw in enumerate(self.path.read_text().splitlines(), 1):
            text = raw.split("#", 1)[0].rstrip()
            if not text:
                continue
            indent = len(text) - len(text.lstrip())
            if indent == 0:
                lines = []
                heads.append((text.split(), self.number, lines))
            elif not heads:
                self.fail("a field before any message")
            else:
                lines.append(Line(indent, text.split(), self.number))
        messages: list[tuple[Message, list[Line]]] = []
        shared: list[tuple[str, str, int, list[Line]]] = []
        for words, self.number, body in heads:
            self.head(words, body, messages, shared)
        if self.api and len(messages) != 2:
            self.fail("an API has one request and one response")
        for message, body in messages:
            self.fill(message, body, shared)

    def head(self, words, body, messages, shared) -> None:
        match words:
            case ["api", key, name]:
                self.api = Api(int(key), name, self.path.stem, None, [], False, False, None, {})
                self.protocol.apis.append(self.api)
            case ["advertised", "no"]:
                self.api.advertised = Range(1, 0)
            case ["advertised", versions]:
                self.api.advertised = self.range(versions)
            case ["listeners", *names]:
                self.api.listeners = names
            case ["forwardable"]:
                self.api.forwardable = True
            case ["cluster_action"]:
                self.api.cluster_action = True
            case ["since", release]:
                self.api.since = release
            case ["kafka", release, versions]:
                self.api.kafka[release] = versions
            case ["request" | "response" as kind, *rest] if self.api:
                message = self.message(self.api.name + kind.capitalize(), kind, rest)
                message.api = self.api
                setattr(self.api, kind, message)
                messages.append((message, body))
            case ["header" | "record" as kind, name, *rest]:
                message = self.message(name, kind, rest)
                self.protocol.standalone.append(message)
                messages.append((message, body))
            case ["struct", name, "of", kind]:
                shared.append((name, kind, self.number, body))
            case ["error", code, name, *flags]:
                self.protocol.errors.append(
                    ErrorCode(int(code), name, "retriable" in flags, "refreshes_metadata" in flags))
            case _:
                self.fail(f"not understood: {' '.join(words)}")

    def range(self, text: str) -> Range:
        result = Range.parse(text)
        if result is None or result.low > result.high:
            self.fail(f"not a range of versions: {text}")
        return result

    def message(self, name: str, kind: str, words: list[str]) -> Message:
        versions = self.range(words[0])
        flexible, unstable = None, None
        match words[1:]:
            case []:
                pass
            case ["flexible", since]:
                flexible = self.range(since)
            case ["flexible", since, "unstable", last]:
                flexible, unstable = self.range(since), int(last)
            case _:
                self.fail(f"not understood: {' '.join(words[1:])}")
        if versions.high == OPEN:
            self.fail("a message's versions have an end")
        if unstable is not None and unstable != versions.high:
            self.fail("only the last version can be unstable")
        if flexible:
            flexible = flexible.clamp(versions)
        return Message(name, kind, versions, flexible, unstable, [], [])

    def fill(self, message: Message, body: list[Line], shared) -> None:
        structs: dict[str, Struct] = {}
        for name, kind, number, lines in shared:
            if kind == message.kind:
                structs[name] = Struct(name, [], f"{self.path.name}:{number}")
        for name, kind, _, lines in shared:
            if kind == message.kind:
                structs[name].fields = self.fields(message, lines, structs)
        message.fields = self.fields(message, body, structs)
        message.structs = self.order(message, structs)

    def fields(self, message: Message, lines: list[Line], structs: dict[str, Struct]) -> list[Field]:
        """The fields of one indentation level; deeper lines are the struct of the field above them."""
        result: list[Field] = []
        at = 0
        while at < len(lines):
            head = lines[at]
            self.number = head.number
            end = at + 1
            while end < len(lines) and lines[end].indent > head.indent:
                end += 1
            inner = lines[at + 1:end]
            if any(line.indent < lines[0].indent for line in lines[at:end]):
                self.fail("indented less than the fields before it")
            field = self.field(message, head)
            if inner:
                if field.type in structs:
                    self.fail(f"struct {field.type} is defined twice")
                struct = Struct(field.type, [], f"{self.path.name}:{head.number}")
                structs[field.type] = struct
                struct.fields = self.fields(message, inner, structs)
            self.number = head.number
            if field.type not in SCALARS and field.type not in VARIABLE:
                field.struct = structs.get(field.type)
                if field.struct is None:
                    self.fail(f"no such type: {field.type}")
            result.append(field)
            at = end
        names = [field.name for field in result]
        if len(set(names)) != len(names):
            self.fail("two fields of one name")
        tags = sorted(field.tag for field in result if field.tag is not None)
        if tags != list(range(len(tags))):
            self.fail("tags count up from 0 without a gap")
        return result

    def field(self, message: Message, line: Line) -> Field:
        name, kind, *rest = line.words
        match = re.fullmatch(r"(\[\])?(\w+)(\?(.*))?", kind)
        if not match:
            self.fail(f"not a type: {kind}")
        versions = message.versions
        if rest and Range.parse(rest[0]):
            versions = self.range(rest.pop(0)).clamp(message.versions)
            if versions.low > versions.high:
                self.fail("valid in no version of the message")
        nullable = None
        if match[3]:
            nullable = self.range(match[4]).clamp(versions) if match[4] else versions
        field = Field(name, match[2], bool(match[1]), versions, nullable, None, None, False, False)
        while rest:
            match rest:
                case ["tag", tag, *rest]:
                    field.tag = int(tag)
                case ["=", default, *rest]:
                    field.default = default
                case ["ignorable", *rest]:
                    field.ignorable = True
                case ["inflexible", *rest]:
                    field.inflexible = True
                case _:
                    self.fail(f"not understood: {' '.join(rest)}")
        if field.default == "null" and nullable != versions:
            self.fail("null is the default of a field that cannot always be null")
        if nullable and not field.array and field.type in SCALARS:
            self.fail(f"{field.type} cannot be null")
        if field.tag is not None and (message.flexible is None
                                      or not versions.inside(message.flexible)):
            self.fail("a tagged field in versions that are not flexible")
        return field

    def order(self, message: Message, structs: dict[str, Struct]) -> list[Struct]:
        """Inner structs before outer ones. No cycles: so nesting of what is decoded is bounded."""
        done: list[Struct] = []
        open_names: list[str] = []

        def visit(fields: list[Field]) -> None:
            for field in fields:
                struct = field.struct
                if struct is None or struct in done:
                    continue
                if struct.name in open_names:
                    raise DefinitionError(f"{struct.where}: {struct.name} contains itself")
                open_names.append(struct.name)
                visit(struct.fields)
                open_names.pop()
                done.append(struct)

        visit(message.fields)
        for struct in structs.values():
            if struct not in done:
                raise DefinitionError(f"{struct.where}: struct {struct.name} is never used")
        return done


@dataclasses.dataclass
class Line:
    indent: int
    words: list[str]
    number: int


def element_bytes_min(field: Field, message: Message, version: int) -> int:
    """The fewest bytes that one value of the field's type (an element, for an array) takes on the wire."""
    if field.struct:
        return struct_bytes_min(field.struct.fields, message, version)
    if field.type in SCALARS:
        return SCALARS[field.type]
    if message.flexible_in(version) and not field.inflexible:
        return 1
    return 2 if field.type == "string" else 4


def struct_bytes_min(fields: list[Field], message: Message, version: int) -> int:
    flexible = message.flexible_in(version)
    total = 1 if flexible else 0
    for field in fields:
        if version not in field.versions or field.tag is not None:
            continue
        if field.array:
            total += 1 if flexible else 4
        elif field.nullable and field.struct:
            total += 1
        else:
            total += element_bytes_min(field, message, version)
    return total


def array_element_bytes_min(field: Field, message: Message) -> int:
    return max(1, min(element_bytes_min(field, message, v) for v in field.versions))


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in tail)


def pascal(name: str) -> str:
    return "".join(part[:1].upper() + part[1:].lower() for part in name.split("_"))
