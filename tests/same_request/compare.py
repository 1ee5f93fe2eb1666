#!/usr/bin/env python3
"""Compares two running brokers: compare.py APACHE_ADDRESS KAAS_ADDRESS [case ...]; --show prints all."""

import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases  # noqa: E402,F401
import harness  # noqa: E402


def main(arguments: list[str]) -> int:
    show = "--show" in arguments
    apache, kaas, *names = [a for a in arguments if a != "--show"]
    prefix = f"c{uuid.uuid4().hex[:6]}-"
    known = harness.listed()
    failed = 0
    for name in names or harness.CASES:
        left, right = harness.run(name, apache, prefix + "a"), harness.run(name, kaas, prefix + "k")
        if show:
            for path, value in left.items():
                print(f"    {name} {path} = {value}")
        rows = harness.differences(left, right)
        new = [r for r in rows if not any(k.covers(name, r[0]) for k in known)]
        failed += bool(new)
        print(f"{'DIFFERS' if new else 'same   '} {name} ({len(left)} fields, {len(rows) - len(new)} listed)")
        for path, a, b in new:
            print(f"    {path}\n        apache: {a}\n        kaas:   {b}")
    print(f"{len(names or harness.CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
