"""Three small questions about volumes: one that is used late, a move between two, a journal's head (DESIGN 7, 9, 10).

Broker B is the old holder, D the new one. What `moves` and `journal` ask is built in `src/cluster/partition_table_moves.cc` and `src/storage/journal.h`.
"""

from typing import NamedTuple, Optional

from search import explore


class Late(NamedTuple):
    """B gets a partition, under epoch 5, on a volume that it has not used before."""

    session: str = "none"  # on that volume: none, alive, marked
    assigned: bool = False
    marked: bool = False  # wherever the controller found a session
    published: bool = False  # epoch 6, for D
    epoch: str = "absent"  # absent, begun, void
    done: int = 0  # of write, fsync, check and acknowledge
    read: Optional[bool] = None  # whether D found the record


def late_volume(session_first=True):
    """Is a volume named to a broker only once the broker is registered with a session on it?"""
    def steps(s):
        if not s.assigned and not s.marked and (s.session == "alive" or not session_first):
            yield "B is assigned epoch 5", s._replace(assigned=True)
        if s.session == "none":
            yield "B makes its session", s._replace(session="alive")
        if not s.marked:
            yield "B is marked", s._replace(marked=True, session="none" if s.session == "none" else "marked")
        if s.marked and s.assigned and not s.published:
            yield "epoch 6 is published", s._replace(published=True)
        if s.assigned and s.session != "none" and s.epoch == "absent":
            yield "B begins epoch 5", s._replace(epoch="begun")
        if s.epoch == "begun" and s.done < 2:
            yield ("B writes", "B fsyncs")[s.done], s._replace(done=s.done + 1)
        if s.done == 2 and s.session == "alive":
            yield "B checks and acknowledges", s._replace(done=3)
        if s.published and s.read is None:
            yield "D takes over", s._replace(
                epoch="void" if s.epoch == "absent" else s.epoch, read=s.done >= 2)

    return explore(Late(), steps, lambda s: "a record is lost" if s.done == 3 and s.read is False else None)


class Move(NamedTuple):
    """A partition was moved from volume 1 to volume 2, with epoch 6; B holds it and dies."""

    acknowledged: bool = False
    marked: bool = False
    volume: int = 0  # of epoch 7
    read: Optional[bool] = None


def moves(walk_where_each_epoch_was=True):
    """Does a walk look for each epoch on the volume that it was assigned to?"""
    def steps(s):
        if not s.marked:
            if not s.acknowledged:
                yield "B acknowledges a record on volume 2", s._replace(acknowledged=True)
            yield "B is marked", s._replace(marked=True)
        elif not s.volume:
            for volume in (1, 2):
                yield f"D is assigned epoch 7 on volume {volume}", s._replace(volume=volume)
        elif s.read is None:
            sees = walk_where_each_epoch_was or s.volume == 2
            yield "D walks", s._replace(read=s.acknowledged and sees)

    return explore(Move(), steps, lambda s: "a record is lost" if s.acknowledged and s.read is False else None)


class Journal(NamedTuple):
    """B makes a record durable in file 2 of its journal; file 1 is old."""

    manifest: bool = False  # of the epoch, durable; it names the journal
    acknowledged: bool = False
    in_segment: bool = False  # and synced there
    released: bool = False  # by a volume that hangs: without a last line
    trimmed: int = 0  # files
    marked: bool = False
    read: Optional[bool] = None


class JournalRules(NamedTuple):
    manifest_first: bool = True  # no entry before the manifest of its epoch is durable
    released_entries_pin: bool = True  # a partition that left without a last line keeps its file
    head_is_told: bool = True  # a line says where the journal begins


def journal(rules=JournalRules()):
    def steps(s):
        if not s.manifest:
            yield "B makes its manifest durable", s._replace(manifest=True)
        if not s.acknowledged and not s.marked and not s.released and (s.manifest or not rules.manifest_first):
            yield "B journals a record and acknowledges it", s._replace(acknowledged=True)
        if s.acknowledged and not s.released and not s.marked:
            if s.manifest and not s.in_segment:
                yield "B brings it into its segment", s._replace(in_segment=True)
            yield "B releases, without a last line", s._replace(released=True)
        if s.trimmed == 0 and not s.marked:
            yield "B trims file 1", s._replace(trimmed=1)
        free = s.in_segment or (s.released and not rules.released_entries_pin)
        if s.trimmed == 1 and not s.marked and free:
            yield "B trims file 2", s._replace(trimmed=2)
        if not s.marked:
            yield "B is marked", s._replace(marked=True)
        if (s.marked or s.released) and s.read is None:
            from_journal = s.trimmed < 2 and (rules.head_is_told or s.trimmed == 0)
            yield "D takes over", s._replace(read=s.manifest and (s.in_segment or from_journal))

    return explore(Journal(), steps, lambda s: "a record is lost" if s.acknowledged and s.read is False else None)
