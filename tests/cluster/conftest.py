"""Clusters as a fixture."""

from brokers import cluster_factory  # noqa: F401
