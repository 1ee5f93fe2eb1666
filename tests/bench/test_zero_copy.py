"""Batch bytes are not copied between socket and file (issue 3, "Speed and size"), seen from outside."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_neither_produce_nor_fetch_copies_batches():
    done = subprocess.run([ROOT / "bench" / "evidence" / "zero_copy"], capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
