"""What every Python test of the project shares: --long, and the broker as a fixture."""

import pytest

pytest_plugins = ["broker"]


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the tests marked long too")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--long"):
        skip = pytest.mark.skip(reason="runs with --long")
        for item in items:
            if "long" in item.keywords:
                item.add_marker(skip)
