"""What nfsfs.cc shows through two mounts: each test is one thing that NFS does and a local disk does not.

No broker here: the tests of tests/cluster stand on what these prove. Waits are for conditions; a cache that must
not expire during a test is told to last an hour.
"""

import contextlib
import ctypes
import errno
import os
import struct
import threading

import pytest
from asking import until

HOUR = 3_600_000
AT_EMPTY_PATH, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS = 0x1000, 0x2000, 0x7ff
libc = ctypes.CDLL(None, use_errno=True)


def forced_mode(fd):
    """statx as a session check makes it."""
    found = ctypes.create_string_buffer(256)
    if libc.statx(fd, b"", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, found) != 0:
        raise OSError(ctypes.get_errno(), "statx")
    return struct.unpack_from("H", found, 28)[0] & 0o7777


def refused(call, *arguments):
    """The errno of a call that must fail."""
    with pytest.raises(OSError) as failed:
        call(*arguments)
    return errno.errorcode[failed.value.errno]


@contextlib.contextmanager
def opened(path, flags=os.O_RDONLY):
    fd = os.open(path, flags, 0o644)
    try:
        yield fd
    finally:
        with contextlib.suppress(OSError):  # of a client that has died
            os.close(fd)


def write(path, data, sync=True):
    with opened(path, os.O_CREAT | os.O_WRONLY) as fd:
        os.pwrite(fd, data, 0)
        if sync:
            os.fsync(fd)


def sync(path):
    with opened(path) as fd:
        os.fsync(fd)


def content(path):
    with opened(path) as fd:
        return os.pread(fd, 1 << 20, 0)


class Doing(threading.Thread):
    """A call that waits; `result` once it has come back."""

    def __init__(self, call, *arguments):
        super().__init__(daemon=True)
        self.call, self.arguments, self.result = call, arguments, None
        self.start()

    def run(self):
        try:
            self.result = ("done", self.call(*self.arguments))
        except OSError as failed:
            self.result = ("failed", errno.errorcode[failed.errno])

    def await_result(self):
        return until(lambda: self.result, "the call comes back")


# Caches of attributes and names.

def test_an_open_file_is_short_elsewhere_until_its_attributes_expire(nfs):
    a, b = nfs.mounts
    write(a / "log", b"first")
    nfs.cache(HOUR, 0, client=2)
    with opened(a / "log", os.O_WRONLY) as writer, opened(b / "log") as reader:
        assert os.pread(reader, 100, 0) == b"first"
        os.pwrite(writer, b" second", 5)
        os.fsync(writer)
        assert os.pread(reader, 100, 0) == b"first"
        assert content(b / "log") == b"first second", "an open looks afresh"
        assert os.pread(reader, 100, 0) == b"first second"
        nfs.cache(100, 0, client=2)
        os.pwrite(writer, b" third", 12)
        os.fsync(writer)
        until(lambda: os.pread(reader, 100, 0), "it has expired", lambda read: read.endswith(b" third"))


def test_a_size_is_old_until_the_attributes_expire(nfs):
    a, b = nfs.mounts
    write(a / "log", b"first")
    nfs.cache(HOUR, HOUR, client=2)
    assert os.stat(b / "log").st_size == 5
    write(a / "log", b"longer")
    assert os.stat(b / "log").st_size == 5
    with opened(b / "log") as fd:
        assert os.fstat(fd).st_size == 6, "an open looks afresh"


def test_absence_is_believed_until_the_directory_expires(nfs):
    a, b = nfs.mounts
    nfs.cache(0, HOUR, client=2)
    assert not (b / "made").exists()
    write(a / "made", b"x")
    assert not (b / "made").exists()
    assert refused(os.open, b / "made", os.O_CREAT | os.O_EXCL | os.O_WRONLY) == "EEXIST"
    assert content(b / "made") == b"x", "who was told EEXIST looks afresh"
    assert not (b / "later").exists()
    nfs.cache(0, 100, client=2)
    write(a / "later", b"y")
    until((b / "later").exists, "its absence has expired")


def test_a_directory_that_exists_says_so_to_mkdir(nfs):
    a, b = nfs.mounts
    nfs.cache(0, HOUR, client=2)
    assert not (b / "epoch").exists()
    (a / "epoch").mkdir()
    assert not (b / "epoch").exists()
    assert refused(os.mkdir, b / "epoch") == "EEXIST"
    assert (b / "epoch").is_dir()


def test_a_name_that_was_replaced_leads_to_the_old_file(nfs):
    a, b = nfs.mounts
    write(a / "name", b"old")
    nfs.cache(HOUR, HOUR, client=2)
    assert content(b / "name") == b"old"
    write(a / "new", b"new")
    os.rename(a / "name", a / "aside")
    os.rename(a / "new", a / "name")
    assert content(b / "name") == b"old", "opened by handle"
    nfs.cache(0, 0, client=2)
    assert content(b / "name") == b"new"


