"""Definitions of config/**/*.toml: the model, its loader and its checks. config/README.md tells the format."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import tomllib

TYPES = ("boolean", "string", "int", "short", "long", "double", "list", "class", "password")
NUMBERS = ("int", "short", "long", "double")
UNITS = ("ms", "s", "min", "h", "bytes", "bytes/s")
IMPORTANCE = ("high", "medium", "low")
UPDATE_MODES = ("read-only", "per-broker", "cluster-wide")
MEANINGS = ("served", "later", "none")
FORMS = ("throttled-replicas", "offset-reset")
SCOPES = ("broker", "topic", "group", "client_metrics")

# A default that depends on the machine: the number of processors this process may use.
CORES = "<cores>"


class DefinitionError(Exception):
    """Something is wrong with a definition; the text starts with file and name."""


@dataclasses.dataclass(frozen=True)
class Synonym:
    """The broker config that a topic or group config falls back to, times a factor (hours to ms)."""

    name: str
    factor: int


@dataclasses.dataclass(frozen=True)
class Definition:
    """One config. `default` and `apache_default` are None for "not set"."""

    name: str
    type: str
    default: bool | int | float | str | None
    apache_default: bool | int | float | str | None
    min: int | float | None
    max: int | float | None
    or_value: int | None
    one_of: tuple[str, ...]
    any_case: bool
    not_empty: bool
    unique: bool
    form: str | None
    unit: str | None
    importance: str
    update: str
    dynamic_only: bool
    internal: bool
    broker: tuple[Synonym, ...]
    help: str
    meaning: str
    reason: str
    source: str

    @property
    def own_default(self) -> bool:
        """Whether our default differs from Apache's."""
        return self.default != self.apache_default

    @property
    def default_text(self) -> str | None:
        return text_of(self.default)


@dataclasses.dataclass(frozen=True)
class Section:
    """One file: a title and its configs in the order in which they are explained. `place` orders files."""

    title: str
    place: int
    definitions: tuple[Definition, ...]


@dataclasses.dataclass(frozen=True)
class Table:
    """All configs of one kind of resource."""

    scope: str
    sections: tuple[Section, ...]

    @property
    def definitions(self) -> list[Definition]:
        return sorted((d for s in self.sections for d in s.definitions), key=lambda d: d.name)


def text_of(value: bool | int | float | str | None) -> str | None:
    """A value as configuration files write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _synonym(text: str) -> Synonym:
    name, _, factor = text.partition(" * ")
    return Synonym(name, int(factor or 1))


def _default(kind: str, value):
    fits = {"boolean": bool, "int": int, "short": int, "long": int, "double": (float, str)}.get(kind, str)
    if value is None or value == CORES:
        return value
    if not isinstance(value, fits) or (isinstance(value, bool) and kind != "boolean"):
        raise ValueError(f"default {value!r} is no {kind}")
    return value


def _check(d: Definition) -> None:
    for value, allowed, what in ((d.type, TYPES, "type"), (d.importance, IMPORTANCE, "importance"),
                                 (d.update, UPDATE_MODES, "update"), (d.meaning, MEANINGS, "meaning"),
                                 (d.unit, (None, *UNITS), "unit"), (d.form, (None, *FORMS), "form")):
        if value not in allowed:
            raise ValueError(f"{what} {value!r} is not one of {', '.join(map(str, allowed))}")
    if (d.min, d.max) != (None, None) and d.type not in NUMBERS:
        raise ValueError("min and max are for numbers")
    if d.one_of and d.type not in ("string", "list"):
        raise ValueError("one_of is for strings and lists")
    if d.unique and d.type != "list":
        raise ValueError("unique is for lists")
    if bool(d.reason) != (d.meaning != "served"):
        raise ValueError("a reason is given exactly for what is not served")
    if not re.fullmatch(r"[A-Z`].*\.", d.help, re.DOTALL):
        raise ValueError("help is a sentence: a capital first, a full stop last")


def _definition(name: str, fields: dict) -> Definition:
    given = dict(fields)
    kind = given.pop("type")
    default = _default(kind, given.pop("default", None))
    apache = given.pop("apache_default", default)
    definition = Definition(
        name=name, type=kind, default=default, apache_default=None if apache == "none" else apache,
        min=given.pop("min", None), max=given.pop("max", None), or_value=given.pop("or", None),
        one_of=tuple(given.pop("one_of", ())), any_case=given.pop("any_case", False),
        not_empty=given.pop("not_empty", False), unique=given.pop("unique", False),
        form=given.pop("form", None), unit=given.pop("unit", None),
        importance=given.pop("importance", "medium"), update=given.pop("update", "read-only"),
        dynamic_only=given.pop("dynamic_only", False), internal=given.pop("internal", False),
        broker=tuple(map(_synonym, given.pop("broker", ()))), help=given.pop("help"),
        meaning=given.pop("meaning"), reason=given.pop("reason", ""), source=given.pop("source"))
    if given:
        raise ValueError(f"unknown field {next(iter(given))!r}")
    _check(definition)
    return definition


def _section(path: pathlib.Path) -> Section:
    content = tomllib.loads(path.read_text())
    title = content.pop("title")
    place = content.pop("place", 0)
    definitions = []
    for name, fields in content.items():
        try:
            definitions.append(_definition(name, fields))
        except (KeyError, ValueError) as error:
            raise DefinitionError(f"{path.name}: {name}: {error}") from error
    return Section(title, place, tuple(definitions))


def load(directory: pathlib.Path) -> dict[str, Table]:
    """All tables by scope. Raises DefinitionError."""
    tables = {}
    for scope in SCOPES:
        single = directory / f"{scope}.toml"
        files = [single] if single.exists() else sorted((directory / scope).glob("*.toml"))
        table = Table(scope, tuple(sorted(map(_section, files), key=lambda s: (s.place, s.title))))
        names = [d.name for d in table.definitions]
        for before, after in zip(names, names[1:]):
            if before == after:
                raise DefinitionError(f"{scope}: {after} is defined twice")
        tables[scope] = table
    broker = {d.name for d in tables["broker"].definitions}
    for scope in ("topic", "group"):
        for d in tables[scope].definitions:
            for synonym in d.broker:
                if synonym.name not in broker:
                    raise DefinitionError(f"{scope}: {d.name}: {synonym.name} is no broker config")
    return tables
