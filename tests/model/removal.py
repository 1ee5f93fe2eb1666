"""A segment is dropped by an owner that may be a zombie, while takers read it and old epochs are removed (DESIGN 6, 9).

The owner of epoch 0 drops segment s: a line, a check, the unlink. Epochs 1 and 2 take over from what they find, may
serve from it before they write anything, and then remove what is older. Wrong: a serving owner lists s, which is
gone; or it serves an empty log, because the newest picture was removed under its walk.
"""

from typing import NamedTuple, Optional

from search import explore, put

EPOCHS = 3


class Rules(NamedTuple):
    """True is the design; a mutant takes one away."""

    check_before_serving: bool = True
    line_before_check: bool = True  # first durable, then checked, then done


class Owner(NamedTuple):
    phase: str = "none"  # walking, found, serving, written, removing, fenced
    at: int = 0  # the epoch that its walk looks at next
    lists: Optional[str] = None  # "s", "nothing"; "empty" when the walk found no picture at all


class State(NamedTuple):
    drop: int = 0  # of three steps, how many are done
    segment: bool = True
    files: tuple = ("picture", "absent", "absent")  # file 1 of each epoch
    lists: tuple = ("s", None, None)  # what each manifest says
    marked: tuple = (False,) * EPOCHS
    newest: int = 0
    owners: tuple = (Owner("serving"), Owner(), Owner())


def drop_steps(state, rules):
    def line():
        if state.files[0] == "picture":
            yield "@0 writes the drop", state._replace(drop=state.drop + 1, lists=put(state.lists, 0, "nothing"))

    def check():
        if not state.marked[0]:
            yield "@0 checks: alive", state._replace(drop=state.drop + 1)

    order = (line, check) if rules.line_before_check else (check, line)
    if state.drop < 2:
        yield from order[state.drop]()
    elif state.drop == 2:
        yield "@0 unlinks s", state._replace(drop=3, segment=False)


def owner_steps(state, e, rules):
    me = state.owners[e]

    def become(**changes):
        return {"owners": put(state.owners, e, me._replace(**changes))}

    if me.phase == "walking":
        if me.at < 0:
            yield f"@{e} finds no picture at all", state._replace(**become(phase="found", lists="empty"))
        elif state.files[me.at] == "absent":
            yield f"@{e} makes @{me.at} void", state._replace(
                files=put(state.files, me.at, "void"), **become(at=me.at - 1))
        elif state.files[me.at] == "void":
            yield f"@{e} sees that @{me.at} is void", state._replace(**become(at=me.at - 1))
        else:
            yield f"@{e} reads @{me.at}", state._replace(**become(phase="found", lists=state.lists[me.at]))
    elif me.phase == "found":
        fenced = rules.check_before_serving and state.marked[e]
        yield f"@{e} " + ("is fenced" if fenced else "serves"), state._replace(
            **become(phase="fenced" if fenced else "serving"))
    elif me.phase == "serving" and state.files[e] == "absent":
        yield f"@{e} writes its picture", state._replace(
            files=put(state.files, e, "picture"), lists=put(state.lists, e, me.lists), **become(phase="written"))
    elif me.phase == "written":
        yield f"@{e} checks before it removes", state._replace(
            **become(phase="fenced" if state.marked[e] else "removing"))
    elif me.phase == "removing":
        for old in range(e):
            if state.files[old] != "absent":
                yield f"@{e} removes @{old}", state._replace(files=put(state.files, old, "absent"))


def controller_steps(state):
    if state.newest == EPOCHS - 1:
        return
    if not state.marked[state.newest]:
        yield f"@{state.newest} is marked", state._replace(marked=put(state.marked, state.newest, True))
    else:
        e = state.newest + 1
        yield f"@{e} is published", state._replace(
            newest=e, owners=put(state.owners, e, Owner("walking", state.newest)))


def wrong(state):
    for e, owner in enumerate(state.owners[1:], 1):
        if owner.phase not in ("serving", "written", "removing"):
            continue
        if owner.lists == "empty":
            return f"@{e} serves an empty log"
        if owner.lists == "s" and not state.segment and not state.marked[e]:
            return f"@{e} lists s, which is gone"
    return None


def search(rules=Rules()):
    def steps(state):
        yield from drop_steps(state, rules)
        yield from controller_steps(state)
        for e in range(1, EPOCHS):
            yield from owner_steps(state, e, rules)

    return explore(State(), steps, wrong)