def test_a_name_below_a_removed_directory_is_absent_not_stale(nfs):
    a, b = nfs.mounts
    for path in (a / "cluster", a / "cluster" / "epoch"):
        path.mkdir()
    write(a / "cluster" / "epoch" / "manifest", b"x")
    nfs.cache(HOUR, HOUR, client=2)
    assert content(b / "cluster" / "epoch" / "manifest") == b"x"
    os.unlink(a / "cluster" / "epoch" / "manifest")
    os.rmdir(a / "cluster" / "epoch")
    assert refused(os.open, b / "cluster" / "epoch" / "manifest", os.O_RDONLY) == "ENOENT"


def test_an_open_of_a_directory_looks_afresh_at_its_names(nfs):
    a, b = nfs.mounts
    nfs.cache(0, HOUR, client=2)
    assert not (b / "made").exists()
    write(a / "made", b"")
    assert not (b / "made").exists()
    assert os.listdir(b) == ["made"]
    assert (b / "made").exists()


def test_names_stay_believed_through_changes_of_ones_own(nfs):
    a, b = nfs.mounts
    nfs.cache(0, HOUR, client=2)
    assert not (b / "made").exists()
    write(b / "other", b"")
    write(a / "made", b"")
    assert not (b / "made").exists()
    write(b / "another", b"")  # and the answer to this shows that others were at work
    assert (b / "made").exists()


def test_a_forced_look_is_fresh_where_others_are_not(nfs):
    a, b = nfs.mounts
    (a / "session").mkdir()
    nfs.cache(HOUR, HOUR, client=2)
    with opened(b / "session", os.O_PATH | os.O_DIRECTORY) as fd:
        mode = os.fstat(fd).st_mode
        os.chmod(a / "session", 0)
        assert os.fstat(fd).st_mode == mode
        assert forced_mode(fd) == 0
        os.rmdir(a / "session")
        assert refused(forced_mode, fd) == "ESTALE"


# Names that are in use.

def test_a_removed_file_that_is_open_here_is_hidden(nfs):
    a, b = nfs.mounts
    (a / "topic").mkdir()
    write(a / "topic" / "log", b"kept")
    with opened(a / "topic" / "log") as fd:
        os.unlink(a / "topic" / "log")
        hidden, = os.listdir(b / "topic")
        assert hidden.startswith(".nfs")
        assert os.pread(fd, 10, 0) == b"kept"
        assert refused(os.unlink, a / "topic" / hidden) == "EBUSY"
        assert refused(os.rmdir, a / "topic") == "ENOTEMPTY"
        assert refused(os.rmdir, b / "topic") == "ENOTEMPTY"
    until(lambda: os.listdir(b / "topic"), "closed, it is gone", lambda names: not names)
    os.rmdir(b / "topic")


def test_a_replaced_file_that_is_open_here_is_hidden(nfs):
    a, b = nfs.mounts
    write(a / "log", b"old")
    write(a / "new", b"new")
    with opened(a / "log") as fd:
        os.rename(a / "new", a / "log")
        assert os.pread(fd, 10, 0) == b"old"
        assert len([n for n in os.listdir(b) if n.startswith(".nfs")]) == 1


def test_a_file_that_another_client_has_removed_is_stale(nfs):
    a, b = nfs.mounts
    write(a / "log", b"x")
    with opened(b / "log", os.O_RDWR) as fd:
        os.unlink(a / "log")
        assert refused(os.pread, fd, 10, 0) == "ESTALE"
        assert refused(os.pwrite, fd, b"y", 0) == "ESTALE"
        assert refused(os.fsync, fd) == "ESTALE"


def test_what_a_dead_client_hid_stays(nfs):
    a, b = nfs.mounts
    write(a / "log", b"x")
    with opened(a / "log"):
        os.unlink(a / "log")
        nfs.tell("die 1")
    nfs.tell("revive 1")
    hidden, = os.listdir(b)
    os.unlink(b / hidden)
    assert os.listdir(a) == []


def test_a_directory_of_mode_0_cannot_be_opened(nfs):
    a, b = nfs.mounts
    (a / "session").mkdir()
    os.chmod(a / "session", 0)
    assert refused(os.open, b / "session", os.O_RDONLY | os.O_DIRECTORY) == "EACCES"
    os.rmdir(b / "session")


# What is durable.

def test_a_restarted_server_drops_what_a_dead_client_had_not_synced(nfs):
    a, b = nfs.mounts
    write(a / "log", b"synced")
    with opened(a / "log", os.O_WRONLY) as fd:
        os.pwrite(fd, b" lost", 6)
        assert content(b / "log") == b"synced lost", "others have read it"
        nfs.tell("die 1")
        nfs.tell("restart")
        assert content(b / "log") == b"synced"


def test_a_restarted_server_gets_again_what_a_living_client_had_written(nfs):
    a, b = nfs.mounts
    with opened(a / "log", os.O_CREAT | os.O_WRONLY) as fd:
        os.pwrite(fd, b"kept", 0)
        nfs.tell("restart")
        assert content(b / "log") == b"kept"


def test_a_crash_loses_a_name_whose_directory_was_not_synced(nfs):
    a, b = nfs.mounts
    for name in ("kept", "lost"):
        (a / name).mkdir()
        sync(a)
        write(a / name / "manifest", b"x")
        if name == "kept":
            sync(a / name)
    nfs.tell("crash")
    assert content(b / "kept" / "manifest") == b"x"
    assert os.listdir(b / "lost") == []


