"""bench/run decides rightly: medians, noisy rounds, targets met and missed. No server is started."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from harness import report, rounds, rows
from harness.servers import APACHE_FSYNC, BARE, KAAS


def row(*targets, metrics=(rows.MB_S,)):
    return rows.Row("r", "title", (), metrics, rows.MB_S, targets=targets)


def one_round(**mb_s):
    return {{"kaas": KAAS, "fsync": APACHE_FSYNC, "bare": BARE}[name]:
            {"mb_s": value, "other_cpu_s": 0, "seconds": 1} for name, value in mb_s.items()}


@pytest.mark.parametrize("values, noisy", [
    ([100, 100, 100], []),
    ([100, 129, 71], []),
    ([100, 131, 100], [1]),
    ([60, 100, 100, 140, 100], [0, 3]),
])
def test_rounds_far_from_the_bare_loops_median_are_noisy(values, noisy):
    measured = [one_round(bare=value) for value in values]
    assert rounds.noisy_rounds(measured, rows.MB_S) == noisy


def test_a_row_without_the_bare_loop_has_no_noisy_rounds(monkeypatch):
    monkeypatch.setattr(rounds, "load", lambda *_: {"mb_s": 1, "other_cpu_s": 0, "seconds": 1})
    monkeypatch.setattr(rounds, "settle", lambda: None)
    without = rows.Row("r", "title", (), (rows.MB_S,), rows.MB_S, servers=(KAAS,))
    measured = rounds.measure(without, {KAAS: None, BARE: None}, 2, 1, float("inf"), print)
    assert measured["noisy"] == measured["repeated"] == 0


@pytest.mark.parametrize("kaas, fsync, met", [(124, 31, True), (123, 31, False)])
def test_at_least_four_times(kaas, fsync, met):
    target = rows.at_least(rows.MB_S, 4, APACHE_FSYNC)
    medians = rounds.medians(row(target), [one_round(kaas=kaas, fsync=fsync)])
    assert report.failed([target], medians) is not met
    assert ("pass" if met else "FAIL") in "".join(report.verdict_lines([target], medians))


def test_an_absolute_bound_needs_no_other_party():
    target = rows.at_most(rows.READY_MS, 100)
    assert report.failed([target], {KAAS: {"ready_ms": 101}})
    assert not report.failed([target], {KAAS: {"ready_ms": 99}})


def test_a_missed_aim_is_no_failure():
    target = rows.at_least(rows.MB_S, 1, BARE, aim=True)
    medians = rounds.medians(row(target), [one_round(kaas=1, bare=2)])
    assert not report.failed([target], medians)
    assert "not yet" in report.verdict_lines([target], medians)[0]


def test_the_table_shows_the_median_of_the_rounds():
    measured = [one_round(kaas=value, fsync=10) for value in (1, 500, 42)]
    table = report.row_table(row(), {"medians": rounds.medians(row(), measured), "repeated": 0,
                                     "noisy": 0})
    assert " 42" in table
    assert "4.20 of apache fsync" in table
