"""One partition, or anything else that lives in an epoch log: owners that may be zombies, and a crash (DESIGN 6, 7, 9).

The owner of epoch 0 serves. Controllers may mark it or ask it to release, and publish the next epoch, whose owner
walks down, copies a tail, writes its picture or serves from what it found. Once, everything may crash that is not
durable. A manifest is modelled by its picture (which epoch it goes on from, and how many records of that one's
segment count) and by its newest line (how many records of its own segment it says are synced). Wrong: an owner
serves a log without a record that was acknowledged, or a consumer sees something else than a consumer saw before.

Not modelled: sequences of producers, several volumes.
"""

from typing import NamedTuple, Optional

from search import explore, put

HOLE = -1  # stands for a record that a picture counts and a segment does not have


class Rules(NamedTuple):
    """The first value is the design; a mutant changes one."""

    copy_before_picture: bool = True
    void_what_is_absent: bool = True  # else a cached absence is believed
    release_is_for_ever: bool = True  # else a cycle that ends after it still moves the high watermark
    first_file_stays: bool = True  # else it is removed after a roll
    check_before_serving: bool = True
    trust_vouched_only: bool = True  # else whatever is read counts


class Size(NamedTuple):
    epochs: int = 3
    records: int = 1


class Epoch(NamedTuple):
    """What lies on the volume under one epoch, and its owner."""

    file: str = "absent"  # file 1 of the manifest: absent, empty, void, picture
    picture_durable: bool = False
    base: Optional[int] = None  # the epoch that the picture goes on from; -1 for none
    base_length: int = 0
    records: tuple = ()  # of its own segment
    durable: int = 0  # of these, so many were fsynced
    told: int = 0  # so many are synced, says the newest line
    told_durable: bool = False
    vouched: bool = False  # that line is there, behind all others
    marked: bool = False
    released: bool = False
    # none, walking, walked, copied, check lazy, lazy, check own, serving, stopped
    phase: str = "none"
    at: int = 0  # what the walk looks at next
    found: int = -1  # where it ended
    found_told: int = 0
    found_end: int = 0
    cycle: str = "none"  # of a commit: written, fsynced
    outlives: bool = False  # the release did not wait for the cycle
    high_watermark: int = 0


class State(NamedTuple):
    epochs: tuple
    newest: int = 0
    next_record: int = 0
    crashed: bool = False
    acknowledged: frozenset = frozenset()
    seen: tuple = ()  # by consumers, from the start of the log
    wrong: Optional[str] = None


def start(size):
    first = Epoch(file="picture", picture_durable=True, base=-1, told_durable=True, vouched=True, phase="serving")
    return State((first,) + (Epoch(),) * (size.epochs - 1))


def alter(state, e, **changes):
    return state._replace(epochs=put(state.epochs, e, state.epochs[e]._replace(**changes)))


def view(state, e, length):
    """The records of the log whose last segment is epoch `e`'s, cut at `length`."""
    records = ()
    while e >= 0:
        epoch = state.epochs[e]
        own = epoch.records[:length]
        records = own + (HOLE,) * (length - len(own)) + records
        e, length = epoch.base, epoch.base_length
    return records


def consume(state, records):
    common = min(len(records), len(state.seen))
    if records[:common] != state.seen[:common]:
        return state._replace(wrong="what a consumer saw is another record now")
    return state._replace(seen=max(records, state.seen, key=len))


def serve(state, records):
    """A consumer reads from an owner that is the rightful one."""
    if not state.acknowledged <= set(records):
        return state._replace(wrong="an acknowledged record is lost")
    if len(records) < len(state.seen):
        return state._replace(wrong="what a consumer saw is gone")
    return consume(state, records)


def controller_steps(state):
    e, epoch = state.newest, state.epochs[state.newest]
    if e == len(state.epochs) - 1:
        return
    if not epoch.marked:
        yield f"@{e} is marked", alter(state, e, marked=True)
    if epoch.marked or epoch.released:
        yield f"@{e + 1} is published", alter(state, e + 1, phase="walking", at=e)._replace(newest=e + 1)
    if not epoch.marked and not epoch.released and epoch.phase in ("walking", "lazy", "serving"):
        yield f"@{e} releases", release(state, e)


