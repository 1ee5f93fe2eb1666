"""Mounts and hosts as fixtures, and clusters on them."""

from brokers import cluster_factory  # noqa: F401
from chaosfs import chaos  # noqa: F401
from network import network  # noqa: F401
from nfs import nfs, nfs_cluster, nfs_factory  # noqa: F401
