"""Clusters as fixtures: of brokers on one directory, and the same on NFS mounts of their own."""

import pytest
from brokers import cluster_factory  # noqa: F401
from nfs import nfs_cluster, nfs_factory  # noqa: F401


@pytest.fixture(params=["local", "nfs"])
def shared_cluster(request):
    """`make(count, settings)`: what must hold on a local directory and on NFS."""
    return request.getfixturevalue({"local": "cluster_factory", "nfs": "nfs_cluster"}[request.param])
