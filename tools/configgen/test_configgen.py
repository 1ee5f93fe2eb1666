"""Goal: a wrong definition stops the build by its name, and what is called served is read by somebody.
Method: definitions of the test's own, by the generator's command line; the project's against its sources."""

import pathlib
import re
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


def served(tables, scope):
    """(name, field, broker configs that stand in) of every served config, from the generated C++."""
    header = (tables / f"{scope}_settings.h").read_text()
    names = re.findall(r"^    /// ([\w.]+): ", header, re.MULTILINE)
    rows = re.findall(r'BrokerSynonym k(\w+)Synonyms\[\] = \{(.*)\};', (tables / f"{scope}_table.cc").read_text())
    synonyms = {key: re.findall(r'"([\w.]+)"', value) for key, value in rows}
    for name in names:
        yield name, synonyms.get("".join(part.capitalize() for part in name.split(".")), [])


def test_every_served_config_is_read(tmp_path):
    """A config that no code asks for is not served, whatever its definition says. A broker config is
    also read by the topics that inherit it."""
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "configgen" / "configgen.py"), "cpp",
                           str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    code = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.cc")
                     if not path.name.endswith("_test.cc"))

    def is_read(name):
        return re.search(rf"\.{name.replace('.', '_')}\b", code) or f'"{name}"' in code

    topics = list(served(tmp_path, "topic"))
    inherited = {synonym for name, synonyms in topics if is_read(name) for synonym in synonyms}
    brokers = [name for name, _ in served(tmp_path, "broker")]
    assert len(topics) > 10 and len(brokers) > 30
    assert [name for name, _ in topics if not is_read(name)] == []
    assert [name for name in brokers if not is_read(name) and name not in inherited] == []
