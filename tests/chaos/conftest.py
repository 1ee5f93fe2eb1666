"""The mounts as fixtures."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from chaosfs import chaos  # noqa: E402, F401
from nfs import nfs, nfs_factory  # noqa: E402, F401