def test_a_crash_undoes_a_removal_whose_directory_was_not_synced(nfs):
    a, b = nfs.mounts
    write(a / "log", b"back")
    sync(a)
    os.unlink(a / "log")
    nfs.tell("crash")
    assert content(b / "log") == b"back"
    os.unlink(a / "log")
    sync(a)
    nfs.tell("crash")
    assert os.listdir(b) == []


def test_writes_are_seen_when_the_writer_sends_them(nfs):
    a, b = nfs.mounts
    for kind, seen in (("eager", b"abcd"), ("lazy", b""), ("torn", b"\0\0cd")):
        nfs.tell(f"writeback 1 {kind}")
        with opened(a / kind, os.O_CREAT | os.O_RDWR) as fd:
            os.pwrite(fd, b"abcd", 0)
            assert os.pread(fd, 10, 0) == b"abcd", "one's own are always seen"
            assert content(b / kind) == seen, kind
            os.fsync(fd)
            assert content(b / kind) == b"abcd"


def test_after_a_failed_sync_pages_stay_and_are_never_durable(nfs):
    a, b = nfs.mounts
    with opened(a / "log", os.O_CREAT | os.O_RDWR) as fd:
        os.pwrite(fd, b"lost", 0)
        nfs.tell("fail 1 fsync EIO 1 /log")
        assert refused(os.fsync, fd) == "EIO"
        assert os.pread(fd, 10, 0) == b"lost"
        os.fsync(fd)
        assert content(b / "log") == b"lost"
        nfs.tell("restart")
        assert content(b / "log") == b""


def test_a_full_volume_takes_nothing_and_says_how_full_it_is(nfs):
    a, _ = nfs.mounts
    nfs.tell(f"size {8 * 4096}")
    with opened(a / "log", os.O_CREAT | os.O_RDWR) as fd:
        assert refused(os.pwrite, fd, b"x" * 4096 * 8, 0) == "ENOSPC"
        assert os.pwrite(fd, b"x" * 4096, 0) == 4096
    room = os.statvfs(a)
    assert (room.f_blocks, room.f_bavail) == (8, 5)


# Stalls and delegations.

def test_one_client_stalls_alone(nfs):
    a, b = nfs.mounts
    with nfs.stalled(client=1):
        waits = Doing(write, a / "log", b"late")
        write(b / "other", b"on time")
        assert waits.result is None
    assert waits.await_result() == ("done", None)


def test_a_stalled_server_stops_all(nfs):
    with nfs.stalled():
        waits = [Doing(os.listdir, mount) for mount in nfs.mounts]
        until(lambda: [int(nfs.tell(f"count {i} opendir")) for i in (1, 2)], "both have asked", lambda n: n == [1, 1])
        assert [w.result for w in waits] == [None, None]
    assert [w.await_result() for w in waits] == [("done", [])] * 2


def test_a_delegation_is_given_back_when_its_holder_answers(nfs):
    a, b = nfs.mounts
    nfs.tell(f"delegations recall {HOUR}")
    with opened(a / "log", os.O_CREAT | os.O_RDWR) as fd:
        os.chmod(b / "log", 0)
        assert forced_mode(fd) == 0


def test_a_chmod_waits_for_a_silent_holder_as_long_as_the_lease(nfs):
    a, b = nfs.mounts
    nfs.tell(f"delegations recall {HOUR}")
    with opened(a / "log", os.O_CREAT | os.O_RDWR):
        with nfs.stalled(client=1):
            waits = Doing(os.chmod, b / "log", 0)
            until(lambda: int(nfs.tell("count 2 setattr")), "it has asked")
            assert waits.result is None
            nfs.tell("delegations recall 1")  # only the next one waits so briefly
            assert waits.result is None
        assert waits.await_result() == ("done", None)
        nfs.tell("delegations recall 50")
    with opened(a / "log2", os.O_CREAT | os.O_RDWR), nfs.stalled(client=1):
        os.chmod(b / "log2", 0)  # after 50 ms


def test_a_sync_after_a_delegation_was_taken_away_fails(nfs):
    a, b = nfs.mounts
    nfs.tell("delegations recall 1")
    nfs.tell("writeback 1 lazy")
    with opened(a / "log", os.O_CREAT | os.O_RDWR) as fd:
        os.pwrite(fd, b"never sent", 0)
        with nfs.stalled(client=1):
            write(b / "log", b"x")
        assert refused(os.fsync, fd) == "EIO"
        assert content(b / "log") == b"x"


def test_a_mode_is_withheld_from_the_holder_of_a_delegation_and_not_for_a_directory(nfs):
    a, b = nfs.mounts
    nfs.tell("delegations withhold")
    (a / "session").mkdir()
    with (opened(a / "log", os.O_CREAT | os.O_RDWR) as file,
          opened(a / "session", os.O_PATH | os.O_DIRECTORY) as directory):
        os.chmod(b / "log", 0)
        os.chmod(b / "session", 0)
        assert forced_mode(file) == 0o644
        assert forced_mode(directory) == 0
