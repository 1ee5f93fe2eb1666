"""Exhaustive search: every order of steps from a start, breadth first, so that a trace found is a shortest one."""

import collections
from typing import NamedTuple, Optional


class Outcome(NamedTuple):
    states: int
    wrong: Optional[str]  # what is wrong in the last state of `trace`; None when no order leads to it
    trace: list  # names of steps

    def __str__(self):
        if self.wrong is None:
            return f"{self.states} states, none is wrong"
        steps = "".join(f"\n  {n:2} {step}" for n, step in enumerate(self.trace, 1))
        return f"{self.wrong}, found among {self.states} states:{steps}"


def explore(start, steps, wrong):
    """`steps(state)` yields (name, next state); `wrong(state)` is what is wrong with it, or None.

    States are values that compare and hash. None follows a wrong one.
    """
    came_from = {start: None}
    queue = collections.deque([start])
    visited = 0
    while queue:
        state = queue.popleft()
        visited += 1
        why = wrong(state)
        if why:
            return Outcome(visited, why, _trace(state, came_from))
        for name, after in steps(state):
            if after not in came_from:
                came_from[after] = (name, state)
                queue.append(after)
    return Outcome(visited, None, [])


def _trace(state, came_from):
    trace = []
    while came_from[state] is not None:
        name, state = came_from[state]
        trace.append(name)
    return trace[::-1]


def put(values, index, value):
    """`values` with another one at `index`."""
    return (*values[:index], value, *values[index + 1:])