def release(state, e):
    epoch = state.epochs[e]
    if epoch.cycle != "none":  # its ticket fails, and there is no last line
        return alter(state, e, released=True, outlives=True, phase="stopped")
    line = {}
    if epoch.phase == "serving":
        told = len(epoch.records) if len(epoch.records) <= epoch.durable else epoch.told
        line = {"told": told, "told_durable": True, "vouched": True}
    return alter(state, e, released=True, phase="stopped", **line)


def crash_steps(state):
    if state.crashed:
        return
    after = state._replace(crashed=True, epochs=tuple(map(crash, state.epochs)))
    if after.epochs != state.epochs:
        yield "crash: what was not fsynced is gone", after
    without_voids = tuple(e._replace(file="absent") if e.file == "void" else e for e in after.epochs)
    if without_voids != after.epochs:
        yield "crash: what was not fsynced is gone, voids too", after._replace(epochs=without_voids)


def crash(epoch):
    lost_picture = epoch.file == "picture" and not epoch.picture_durable
    if lost_picture or len(epoch.records) > epoch.durable:  # its owner's next fsync fails
        epoch = epoch._replace(phase="stopped", cycle="none", outlives=False)
    if lost_picture:
        epoch = epoch._replace(file="empty")
    if epoch.told and not epoch.told_durable:
        epoch = epoch._replace(told=0, vouched=False)
    return epoch._replace(records=epoch.records[:epoch.durable])


def walk_steps(state, e, rules):
    me = state.epochs[e]
    if me.phase != "walking":
        return
    if me.at < 0:
        yield f"@{e} finds nothing", alter(state, e, phase="walked", found=-1)
    elif state.epochs[me.at].file == "picture":
        yield from find(state, e, me.at)
    else:
        absent = state.epochs[me.at].file == "absent"
        closes = absent and rules.void_what_is_absent
        closed = alter(state, me.at, file="void") if closes else state
        yield f"@{e} passes @{me.at}" + (", making it void" if closes else ""), alter(closed, e, at=me.at - 1)
    if not rules.void_what_is_absent:
        pictures = [k for k in range(e) if state.epochs[k].file == "picture"]
        if pictures:
            older = pictures[-2] if len(pictures) > 1 else -1
            for name, after in find(state, e, older):
                yield f"@{e} believes that @{pictures[-1]} is absent; {name}", after


def find(state, e, k):
    if k < 0:
        yield f"@{e} finds nothing", alter(state, e, phase="walked", found=-1)
        return
    epoch = state.epochs[k]
    found = {"phase": "walked", "found": k, "found_told": epoch.told}
    yield f"@{e} reads @{k}", alter(state, e, found_end=len(epoch.records), **found)
    if epoch.durable < len(epoch.records):
        yield (f"@{e} reads @{k}, without what only its host has",
               alter(state, e, found_end=max(epoch.durable, epoch.told), **found))


def take_over_steps(state, e, rules):
    """What was found: copied, or served as it is."""
    me = state.epochs[e]
    if me.phase != "walked":
        return
    tail = me.found_end > me.found_told
    settled = not tail and (
        me.found < 0 or not rules.trust_vouched_only or state.epochs[me.found].vouched)
    if tail and me.file == "absent" and not rules.copy_before_picture:
        yield f"@{e} writes its picture before it copies", alter(
            state, e, file="picture", picture_durable=True, base=me.found, base_length=me.found_told, phase="copied")
    elif tail and me.file != "absent":
        yield f"@{e} was closed", alter(state, e, phase="stopped")
    elif tail:
        copy = state.epochs[me.found].records[me.found_told:me.found_end]
        yield f"@{e} copies the tail and fsyncs it", alter(state, e, records=copy, durable=len(copy), phase="copied")
    elif settled:
        yield f"@{e} has nothing to write", alter(
            state, e, phase="check lazy" if rules.check_before_serving else "lazy")
    else:
        yield f"@{e} must write its picture first", alter(state, e, phase="copied")


