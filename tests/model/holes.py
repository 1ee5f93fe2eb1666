"""One file of an epoch log, and what a crash leaves of it (DESIGN 6, "Failures").

Every history of a few lines: a change, or a *synced* line, which the owner writes when it likes, and behind each an
fsync or none. The first line behind an fsync says how many lines that fsync covered. A crash loses any of what was
not fsynced, for pages reach the disk in any order (a torn line is a lost one). Then, perhaps, a line rots that was
fsynced. A reader's rule is right when

  A  a crash alone is never refused,
  B  all that was acknowledged, which is every change that an fsync followed, is read, or the file is refused,
  C  a change that a *synced* line vouches for was fsynced.

After rot, B asks only for what some line that is left could tell: a rotten line that nothing follows looks like
a torn end to everybody.
"""

import itertools
from typing import NamedTuple, Optional

LINES = 6


class Line(NamedTuple):
    kind: str  # "change" or "synced"
    says: Optional[int]  # so many lines before it were fsynced; None when it does not say
    fsynced: int  # so many were, when it was written


def histories(lines):
    """Pairs of all lines and of how many are fsynced in the end."""
    for kinds in itertools.product(("change", "synced"), repeat=lines):
        for syncs in itertools.product((False, True), repeat=lines):
            yield write(kinds, syncs)


def write(kinds, syncs):
    written, fsynced, told, unsynced_change = [], 0, 0, False
    for kind, sync in zip(kinds, syncs):
        if kind == "synced" and unsynced_change:  # the owner syncs what it is about to vouch for
            fsynced, unsynced_change = len(written), False
        says = fsynced if kind == "synced" or told < fsynced else None
        told = fsynced
        written.append(Line(kind, says, fsynced))
        unsynced_change |= kind == "change"
        if sync:
            fsynced, unsynced_change = len(written), False
    return written, fsynced


# A reader's rules: given the good lines behind the first bad one, is the file refused?
RULES = {
    "told": lambda bad, behind: any(line.says is not None and line.says > bad for line in behind),  # the design
    "a good line behind a bad one": lambda bad, behind: bool(behind),
    "a change behind a bad line": lambda bad, behind: any(line.kind == "change" for line in behind),
    "never": lambda bad, behind: False,
    "told by a synced line": lambda bad, behind: any(
        line.kind == "synced" and line.says > bad for line in behind),
}


def read(lines, there, refuses):
    """How many lines count; None when the file is refused."""
    if all(there):
        return len(lines)
    bad = there.index(False)
    return None if refuses(bad, [line for line, is_there in zip(lines, there) if is_there][bad:]) else bad


def fault(rule, lines=LINES):
    """What is wrong with a rule, by the first history that shows it; None when it is right."""
    for history, fsynced in histories(lines):
        for lost in itertools.product((False, True), repeat=lines - fsynced):
            there = [True] * fsynced + [not gone for gone in lost]
            wrong = fault_of_crash(history, fsynced, there, RULES[rule])
            for rotten in range(fsynced):
                wrong = wrong or fault_of_rot(history, fsynced, there, rotten, RULES[rule])
            if wrong:
                return f"{wrong}: {history}, of which are there: {there}"
    return None


def acknowledged(history, fsynced):
    return [i for i in range(fsynced) if history[i].kind == "change"]


def fault_of_crash(history, fsynced, there, refuses):
    end = read(history, there, refuses)
    if end is None:
        return "A: a crash alone is refused"
    if any(i >= end for i in acknowledged(history, fsynced)):
        return "B: an acknowledged change is gone"
    vouchers = [i for i in range(end) if history[i].kind == "synced"]
    if vouchers and any(line.kind == "change" for line in history[history[vouchers[-1]].fsynced:vouchers[-1]]):
        return "C: a change is vouched for that was never fsynced"
    return None


def fault_of_rot(history, fsynced, there, rotten, refuses):
    left = there[:rotten] + [False] + there[rotten + 1:]
    if all(there):
        could_tell = any(line.fsynced > rotten for line in history)
    else:  # two faults at once: only what a line says can help
        could_tell = any(is_there and (line.says or 0) > rotten for line, is_there in zip(history, left))
    end = read(history, left, refuses)
    if could_tell and end is not None and any(i >= end for i in acknowledged(history, fsynced)):
        return f"B: line {rotten} rots, and what was acknowledged is gone without a word"
    return None
