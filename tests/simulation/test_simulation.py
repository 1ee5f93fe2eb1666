"""Histories of a whole cluster on a simulated machine: nothing that was acknowledged is lost, and all is well in the end.

Method: seeds, each a history of crashes, freezes, cuts, ended sessions and topics that come and go (README.md). A
failing one prints how to see it again. That the simulation sees anything is shown by taking rules away (mutants.py).
"""

import os
import pathlib
import subprocess

import pytest
import mutants

BUILD = mutants.ROOT / "build" / os.environ.get("KAAS_SIMULATION_PRESET", "release")
BINARY = BUILD / "tests" / "kaas_simulation"

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason=f"{BINARY} is not built")


def simulate(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


def run_all(first, seeds):
    run = simulate("--first", first, "--seeds", seeds)
    assert run.returncode == 0, run.stdout


@pytest.mark.timeout(600)
def test_whatever_goes_wrong_nothing_is_lost_and_all_is_well_again():
    run_all(0, 1000)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_nothing_is_lost_in_many_more_histories():
    run_all(1000, 40_000)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_seed_is_one_history(seed):
    once, again = (simulate("--first", seed, "--seeds", 1, "--trace").stdout for _ in range(2))
    assert "fingerprint" in once
    assert once == again


@pytest.mark.parametrize("mutant", mutants.MUTANTS + mutants.NOT_SEEN_YET, ids=lambda mutant: mutant.name)
def test_each_rule_is_where_its_mutant_looks_for_it(mutant):
    mutants.changed_texts(mutant)


# Seen within a few histories, so that each run shows that the simulation sees.
QUICK = ("effects-before-the-check", "publish-without-mark", "a-controller-epoch-is-used-twice")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mutant", [
    pytest.param(mutant, id=mutant.name, marks=() if mutant.name in QUICK else pytest.mark.long)
    for mutant in mutants.MUTANTS
])
def test_each_rule_is_missed_when_it_is_taken_away(mutant, tmp_path):
    binary = mutants.build(mutant, BUILD, tmp_path)
    assert mutants.first_sign(binary, mutant.seeds), f"{mutant.seeds} histories are well without the rule"
