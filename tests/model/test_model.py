"""Every order of steps of a few brokers, and the rules of docs/design.md hold; without any one of them, they do not.

Method: exhaustive search of small models. A rule counts as tested only because its mutant is caught.
"""

import pytest

import election
import holes
import partition
import removal
import volumes
from search import explore


def mutants(rules):
    return [pytest.param(rules._replace(**{name: False}), id=name) for name in rules._fields]


def test_a_search_finds_the_shortest_way_and_says_when_there_is_none():
    def steps(n):
        return [("add 1", n + 1), ("double", n * 2)] if n < 10 else []

    found = explore(1, steps, lambda n: "ten" if n == 10 else None)
    assert found.trace == ["add 1", "double", "add 1", "double"]
    nothing = explore(1, steps, lambda n: "thirty" if n == 30 else None)
    assert (nothing.wrong, nothing.states) == (None, 14)


def test_a_partition_loses_nothing_and_takes_nothing_back():
    found = partition.search()
    assert found.wrong is None, found


@pytest.mark.long
def test_a_partition_loses_nothing_with_more_records():
    found = partition.search(size=partition.Size(epochs=3, records=2))
    assert found.wrong is None, found


@pytest.mark.parametrize("rules", [
    # It takes four epochs, and 340,000 states, to see that what was only read must not count.
    pytest.param(*mutant.values, id=mutant.id, marks=[pytest.mark.long] if mutant.id == "trust_vouched_only" else [])
    for mutant in mutants(partition.Rules())])
def test_a_partition_needs_each_of_its_rules(rules):
    size = partition.Size() if rules.trust_vouched_only else partition.Size(epochs=4)
    assert partition.search(rules, size).wrong


@pytest.mark.parametrize("size", [
    pytest.param(election.Size(elections=2, epochs=2, releases=True), id="with releases"),
    pytest.param(election.Size(elections=3, epochs=3, releases=False), id="deeper"),
])
def test_two_brokers_never_hold_a_partition(size):
    found = election.search(size=size)
    assert found.wrong is None, found


@pytest.mark.parametrize("rules", mutants(election.Rules()))
def test_an_election_needs_each_of_its_rules(rules):
    size = election.Size()
    if not rules.released_for_ever:
        size = election.Size(elections=2, epochs=3, releases=True)
    assert election.search(rules, size).wrong


def test_removal_takes_nothing_from_whom_it_belongs_to():
    found = removal.search()
    assert found.wrong is None, found


@pytest.mark.parametrize("rules", mutants(removal.Rules()))
def test_removal_needs_each_of_its_rules(rules):
    assert removal.search(rules).wrong


def test_holes_of_a_crash_are_no_damage_and_damage_is_refused():
    assert holes.fault("told") is None


@pytest.mark.parametrize("rule", [rule for rule in holes.RULES if rule != "told"])
def test_holes_need_lines_that_tell(rule):
    assert holes.fault(rule)


@pytest.mark.parametrize("question", [volumes.late_volume, volumes.moves])
def test_volumes(question):
    found = question()
    assert found.wrong is None, found
    assert question(False).wrong


def test_a_journal_loses_nothing():
    found = volumes.journal()
    assert found.wrong is None, found


@pytest.mark.parametrize("rules", mutants(volumes.JournalRules()))
def test_a_journal_needs_each_of_its_rules(rules):
    assert volumes.journal(rules).wrong
