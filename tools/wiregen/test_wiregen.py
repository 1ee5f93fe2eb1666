"""The generator refuses definitions that are wrong, by name and line, and knows when docs are stale.

That what it generates is Kafka's protocol is for tests/oracle to say.
"""

import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import cpp
import model


def load(tmp_path, text, name="thing.wire"):
    (tmp_path / name).write_text(text)
    return model.load(tmp_path)


def record(tmp_path, fields, head="record Thing 0-3 flexible 2+"):
    return load(tmp_path, f"{head}\n{fields}\n").standalone[0]


@pytest.mark.parametrize("fault, fields, message", [
    ("an unknown type", "  a int33", "thing.wire:2: no such type: int33"),
    ("a struct that is not defined", "  a []Other", "thing.wire:2: no such type: Other"),
    ("two fields of one name", "  a int8\n  a int16", "thing.wire:3: two fields of one name"),
    ("a tag before the flexible versions", "  a int8 1+ tag 0", "thing.wire:2: a tagged field in versions"),
    ("a gap between tags", "  a int8 2+ tag 0\n  b int8 2+ tag 2", "tags count up from 0"),
    ("null as the default of what is never null", "  a string = null", "null is the default"),
    ("null as the default of what is not always null", "  a string?2+ = null", "null is the default"),
    ("a number that is null", "  a int32?", "int32 cannot be null"),
    ("a range past the message's", "  a int8 9+", "valid in no version of the message"),
    ("a range upside down", "  a int8 3-1", "not a range of versions: 3-1"),
    ("a word too many", "  a int8 nullable", "not understood: nullable"),
    ("a struct defined twice", "  a []S\n    x int8\n  b []S\n    y int8", "struct S is defined twice"),
    ("a line too far left", "    a int8\n  b int8", "indented less than the fields before it"),
])
def test_a_wrong_definition_is_refused(tmp_path, fault, fields, message):
    with pytest.raises(model.DefinitionError, match=message.split(":")[-1].strip()) as caught:
        record(tmp_path, fields)
    assert message in str(caught.value), fault


def test_a_struct_within_itself_is_refused(tmp_path):
    text = "record Thing 0\n  a []S\n\nstruct S of record\n  inner []S\n"
    with pytest.raises(model.DefinitionError, match="S contains itself"):
        load(tmp_path, text)


def test_a_struct_that_nobody_uses_is_refused(tmp_path):
    with pytest.raises(model.DefinitionError, match="struct S is never used"):
        load(tmp_path, "record Thing 0\n  a int8\n\nstruct S of record\n  x int8\n")


def test_an_api_key_defined_twice_is_refused(tmp_path):
    api = "api 1 {}\nrequest 0\n  a int8\nresponse 0\n  a int8\n"
    (tmp_path / "one.wire").write_text(api.format("One"))
    with pytest.raises(model.DefinitionError, match="API key 1 is defined twice"):
        load(tmp_path, api.format("Two"), "two.wire")


def test_an_api_without_a_response_is_refused(tmp_path):
    with pytest.raises(model.DefinitionError, match="one request and one response"):
        load(tmp_path, "api 1 One\nrequest 0\n  a int8\n")


def test_elements_are_counted_at_their_smallest(tmp_path):
    thing = record(tmp_path, "  a []S\n    name string\n    id int32 1+\n    list []int64\n    t int8 2+ tag 0")
    # v0: 2 for the string, 4 for the array; v2: 1, 4, 1 and 1 for the tags.
    assert model.array_element_bytes_min(thing.fields[0], thing) == 6


def test_conditions_say_no_more_than_is_needed():
    inside = model.Range(4, 18)
    assert cpp.condition(model.Range(4, 18), inside) is None
    assert cpp.condition(model.Range(7, 18), inside) == "version >= 7"
    assert cpp.condition(model.Range(4, 12), inside) == "version <= 12"
    assert cpp.condition(model.Range(7, 12), inside) == "version >= 7 && version <= 12"
    assert cpp.condition(model.Range(7, 7), inside) == "version == 7"
    assert cpp.outside(model.Range(7, 12), inside) == "(version < 7 || version > 12)"


def test_names_survive_the_way_there_and_back():
    for name in ("topicId", "enable2Pc", "v3AndBelowTopics", "isrNodes"):
        assert model.camel(model.snake(name[0].upper() + name[1:])) == name
    assert model.pascal("NOT_LEADER_OR_FOLLOWER") == "NotLeaderOrFollower"


def run(*arguments):
    return subprocess.run([sys.executable, HERE / "wiregen.py", *map(str, arguments)],
                          capture_output=True, text=True, check=False)


def test_stale_docs_are_seen(tmp_path):
    page = tmp_path / "api.md"
    where = ("--protocol", ROOT / "protocol", "--out", page)
    assert run("docs", *where, "--check").returncode == 1, "missing"
    assert run("docs", *where).returncode == 0
    assert run("docs", *where, "--check").returncode == 0
    page.write_text(page.read_text().replace("| 1 | Fetch |", "| 1 | Fitch |"))
    assert run("docs", *where, "--check").returncode == 1, "edited"


def test_files_that_did_not_change_keep_their_time(tmp_path):
    where = ("--protocol", ROOT / "protocol", "--out", tmp_path)
    assert run("cpp", *where).returncode == 0
    header = tmp_path / "wire" / "messages" / "fetch.h"
    before = header.stat().st_mtime_ns
    assert run("cpp", *where).returncode == 0
    assert header.stat().st_mtime_ns == before


def test_every_definition_has_a_header_of_its_own_name(tmp_path):
    assert run("cpp", "--protocol", ROOT / "protocol", "--out", tmp_path).returncode == 0
    headers = {path.stem for path in (tmp_path / "wire" / "messages").glob("*.h")}
    definitions = {path.stem for path in (ROOT / "protocol").glob("*.wire")} - {"error_codes"}
    assert headers == definitions
