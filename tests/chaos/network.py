"""Hosts as network namespaces with a link each to one switch, and cuts between them, one direction at a time.

    network.cut(1, 2)      # what 1 sends to 2 goes nowhere, in silence; 2 still reaches 1
    network.heal()

A host is a broker's id, or CLIENTS, where the test's own threads are. Every host knows the others' addresses for
good; a cut gives it a wrong one, so nothing answers and nothing refuses, as behind a switch that has lost a link.
"""

import contextlib
import ctypes
import itertools
import os
import pathlib
import shutil
import subprocess

import pytest

CLIENTS = 100
CLONE_NEWNET = 0x40000000
NOWHERE = "02:00:00:00:ff:ff"
numbers = itertools.count()


def missing():
    """Why there can be no namespaces here; None when there can."""
    for tool in ("ip", "nsenter"):
        if shutil.which(tool) is None:
            return f"no {tool}"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    return f"no network namespaces: {tried.stderr.strip()}" if tried.returncode else None


def ip(*words):
    done = subprocess.run(["ip", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(map(str, words))}: {done.stderr}"


def mac(host):
    return f"02:00:00:00:00:{host:02x}"


class Network:
    def __init__(self, hosts):
        self.hosts = [*hosts, CLIENTS]
        self.name = f"kaas-{os.getpid()}-{next(numbers)}"
        self.made = []

    def namespace(self, host):
        return f"{self.name}-{host}"

    def address(self, host):
        return f"10.77.0.{host}"

    def command(self, host):
        """What a command line begins with, to run on that host."""
        return ["nsenter", f"--net=/run/netns/{self.namespace(host)}"]

    def add(self, name):
        ip("netns", "add", self.namespace(name))
        self.made.append(self.namespace(name))
        ip("-n", self.namespace(name), "link", "set", "lo", "up")

    def __enter__(self):
        self.add("switch")
        switch = self.namespace("switch")
        ip("-n", switch, "link", "add", "switch", "type", "bridge")
        ip("-n", switch, "link", "set", "switch", "up")
        for host in self.hosts:
            self.add(host)
            ip("-n", switch, "link", "add", f"to-{host}", "type", "veth",
               "peer", "name", "eth", "address", mac(host), "netns", self.namespace(host))
            ip("-n", switch, "link", "set", f"to-{host}", "master", "switch", "up")
            ip("-n", self.namespace(host), "addr", "add", f"{self.address(host)}/24", "dev", "eth")
            ip("-n", self.namespace(host), "link", "set", "eth", "up")
        self.heal()
        return self

    def __exit__(self, *_):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def direct(self, source, target, to):
        ip("-n", self.namespace(source), "neigh", "replace", self.address(target), "lladdr", to,
           "nud", "permanent", "dev", "eth")

    def cut(self, *pairs):
        """Each (from, to): what that host sends there is lost."""
        for source, target in pairs:
            self.direct(source, target, NOWHERE)

    def heal(self):
        for source, target in itertools.permutations(self.hosts, 2):
            self.direct(source, target, mac(target))

    @contextlib.contextmanager
    def entered(self):
        """This thread, and those that it starts meanwhile, are on the host of the clients."""
        libc = ctypes.CDLL(None, use_errno=True)
        there = pathlib.Path("/run/netns") / self.namespace(CLIENTS)
        with open("/proc/self/ns/net") as home, open(there) as net:
            assert libc.setns(net.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                assert libc.setns(home.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())


@pytest.fixture
def network():
    """Hosts 1 to 3 and the clients' one, on which the test runs."""
    if reason := missing():
        pytest.skip(reason)
    with Network([1, 2, 3]) as made, made.entered():
        yield made
