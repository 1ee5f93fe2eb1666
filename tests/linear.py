"""Whether what clients saw of one partition can be the history of one log.

    history = History()
    history.append("a", begun=0.0, ended=0.1, offset=0)          # acknowledged; the offset it was told
    history.append("b", begun=0.2, ended=None)                   # never answered: may be there or not, anywhere
    history.read(0, ["a"], begun=0.3, ended=0.4, high_watermark=1)
    history.faults(final=["a"])                                  # [] when all can be true

Times are of one clock, that of who asked. A partition's order is fixed by its offsets, so no search is needed: each
claim is held against the log as it is in the end, and against what was known before the asking began.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Append:
    """`count` records of one batch, their values equal for a checker that wants to tell batches apart."""

    value: object
    begun: float
    ended: float | None
    offset: int | None
    producer: tuple | None = None  # (producer id, epoch, sequence)


@dataclasses.dataclass(frozen=True)
class Read:
    offset: int
    values: tuple
    begun: float
    ended: float
    high_watermark: int


class History:
    """What was asked of one partition, and what was answered. Not thread-safe: join the clients' lists."""

    def __init__(self):
        self.appends, self.reads = [], []

    def append(self, value, begun, ended, offset=None, producer=None):
        assert (ended is None) == (offset is None), "an answer has an offset"
        self.appends.append(Append(value, begun, ended, offset, producer))

    def read(self, offset, values, begun, ended, high_watermark):
        self.reads.append(Read(offset, tuple(values), begun, ended, high_watermark))

    def faults(self, final):
        """`final`: the values at offsets 0, 1, ... when all has come to rest."""
        return [*self.lost(final), *self.doubled(), *self.changed(final), *self.reordered(), *self.stale(),
                *self.producers(final), *self.from_nowhere(final)]

    @property
    def acknowledged(self):
        return [a for a in self.appends if a.ended is not None]

    def lost(self, final):
        for one in self.acknowledged:
            if one.offset >= len(final) or final[one.offset] != one.value:
                yield f"lost: {one} is not where it was acknowledged"

    def doubled(self):
        at = {}
        for one in self.acknowledged:
            other = at.setdefault(one.offset, one)
            if other is not one:
                yield f"one offset twice: {other} and {one}"

    def changed(self, final):
        """What was read below a high watermark stays."""
        for read in self.reads:
            if read.offset + len(read.values) > read.high_watermark:
                yield f"read beyond the high watermark: {read}"
            if tuple(final[read.offset:read.offset + len(read.values)]) != read.values:
                yield f"read and changed: {read}"
            if read.high_watermark > len(final):
                yield f"the log is shorter than a high watermark that was told: {read}"

    def reordered(self):
        """Who was answered before another asked, has the smaller offset."""
        greatest = None  # of those that ended before the next begins
        ended = sorted(self.acknowledged, key=lambda a: a.ended)
        at = 0
        for one in sorted(self.acknowledged, key=lambda a: a.begun):
            while at < len(ended) and ended[at].ended < one.begun:
                if greatest is None or ended[at].offset > greatest.offset:
                    greatest = ended[at]
                at += 1
            if greatest is not None and greatest.offset > one.offset:
                yield f"out of order: {one} began after {greatest} had ended"

    def stale(self):
        """A high watermark is at least what was acknowledged, or told, before the read began."""
        known = sorted([(a.ended, a.offset + 1, a) for a in self.acknowledged]
                       + [(r.ended, r.high_watermark, r) for r in self.reads], key=lambda k: k[:2])
        greatest, why, at = 0, None, 0
        for read in sorted(self.reads, key=lambda r: r.begun):
            while at < len(known) and known[at][0] < read.begun:
                if known[at][1] > greatest:
                    greatest, why = known[at][1], known[at][2]
                at += 1
            if read.high_watermark < greatest:
                yield f"stale: {read} began after {why} had ended"

    def producers(self, final):
        """A (producer id, epoch, sequence) stands for one value at one offset."""
        seen = {}
        for one in self.acknowledged:
            if one.producer is None:
                continue
            other = seen.setdefault(one.producer, one)
            if (other.value, other.offset) != (one.value, one.offset):
                yield f"one sequence twice: {other} and {one}"
        idempotent = [a.value for a in self.appends if a.producer is not None]
        for value in dict.fromkeys(idempotent):
            if final.count(value) > 1:
                yield f"doubled: {value} of an idempotent producer is there {final.count(value)} times"

    def from_nowhere(self, final):
        asked = {a.value for a in self.appends}
        for offset, value in enumerate(final):
            if value not in asked:
                yield f"from nowhere: {value} at {offset}"
