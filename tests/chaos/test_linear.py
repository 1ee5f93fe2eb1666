"""The checker of histories (linear.py) finds each kind of fault, and no fault in what may happen."""

import pytest
from linear import History


def good():
    history = History()
    history.append("a", 0, 1, 0, producer=(7, 0, 0))
    history.append("b", 2, None, producer=(7, 0, 1))  # no answer
    history.append("c", 3, 6, 2)
    history.append("d", 4, 5, 3)  # at the same time as c
    history.append("e", 7, None)  # never arrived
    history.read(0, ["a"], 2, 3, high_watermark=1)
    history.read(1, ["b", "c"], 7, 8, high_watermark=4)
    history.read(4, [], 9, 10, high_watermark=4)
    return history


FINAL = ["a", "b", "c", "d"]


def lost_acknowledgement(history):
    history.append("f", 11, 12, 4)
    return FINAL


def another_value_in_its_place(history):
    return ["a", "b", "d", "c"]


def lost_high_watermark(history):
    history.read(4, [], 11, 12, high_watermark=5)
    return FINAL


def stale_read(history):
    history.read(0, ["a"], 11, 12, high_watermark=1)
    return FINAL


def high_watermark_that_goes_back(history):
    history.append("f", 11, None)
    history.read(4, ["f"], 12, 13, high_watermark=5)
    history.read(4, [], 14, 15, high_watermark=4)
    return [*FINAL, "f"]


def read_that_changed(history):
    history.append("x", 11, None)
    history.read(1, ["x"], 11, 12, high_watermark=4)
    return FINAL


def read_beyond_the_high_watermark(history):
    history.append("f", 11, None)
    history.read(4, ["f"], 12, 13, high_watermark=4)
    return [*FINAL, "f"]


def order(history):
    history.append("f", 11, 12, 5)
    history.append("g", 13, 14, 4)
    return [*FINAL, "g", "f"]


def offset_twice(history):
    history.append("f", 11, 12, 4)
    history.append("g", 11, 12, 4)
    return [*FINAL, "f"]


def sequence_twice(history):
    history.append("f", 11, 12, 4, producer=(7, 0, 0))
    return [*FINAL, "f"]


def idempotent_record_twice(history):
    return ["a", "b", "c", "d", "b"]


def record_from_nowhere(history):
    return [*FINAL, "z"]


@pytest.mark.parametrize(("harm", "says"), [
    (lost_acknowledgement, "lost: "), (another_value_in_its_place, "lost: "), (lost_high_watermark, "shorter"),
    (stale_read, "stale: "), (high_watermark_that_goes_back, "stale: "), (read_that_changed, "read and changed"),
    (read_beyond_the_high_watermark, "beyond"), (order, "out of order"), (offset_twice, "one offset twice"),
    (sequence_twice, "one sequence twice"), (idempotent_record_twice, "doubled"), (record_from_nowhere, "from nowhere"),
], ids=lambda case: getattr(case, "__name__", None))
def test_a_bad_history_is_found(harm, says):
    history = good()
    final = harm(history)
    assert any(says in fault for fault in history.faults(final)), history.faults(final)


def test_a_good_history_has_no_fault():
    assert good().faults(FINAL) == []
    assert good().faults([*FINAL, "e"]) == []
