"""Every message of the protocol, in every version, against Apache's own generated classes.

kafka-clients makes messages (all defaults, and filled at random) that our codecs read and write again: the
bytes must be the same. Then the other way. What either side read is compared as JSON too, so that two
swapped fields do not hide behind equal bytes. The same with record batches, in every codec. The seed is printed;
KAAS_ORACLE_SEED replays it, KAAS_ORACLE_ROUNDS sets how many random messages each version gets.
"""

import os
import pathlib
import re
import subprocess
import time

import apache
import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / os.environ.get("KAAS_ORACLE_PRESET", "release")


@pytest.fixture(scope="module")
def peer():
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", BUILD.name], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD, "--target", "kaas_oracle_peer"], check=True,
                   stdout=subprocess.DEVNULL)
    return BUILD / "tests" / "kaas_oracle_peer"


@pytest.fixture(scope="module")
def java(tmp_path_factory):
    """Oracle.java, compiled against Apache's jars."""
    compiled = apache.javac(HERE / "Oracle.java", tmp_path_factory.mktemp("oracle"))
    return [apache.java(), "-cp", apache.classpath(compiled), "Oracle"]


@pytest.fixture(scope="module")
def seed():
    return int(os.environ.get("KAAS_ORACLE_SEED", time.time_ns() % 10**9))


def run(*command):
    """Runs one side; returns its number of checks."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-8000:]
    return int(re.search(r"(\d+) checks", done.stdout)[1])


def facts_file(peer, tmp_path):
    facts = tmp_path / "facts"
    facts.write_text(subprocess.run([peer, "facts"], check=True, capture_output=True, text=True).stdout)
    return facts


def test_registry_headers_and_error_codes(peer, java, tmp_path):
    checks = run(*java, "facts", facts_file(peer, tmp_path))
    print(f"{checks} facts of the registry")
    assert checks > 1000


@pytest.mark.timeout(900)
def test_messages(peer, java, seed, tmp_path, request):
    rounds = os.environ.get("KAAS_ORACLE_ROUNDS", 200 if request.config.getoption("--long") else 10)
    apaches, ours = tmp_path / "apache.cases", tmp_path / "kaas.cases"
    made = run(*java, "make", apaches, seed, rounds, facts_file(peer, tmp_path))
    answered = run(peer, "answer", apaches, ours, seed, rounds)
    judged = run(*java, "judge", ours)
    print(f"seed {seed}: {made} messages of Apache's, {answered - made} of ours, each read by both sides")
    assert answered == judged >= 2 * made > 5000


def test_record_batches(peer, java, seed, tmp_path):
    apaches, ours = tmp_path / "apache.batches", tmp_path / "kaas.batches"
    rounds = 100
    made = run(*java, "make-batches", apaches, seed, rounds)
    answered = run(peer, "answer-batches", apaches, ours, seed, rounds)
    judged = run(*java, "judge-batches", ours)
    print(f"seed {seed}: {made} batches of Apache's, {answered - made} of ours, in every codec")
    assert made == answered - made == 5 * rounds <= judged
