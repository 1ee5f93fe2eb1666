"""Clusters as fixtures: of brokers on one directory, and the same on NFS mounts of their own."""

import pytest
from brokers import cluster_factory  # noqa: F401
from nfs import nfs_cluster, nfs_factory  # noqa: F401


# What says most on NFS; the others run there with --long.
SOON_ON_NFS = {"test_kill_9_of_one_broker", "test_a_freeze_longer_than_the_session",
               "test_administration_survives_the_controller"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if params.get("shared_cluster") == "nfs" and item.originalname not in SOON_ON_NFS:
            item.add_marker(pytest.mark.long)


@pytest.fixture(params=["local", "nfs"])
def shared_cluster(request):
    """`make(count, settings)`: what must hold on a local directory and on NFS."""
    return request.getfixturevalue({"local": "cluster_factory", "nfs": "nfs_cluster"}[request.param])
