#!/usr/bin/env python3
"""Checks the house rules on every tracked file: `tidy.py [--root DIR]`, exit 1 when one is broken.

A finding reads `path:line: rule: message`. `exceptions.tsv` lists what is allowed to break a rule and
why; an exception that nothing needs any more is a finding too. `generated.tsv` lists commands that
tell whether generated files are in step with their sources.
"""

import argparse
import collections
import fnmatch
import pathlib
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import project_rules
import rules
import sources

HERE = pathlib.Path(__file__).resolve().parent

Finding = collections.namedtuple("Finding", "path line rule message")
Exempt = collections.namedtuple("Exempt", "rule path reason")


def table(path):
    """Rows of a tab separated file; `#` begins a comment line."""
    if not path.exists():
        return []
    return [tuple(field.strip() for field in line.split("\t") if field)
            for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]


def check(files):
    """Every finding in `files`, before exceptions."""
    for source in files:
        for name, rule in rules.RULES.items():
            for line, message in rule(source):
                yield Finding(source.path, line, name, message)
    for name, rule in project_rules.PROJECT_RULES.items():
        for path, line, message in rule(files):
            yield Finding(path, line, name, message)


def apply_exceptions(findings, exempt):
    """Findings that no exception covers, and a finding for each exception that covers none."""
    used = set()
    for finding in findings:
        covering = [e for e in exempt
                    if e.rule == finding.rule and fnmatch.fnmatchcase(finding.path, e.path)]
        used.update(covering)
        if not covering:
            yield finding
    for unused in sorted(set(exempt) - used):
        yield Finding("tools/tidy/exceptions.tsv", 1, "exceptions",
                      f"nothing needs '{unused.rule} {unused.path}' any more")


def generated(root, rows):
    """A finding for each generator whose --check fails."""
    for name, command in rows:
        done = subprocess.run(shlex.split(command), cwd=root, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip().splitlines()[-5:]
            yield Finding(name, 1, "generated", f"out of step, run `{command}`: " + " | ".join(said))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1])
    options = parser.parse_args(arguments)

    files = sources.tracked(options.root)
    config = options.root / "tools" / "tidy"
    exempt = [Exempt(*row) for row in table(config / "exceptions.tsv")]
    findings = [*apply_exceptions(check(files), exempt),
                *generated(options.root, table(config / "generated.tsv"))]
    for finding in sorted(findings):
        print(f"{finding.path}:{finding.line}: {finding.rule}: {finding.message}")
    count = len(rules.RULES) + len(project_rules.PROJECT_RULES) + 1
    print(f"tidy: {len(findings)} findings, {count} rules, {len(files)} files", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
