"""File systems that can carry a cluster, and what is turned away: `kaas volume check`, and what brokers prove."""

import json
import shutil
import subprocess

import broker as kaas_broker
import pytest
from broker import BrokerError

pytestmark = pytest.mark.timeout(300)


def check(*directories):
    """(exit code, findings)"""
    done = subprocess.run([kaas_broker.binary(), "volume", "check", "-o", "json", *directories],
                          capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_a_local_directory_is_fit(tmp_path):
    code, findings = check(tmp_path)
    assert code == 0, findings
    assert {f["verdict"] for f in findings} <= {"good", "note"}
    assert {"mark", "mode bits", "visibility", "fsync", "other process"} <= {f["property"] for f in findings}
    assert not list((tmp_path / "__check").iterdir())


@pytest.mark.parametrize("lines", [(), ("cache * 60000 60000", "writeback * torn", "delegations recall 200")],
                         ids=["fresh", "stalest"])
def test_two_mounts_of_nfs_are_fit(nfs_factory, lines):
    nfs = nfs_factory(2)
    for line in lines:
        nfs.tell(line)
    code, findings = check(*nfs.mounts)
    assert code == 0, [f for f in findings if f["verdict"] not in ("good", "note")]
    where = {f["volume"] for f in findings}
    assert where == {str(nfs.mounts[0]), str(nfs.mounts[1]), f"{nfs.mounts[0]} seen from {nfs.mounts[1]}",
                     f"{nfs.mounts[1]} seen from {nfs.mounts[0]}"}
    code, findings = check(nfs.mounts[0])
    assert {f["verdict"] for f in findings if f["property"] == "remove while open"} == {"note"}, "a silly rename"


def test_a_server_that_fails_is_not_taken_for_a_bad_one(nfs_factory):
    nfs = nfs_factory(1)
    nfs.tell("fail * fsync EIO 5 *")
    code, findings = check(nfs.mounts[0])
    assert code == 1 and {f["property"] for f in findings if f["verdict"] == "bad"} <= {"fsync"}


def test_a_copy_of_the_volume_is_turned_away(cluster_factory, tmp_path):
    """A restored snapshot, or a mount of another server: all files are there, and nobody writes them."""
    cluster = cluster_factory(2)
    cluster.create_well("t", partitions=4)
    copy = tmp_path / "copy"
    shutil.copytree(cluster.data, copy)
    stranger = cluster.make(3, {"log.dirs": str(copy)})
    with pytest.raises(BrokerError):
        stranger.start()
    stranger.kill()
    assert "what another broker has just synced is not here" in stranger.log()
    assert cluster.members() == {1, 2}
    cluster.add(3).start()
    cluster.await_members({1, 2, 3})
    assert not list((cluster.data / "__check").iterdir())


def test_what_is_not_checked_is_not_proven(cluster_factory):
    cluster = cluster_factory(2, {"kaas.volume.check": "off"})
    assert not (cluster.data / "__check").exists()
