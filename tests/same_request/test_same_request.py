"""kaas answers what Apache 4.4 answers, field by field, but for what differences.tsv lists with its reason."""

import pathlib
import sys
import uuid

import apache
import broker
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases  # noqa: E402,F401
import harness  # noqa: E402

# The first topic of an Apache node may take seconds to get its leader.
pytestmark = pytest.mark.timeout(180)


# Many cases send records of 2023, which must not age while they are compared; others ask for it.
SETTINGS = {
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}


def with_directories(home: pathlib.Path) -> dict:
    one, two, three = (home / name for name in ("one", "two", "three"))
    return SETTINGS | {"log.dirs": f"{one},{two},{three}", "cordoned.log.dirs": f"{three}"}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    home = tmp_path_factory.mktemp("kaas")
    kaas = broker.Broker(home, with_directories(home)).start()
    try:
        with apache.Apache(settings=with_directories(tmp_path_factory.mktemp("apache"))) as node:
            yield node.bootstrap, kaas.bootstrap
        kaas.stop()
    finally:
        kaas.kill()


@pytest.mark.parametrize("name", harness.CASES)
def test_answers_are_apaches(both, name):
    prefix = f"c{uuid.uuid4().hex[:6]}"
    left, right = harness.run(name, both[0], prefix + "a"), harness.run(name, both[1], prefix + "k")
    known = harness.listed()
    new = [row for row in harness.differences(left, right)
           if not any(entry.covers(name, row[0]) for entry in known)]
    assert not new, "\n".join(f"{path}\n    apache: {a}\n    kaas:   {b}" for path, a, b in new)


def test_a_difference_is_seen():
    left = {"0:x.error_code": 0, "0:x.name": "t"}
    assert harness.differences(left, {"0:x.error_code": 3, "0:x.name": "t"}) == [("0:x.error_code", 0, 3)]
    assert harness.differences(left, {"0:x.error_code": 0}) == [("0:x.name", "t", "<absent>")]


def test_every_listed_difference_names_a_case_and_gives_a_reason():
    for entry in harness.listed():
        assert any(entry.covers(name, entry.path.replace("*", "")) or "*" in entry.path
                   for name in harness.CASES), entry
        assert len(entry.reason) > 10, entry
