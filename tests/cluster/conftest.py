"""Clusters as a fixture."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from brokers import cluster_factory  # noqa: E402, F401
