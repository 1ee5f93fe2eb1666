#!/usr/bin/env python3
"""Generates the wire protocol from protocol/*.wire: C++ for the build, docs/api.md for people.

    wiregen.py cpp  --protocol DIR --out DIR [--shards N]   sources of kaas_wire
    wiregen.py test --protocol DIR --out DIR [--shards N]   random messages and JSON, for tests alone
    wiregen.py docs --protocol DIR --out FILE [--check]     the API table

Files whose content did not change keep their time. Standard library only.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import cpp
import docs
import model
import testing


def write(path: pathlib.Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def generate_cpp(protocol: model.Protocol, out: pathlib.Path, shards: int) -> None:
    for name, messages in cpp.groups_of(protocol):
        write(out / "wire" / "messages" / f"{name}.h", cpp.header(f"{name}.wire", messages))
    for number, groups in enumerate(cpp.balance(protocol, shards)):
        write(out / "wire" / f"messages_{number}.cc", cpp.shard(groups))
    write(out / "wire" / "api_key.h", cpp.api_key_header(protocol))
    write(out / "wire" / "api_table.cc", cpp.api_table(protocol))
    write(out / "wire" / "error_code.h", cpp.error_header(protocol))
    write(out / "wire" / "error_code.cc", cpp.error_source(protocol))


def generate_test(protocol: model.Protocol, out: pathlib.Path, shards: int) -> None:
    folder = out / "wire" / "testing"
    for number, groups in enumerate(cpp.balance(protocol, shards)):
        write(folder / f"messages_{number}.cc", testing.shard(groups, number))
    write(folder / "all_messages.cc", testing.table(shards))


def generate_docs(protocol: model.Protocol, out: pathlib.Path, check: bool) -> int:
    text = docs.api_table(protocol)
    if not check:
        write(out, text)
        return 0
    if out.exists() and out.read_text() == text:
        return 0
    print(f"{out} is not what protocol/ says: run tools/wiregen/wiregen.py docs", file=sys.stderr)
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cpp", "test", "docs"])
    parser.add_argument("--protocol", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    try:
        protocol = model.load(options.protocol)
    except model.DefinitionError as error:
        print(f"wiregen: {error}", file=sys.stderr)
        return 1
    if options.what == "docs":
        return generate_docs(protocol, options.out, options.check)
    generate = generate_cpp if options.what == "cpp" else generate_test
    generate(protocol, options.out, options.shards)
    return 0


if __name__ == "__main__":
    sys.exit(main())
