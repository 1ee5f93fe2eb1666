#!/usr/bin/env python3
"""Generates from config/: the C++ of a build, or docs/configuration.md.

    tools/configgen/configgen.py cpp DIRECTORY
    tools/configgen/configgen.py docs [--check]
"""

import argparse
import pathlib
import sys

import cpp
import docs
import model

ROOT = pathlib.Path(__file__).resolve().parents[2]


def write(path: pathlib.Path, content: str) -> None:
    """Leaves a file that is right already alone, so that nothing is compiled again."""
    if not path.exists() or path.read_text() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def main() -> int:
    parser = argparse.ArgumentParser(prog="configgen", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--definitions", type=pathlib.Path, default=ROOT / "config")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("cpp").add_argument("directory", type=pathlib.Path)
    commands.add_parser("docs").add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    try:
        tables = model.load(arguments.definitions)
    except model.DefinitionError as error:
        print(f"config/{error}", file=sys.stderr)
        return 1
    if arguments.command == "cpp":
        for name, content in cpp.files(tables).items():
            write(arguments.directory / name, content)
        return 0
    page = ROOT / "docs" / "configuration.md"
    content = docs.page(tables)
    if not arguments.check:
        write(page, content)
    elif not page.exists() or page.read_text() != content:
        print("docs/configuration.md is not what config/ says: run tools/configgen/configgen.py docs",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
