"""Goal: a wrong definition stops the build by its name. Method: definitions of the test's own, by the
generator's command line."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = '''
title = "Log"
["log.roll.ms"]
type = "long"
min = 1
unit = "ms"
help = "A help."
meaning = "served"
source = "LogConfig"
'''


def generate(directory, *command):
    """Runs the generator on `directory`; missing tables are empty."""
    (directory / "broker").mkdir(exist_ok=True)
    for name in ("broker/log.toml", "topic.toml", "group.toml", "client_metrics.toml"):
        if not (directory / name).exists():
            (directory / name).write_text('title = "None"\n')
    return subprocess.run([sys.executable, str(ROOT / "tools" / "configgen" / "configgen.py"),
                           "--definitions", str(directory), *command],
                          capture_output=True, text=True, check=False)


@pytest.fixture
def definitions(tmp_path):
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "log.toml").write_text(GOOD)
    return tmp_path


def test_a_unit_of_time_makes_a_duration_and_no_default_an_optional(definitions):
    done = generate(definitions, "cpp", str(definitions / "out"))
    assert done.returncode == 0, done.stderr
    header = (definitions / "out" / "broker_settings.h").read_text()
    assert "std::optional<std::chrono::milliseconds> log_roll_ms{};" in header


def test_a_second_run_leaves_files_alone(definitions):
    generate(definitions, "cpp", str(definitions / "out"))
    before = {path: path.stat().st_mtime_ns for path in (definitions / "out").iterdir()}
    generate(definitions, "cpp", str(definitions / "out"))
    assert before == {path: path.stat().st_mtime_ns for path in (definitions / "out").iterdir()}


@pytest.mark.parametrize("fault, old, new, said", [
    ("unknown type", '"long"', '"longer"', "type 'longer'"),
    ("unknown unit", 'unit = "ms"', 'unit = "weeks"', "unit 'weeks'"),
    ("unknown field", "min = 1", "minimum = 1", "unknown field 'minimum'"),
    ("missing field", 'source = "LogConfig"', "", "source"),
    ("default of another type", "min = 1", 'default = "1"', "is no long"),
    ("range of a string", '"long"', '"string"', "min and max are for numbers"),
    ("help that is no sentence", "A help.", "a help", "help is a sentence"),
    ("no reason", '"served"', '"none"', "a reason is given"),
    ("needless reason", '"served"', '"served"\nreason = "Why not."', "a reason is given"),
])
def test_a_wrong_definition_is_refused_by_name(definitions, fault, old, new, said):
    (definitions / "broker" / "log.toml").write_text(GOOD.replace(old, new))
    done = generate(definitions, "cpp", str(definitions / "out"))
    assert done.returncode == 1, fault
    assert "log.roll.ms" in done.stderr and said in done.stderr, fault


def test_one_name_in_two_files_is_refused(definitions):
    (definitions / "broker" / "other.toml").write_text(GOOD)
    done = generate(definitions, "cpp", str(definitions / "out"))
    assert done.returncode == 1
    assert "log.roll.ms is defined twice" in done.stderr


def test_a_synonym_that_no_broker_knows_is_refused(definitions):
    topic = GOOD.replace("log.roll.ms", "segment.ms").replace("min = 1", 'broker = ["log.role.ms"]')
    (definitions / "topic.toml").write_text(topic)
    done = generate(definitions, "cpp", str(definitions / "out"))
    assert done.returncode == 1
    assert "segment.ms: log.role.ms is no broker config" in done.stderr
