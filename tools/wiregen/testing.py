"""C++ for tests: fills messages at random and writes them as Apache's JsonConverter classes do."""

from __future__ import annotations

from cpp import BANNER, condition, is_not_default, scope
from model import Field, Message, Struct, camel


def guarded(guard: str | None, statement: str) -> str:
    return f"    if ({guard}) {statement}" if guard else f"    {statement}"


def fill_field(message: Message, field: Field) -> str:
    guards = [condition(field.versions, message.versions)]
    if field.tag is not None:
        guards.append("random.chance(2)")
    guard = " && ".join(g for g in guards if g) or None
    target = f"s.{field.name}"
    if field.nullable and field.type != "records":
        allowed = condition(field.nullable, field.versions) or "true"
        return guarded(guard, f"fill_nullable(random, {target}, version, {allowed});")
    if field.type == "records":
        allowed = (condition(field.nullable, field.versions) or "true") if field.nullable else "false"
        return guarded(guard, f"fill_records(random, {target}, {allowed});")
    return guarded(guard, f"fill(random, {target}, version);")


def json_field(message: Message, field: Field) -> str:
    guards = [condition(field.versions, message.versions)]
    if field.tag is not None:
        guards.append(is_not_default(field, "s."))
    guard = " && ".join(g for g in guards if g) or None
    return guarded(guard, f"json.member(\"{camel(field.name)}\", s.{field.name}, version);")


def fill_tags(message: Message, fields: list[Field]) -> list[str]:
    if message.flexible is None:
        return []
    known = sum(field.tag is not None for field in fields)
    guard = condition(message.flexible, message.versions)
    return [guarded(guard, f"fill_tags(random, s.unknown_tags, {known});")]


def struct(message: Message, name: str, fields: list[Field]) -> list[str]:
    return [
        f"void fill(Random& random, {name}& s, [[maybe_unused]] std::int16_t version) {{",
        *[fill_field(message, field) for field in fields],
        *fill_tags(message, fields),
        "    (void)random, (void)s;",
        "}",
        "",
        f"void write_json(Json& json, const {name}& s, [[maybe_unused]] std::int16_t version) {{",
        "    json.begin();",
        *[json_field(message, field) for field in fields],
        "    json.end();",
        "    (void)s;",
        "}",
        "",
    ]


def declarations(message: Message) -> list[str]:
    names = [f"{scope(message)}::{s.name}" for s in message.structs] + [message.name]
    lines = []
    for name in names:
        lines += [f"void fill(Random&, {name}&, std::int16_t);",
                  f"void write_json(Json&, const {name}&, std::int16_t);"]
    return lines


def definitions(message: Message) -> list[str]:
    lines = []
    for inner in message.structs:
        lines += struct(message, f"{scope(message)}::{inner.name}", inner.fields)
    return lines + struct(message, message.name, message.fields)


def entry(message: Message) -> str:
    key = message.api.key if message.api else -1
    return f"    message_type<{message.name}>(Kind::k{message.kind.capitalize()}, {key}),"


def shard(groups: list[tuple[str, list[Message]]], number: int) -> str:
    messages = [message for _, both in groups for message in both]
    lines = [BANNER.format(source="*.wire")]
    lines += [f"#include \"wire/messages/{name}.h\"" for name, _ in groups]
    lines += ["", "#include \"wire/testing/message_type.h\"", "", "namespace kaas::wire::testing {",
              ""]
    for message in messages:
        lines += declarations(message)
    lines.append("")
    for message in messages:
        lines += definitions(message)
    lines += [
        f"std::vector<MessageType> messages_{number}() {{",
        "    return {",
        *["    " + entry(message) for message in messages],
        "    };",
        "}",
        "",
        "}  // namespace kaas::wire::testing",
        "",
    ]
    return "\n".join(lines)


def table(shards: int) -> str:
    numbers = range(shards)
    lines = [BANNER.format(source="*.wire"), "#include \"wire/testing/all_messages.h\"", "",
             "#include <algorithm>", "", "namespace kaas::wire::testing {", ""]
    lines += [f"std::vector<MessageType> messages_{n}();" for n in numbers]
    lines += [
        "",
        "const std::vector<MessageType>& all_messages() {",
        "    static const std::vector<MessageType> all = [] {",
        "        std::vector<MessageType> result;",
        "        for (auto shard : {" + ", ".join(f"&messages_{n}" for n in numbers) + "}) {",
        "            auto part = shard();",
        "            result.insert(result.end(), part.begin(), part.end());",
        "        }",
        "        std::ranges::sort(result, {}, &MessageType::name);",
        "        return result;",
        "    }();",
        "    return all;",
        "}",
        "",
        "}  // namespace kaas::wire::testing",
        "",
    ]
    return "\n".join(lines)