def picture_steps(state, e, rules):
    me = state.epochs[e]
    if me.phase == "copied":
        if not rules.copy_before_picture and me.file == "picture":
            yield late_copy(state, e)
        elif me.file == "absent":
            yield f"@{e} makes file 1", alter(state, e, file="empty")
        elif me.file == "empty" and me.base is None:
            yield f"@{e} writes its picture", alter(
                state, e, file="picture", base=me.found, base_length=me.found_told if me.found >= 0 else 0,
                told=len(me.records), told_durable=False)
        elif me.file == "picture" and not me.picture_durable:
            durable = alter(state, e, picture_durable=True, told_durable=True, phase="check own")
            served = alter(durable, e, phase="serving", high_watermark=len(me.records))
            yield f"@{e} fsyncs its picture", durable if rules.check_before_serving else served
        else:
            yield f"@{e} was closed", alter(state, e, phase="stopped")
    elif me.phase.startswith("check"):
        if me.marked:
            yield f"@{e} checks: fenced", alter(state, e, phase="stopped")
        elif me.phase == "check own":
            yield f"@{e} checks: alive", alter(state, e, phase="serving", high_watermark=len(me.records))
        else:
            yield f"@{e} checks: alive", alter(state, e, phase="lazy")


def late_copy(state, e):
    """Of the mutant whose picture comes first."""
    me = state.epochs[e]
    at = me.found_told + len(me.records)
    source = state.epochs[me.found].records
    if at < min(me.found_end, len(source)):
        records = me.records + (source[at],)
        return f"@{e} copies a record", alter(state, e, records=records, durable=len(records))
    count = len(me.records)
    return f"@{e} serves", alter(state, e, phase="serving", told=count, told_durable=True, high_watermark=count)


def serving_steps(state, e, rules, size):
    me = state.epochs[e]
    more = state.next_record < size.records
    if me.phase == "lazy":
        if not me.marked:
            yield f"a consumer reads from @{e}", serve(state, view(state, me.found, me.found_told))
        if more:
            yield f"@{e} has something to write", alter(state, e, phase="copied")
    elif me.phase == "serving":
        records = view(state, e, me.high_watermark)
        if me.marked:
            yield f"a consumer reads from the zombie @{e}", consume(state, records)
        elif not me.released:
            yield f"a consumer reads from @{e}", serve(state, records)
        if me.cycle == "none" and more and len(me.records) < size.records:
            written = alter(state, e, records=me.records + (state.next_record,), cycle="written")
            yield f"@{e} writes record {state.next_record}", written._replace(next_record=state.next_record + 1)
        synced = me.durable == len(me.records)
        if me.cycle == "none" and synced and (me.told < len(me.records) or not me.vouched):
            yield f"@{e} writes a synced line", alter(
                state, e, told=len(me.records), told_durable=False, vouched=True)
        if not rules.first_file_stays and synced and me.records and not me.marked and me.picture_durable \
                and me.file == "picture" and me.cycle == "none":
            yield f"@{e} rolls its manifest and removes file 1", alter(state, e, file="absent")


def cycle_steps(state, e, rules):
    """fsync, check, acknowledge; by an owner that may have released meanwhile."""
    me = state.epochs[e]
    if me.phase != "serving" and not me.outlives:
        return
    if me.cycle == "written":
        yield f"@{e}: the fsync returns", alter(state, e, durable=len(me.records), cycle="fsynced")
    elif me.cycle == "fsynced" and me.marked:
        yield f"@{e} checks: fenced", alter(state, e, cycle="none", outlives=False, phase="stopped")
    elif me.cycle == "fsynced" and me.outlives:
        late = alter(state, e, cycle="none", outlives=False)
        if not rules.release_is_for_ever:
            late = alter(late, e, high_watermark=len(me.records))
            late = consume(late, view(late, e, len(me.records)))
        yield f"@{e}: a cycle ends after the release", late
    elif me.cycle == "fsynced":
        done = alter(state, e, cycle="none", high_watermark=len(me.records))
        yield (f"@{e} checks: alive, and acknowledges record {me.records[-1]}",
               done._replace(acknowledged=done.acknowledged | {me.records[-1]}))


def search(rules=Rules(), size=Size()):
    def steps(state):
        yield from controller_steps(state)
        yield from crash_steps(state)
        for e in range(size.epochs):
            yield from walk_steps(state, e, rules)
            yield from take_over_steps(state, e, rules)
            yield from picture_steps(state, e, rules)
            yield from serving_steps(state, e, rules, size)
            yield from cycle_steps(state, e, rules)

    return explore(start(size), steps, lambda state: state.wrong)
