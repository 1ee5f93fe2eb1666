"""The file system of nfsfs.cc: machines that share one NFS server, mounted for one test."""

import contextlib
import os
import pathlib
import subprocess
import tempfile

import pytest
from chaosfs import ROOT, Control, missing, stop

BINARY = pathlib.Path(os.environ.get("KAAS_NFSFS", ROOT / "build" / "release" / "tests" / "kaas_nfsfs"))


class Nfs:
    """`mounts[i]` is the directory of client i + 1. `tell` speaks the lines that nfsfs.cc lists."""

    def __init__(self, home, clients):
        self.home = pathlib.Path(home)
        self.mounts = [self.home / f"client-{i + 1}" for i in range(clients)]
        self.process = None

    def __enter__(self):
        for mount in self.mounts:
            mount.mkdir()
        socket = self.home / "control"
        self.process = subprocess.Popen([BINARY, socket, *self.mounts])
        self.control = Control(socket, self.process)
        self.tell = self.control.tell
        return self

    def __exit__(self, *_):
        self.tell("clear *")
        self.control.close()
        stop(self.process, self.mounts)

    def cache(self, files_ms, directories_ms, client="*"):
        """acregmax and acdirmax."""
        self.tell(f"cache {client} {files_ms} {directories_ms}")

    @contextlib.contextmanager
    def stalled(self, client="*"):
        """Nothing is answered to that client, or to any: each call waits, as on a hard mount."""
        self.tell(f"hang {client} * *")
        try:
            yield
        finally:
            self.tell(f"clear {client}")


@pytest.fixture
def nfs_factory():
    if reason := missing(BINARY):
        pytest.skip(reason)
    with contextlib.ExitStack() as cleanup:
        def make(clients=2):
            home = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="kaas-nfs-"))
            return cleanup.enter_context(Nfs(home, clients))
        yield make


# What mount options of NFS have at most, and what a server may do.
STALEST = ("cache * 60000 60000", "writeback * torn", "delegations recall 2000")


@pytest.fixture
def nfs_cluster(nfs_factory, cluster_factory):
    """Makes clusters in which each broker has a mount of its own; `cluster.nfs` is what they share."""
    def make(count=3, settings=None, lines=STALEST):
        nfs = nfs_factory(count)
        for line in lines:
            nfs.tell(line)
        cluster = cluster_factory(count, settings, mounts=dict(enumerate(nfs.mounts, 1)))
        cluster.nfs = nfs
        return cluster
    return make


@pytest.fixture
def nfs(nfs_factory):
    """Two clients."""
    return nfs_factory()
