#!/usr/bin/env python3
"""Runs clang-tidy on the sources, those changed last first, and remembers what was found clean.

What a run depends on (the preprocessed source, our own text with its NOLINT comments, .clang-tidy,
the tool's version) is hashed; a file whose hash is known to be clean costs a preprocessor run. So a
machine that has checked a file before checks it in every later run, and a new machine takes what fits
into --budget seconds, and says what it left. `--long` takes all. Headers are checked through the
sources that include them; one that no source of its own name begins with is compiled alone too.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "lint"
TOOL = "clang-tidy-19"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "kaas-tidy"


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True,
                          check=True).stdout.splitlines()


def by_last_change(paths):
    """Uncommitted ones first, then by the newest commit that touched them."""
    changed = [line[3:] for line in git("status", "--porcelain", "--untracked-files=all")]
    history = [line for line in git("log", "--name-only", "--format=", "-n", "500") if line]
    rank = {}
    for path in [*changed, *history]:
        rank.setdefault(path, len(rank))
    return sorted(paths, key=lambda path: (rank.get(path, len(rank)), path))


def compile_commands():
    """Arguments of each source of ours, by path below ROOT, without compiler launchers and outputs."""
    commands = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / "build"):
            continue
        words = shlex.split(entry["command"])
        while "clang++" not in words[0]:
            words.pop(0)
        commands[str(path.relative_to(ROOT))] = words[:words.index("-o")]
    return commands


def lonely_headers(commands):
    """Headers that no source begins with; `own-header-first` of tools/tidy sees to the others."""
    headers = git("ls-files", "--cached", "--others", "--exclude-standard", "src/**/*.h", "src/*.h")
    return [path for path in sorted(set(headers))
            if path.removesuffix(".h") + ".cc" not in commands and (ROOT / path).exists()]


def own_text(preprocessed):
    """The text of every file of ours that went in: comments are no part of preprocessed output."""
    names = set(re.findall(r'^# \d+ "([^"]+)"', preprocessed, re.MULTILINE))
    for name in sorted(names):
        path = pathlib.Path(BUILD, name).resolve()
        if path.is_relative_to(ROOT) and path.is_file():
            yield path.read_text()


class Checker:
    """Checks files on a few threads; the first failure does not stop the others."""

    def __init__(self, commands, deadline):
        self.commands = commands
        self.deadline = deadline
        version = subprocess.run([TOOL, "--version"], capture_output=True, text=True, check=True).stdout
        self.salt = version + (ROOT / ".clang-tidy").read_text()
        self.lock = threading.Lock()
        self.clean, self.known, self.failed, self.left = 0, 0, [], []

    def key(self, path, command):
        done = subprocess.run([*command[:1], "-E", *command[1:], "-c", path], cwd=BUILD,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None
        # Line markers hold paths, which differ from checkout to checkout.
        code = re.sub(r"^# .*$", "", done.stdout, flags=re.MULTILINE)
        digest = hashlib.sha256()
        for part in (self.salt, path.name, code, *own_text(done.stdout)):
            digest.update(part.encode())
            digest.update(b"\0")
        return digest.hexdigest()

    def check(self, name):
        header = name.endswith(".h")
        command = self.commands.get(name) or next(iter(self.commands.values()))
        if header:
            command = [*command, "-x", "c++-header", "-Wno-pragma-once-outside-header"]
        path = ROOT / name
        if time.monotonic() > self.deadline:
            return self.record(self.left, name)
        key = self.key(path, command)
        if key and (CACHE / key).exists():
            with self.lock:
                self.known += 1
            return None
        if header:
            run = [*command, "-fsyntax-only", str(path)]
        else:
            run = [TOOL, "--quiet", "-p", str(BUILD), str(path)]
        done = subprocess.run(run, cwd=BUILD, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            noise = re.compile(r"^\d+ warnings? .*generated.*$|^Suppressed \d+ warnings.*$", re.MULTILINE)
            with self.lock:
                print(noise.sub("", done.stdout + done.stderr).strip(), flush=True)
            return self.record(self.failed, name)
        if key:
            (CACHE / key).touch()
        with self.lock:
            self.clean += 1
        return None

    def record(self, where, name):
        with self.lock:
            where.append(name)


def fix(names):
    for name in names:
        if not name.endswith(".h"):
            subprocess.run([TOOL, "--quiet", "-p", str(BUILD), "--checks=-*,misc-include-cleaner",
                            "--fix", str(ROOT / name)], cwd=BUILD, capture_output=True, check=False)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="all files, however long it takes")
    parser.add_argument("--budget", type=float, default=480, metavar="SECONDS",
                        help="begin no file after this (default: %(default)s)")
    parser.add_argument("--fix", action="store_true",
                        help="put includes right in place, one file after the other; format afterwards")
    parser.add_argument("files", nargs="*", help="these only, paths below the project's root")
    options = parser.parse_args()

    CACHE.mkdir(parents=True, exist_ok=True)
    commands = compile_commands()
    names = options.files or by_last_change([*commands, *lonely_headers(commands)])
    if not names:
        sys.exit("clang-tidy: no files")
    deadline = float("inf") if options.long else time.monotonic() + options.budget
    if options.fix:
        return fix(names)
    checker = Checker(commands, deadline)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(checker.check, names))

    print(f"clang-tidy: {checker.clean} clean, {checker.known} known to be clean, "
          f"{len(checker.failed)} failed, {len(checker.left)} not reached in time")
    for name in sorted(checker.failed):
        print(f"  failed: {name}")
    if checker.left:
        print("  `./dev lint --long` checks all, not only those changed last")
    return 1 if checker.failed else 0


if __name__ == "__main__":
    sys.exit(main())
