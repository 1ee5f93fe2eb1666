"""Goal: each rule catches what it is for and leaves good code alone.

Method: for every rule at least one sample that breaks it and one that is close but right; a rule
without samples fails too. Then the tool as a whole, on small projects of its own.
"""

import subprocess
import textwrap

import pytest

import project_rules
import rules
import tidy
from sources import Source

LONG_FUNCTION = "int f(int a) {\n" + "    g();\n" * 60 + "}\n"
LONG_METHOD = "namespace n {\nclass A {\npublic:\n    int f() const {\n" + "    g();\n" * 60 + "    }\n};\n}\n"

# rule, path, text; the samples stand where their module would.
BAD = [
    ("layers", "src/wire/a.cc", '#include "storage/volume.h"\n'),
    ("layers", "src/wire/a.cc", '#include "frame.h"\n'),
    ("layers", "src/base/a_test.cc", '#include "net/exchange.h"\n'),
    ("own-header-first", "src/wire/a.cc", '#include "base/b.h"\n#include "wire/a.h"\n'),
    ("pragma-once", "src/wire/a.h", "int f();\n"),
    ("pragma-once", "src/wire/a.h", "// #pragma once\n"),
    ("asio-header", "src/broker/a.cc", "#include <boost/asio.hpp>\n"),
    ("sockets", "src/broker/a.cc", "#include <sys/socket.h>\n"),
    ("sockets", "src/broker/a.h", "#include <boost/asio/ip/tcp.hpp>\n"),
    ("todo", "src/wire/a.cc", "// TODO: later\n"),
    ("todo", "docs/a.md", "TODO(somebody): write\n"),
    ("detached", "src/net/a.cc", "co_spawn(x, f(), asio::detached);\n"),
    ("detached", "src/net/a.cc", "thread.detach();\n"),
    ("mutex", "src/net/a.h", "std::mutex lock_;\n"),
    ("mutex", "src/net/a.h", "std::unique_lock<base::Mutex> lock;\n"),
    ("mutex", "src/net/a.h", "std::condition_variable_any ready_;\n"),
    ("clock", "src/net/a.cc", "auto t = std::chrono::steady_clock::now();\n"),
    ("clock", "src/net/a_test.cc", "std::this_thread::sleep_for(1ms);\n"),
    ("clock", "src/net/a.cc", "auto t = time(nullptr);\n"),
    ("clock", "src/net/a.cc", "::sleep(1);\n"),
    ("files", "src/broker/a.cc", "int fd = ::open(path, O_RDONLY);\n"),
    ("files", "src/broker/a.cc", "std::ifstream in(path);\n"),
    ("files", "src/storage/a.cc", "std::filesystem::remove(path);\n"),
    ("files", "src/storage/a.cc", "if (::fdatasync(fd) != 0) return;\n"),
    ("catch-all", "src/net/a.cc", "try { f(); } catch (...) {}\n"),
    ("machine", "docs/a.md", "see /home/someone/notes\n"),
    ("machine", "tests/a.py", "get('https://pypi.org/simple')\n"),
    ("text", "docs/a.md", "trailing \n"),
    ("text", "docs/a.md", "no end"),
    ("function-length", "src/wire/a.cc", LONG_FUNCTION),
    ("function-length", "src/wire/a.h", LONG_METHOD),
    ("function-length", "tools/a.py", "def f():\n" + "    g()\n" * 60),
    ("file-length", "src/wire/a.cc", "int a;\n" * 601),
]

GOOD = [
    ("layers", "src/wire/a.cc", '#include "base/bytes.h"\n#include "wire/b.h"\n#include <zlib.h>\n'),
    ("layers", "src/wire/a.cc", '// #include "storage/volume.h"\n'),
    ("layers", "tests/a.cc", '#include "anything.h"\n'),
    ("own-header-first", "src/wire/a.cc", '#include "wire/a.h"\n\n#include "base/b.h"\n'),
    ("own-header-first", "src/wire/a.cc", '#include "base/b.h"\n'),
    ("pragma-once", "src/wire/a.h", "/// Words.\n#pragma once\n"),
    ("asio-header", "src/broker/a.cc", "#include <boost/asio/awaitable.hpp>\n"),
    ("asio-header", "src/net/a.cc", "#include <boost/asio.hpp>\n"),
    ("sockets", "src/net/a.cc", "#include <sys/socket.h>\n"),
    ("sockets", "src/broker/a_test.cc", "#include <sys/socket.h>\n"),
    ("todo", "src/wire/a.cc", "// TODO(#12): answer v3 too\n"),
    ("detached", "src/net/a.cc", "// nothing here is detached\nlog(\"detached\");\n"),
    ("mutex", "src/net/a.h", "base::Mutex mutex_; // not std::mutex\n"),
    ("clock", "src/net/a.cc", "auto t = clock.now(); auto s = entry.time(0); f(lifetime(1));\n"),
    ("files", "src/broker/a.cc", "volume.open(path); file.read(x); std::rename_policy(x);\n"),
    ("files", "src/storage/a_test.cc", "std::filesystem::remove_all(directory);\n"),
    ("catch-all", "src/net/a.cc", "try { f(); } catch (const std::exception& e) {}\n"),
    ("machine", "docs/a.md", "data in ${HOME}/work/x and ./root/file and https://example.com/home/x\n"),
    ("text", "docs/a.md", "fine\n"),
    ("text", "src/wire/corpus/batch/torn", "no end "),
    ("function-length", "src/wire/a.cc", "int f() {\n" + "    g();\n" * 58 + "}\n"),
    ("function-length", "src/wire/a.cc",
     "namespace n {\n" + "int f(int a) { return a; }\nint g();\n" * 50 + "}\n"),
    ("function-length", "src/wire/a_test.cc", LONG_FUNCTION),
    ("function-length", "src/wire/a.cc", "const int table[] = {\n" + "    f(1),\n" * 90 + "};\n"),
    ("file-length", "src/wire/a.cc", "int a;\n" * 600),
    ("file-length", "docs/a.md", "words\n" * 601),
]


def lines_found(rule, path, text):
    return [line for line, _ in rules.RULES[rule](Source(path, text))]


@pytest.mark.parametrize("rule, path, text", BAD)
def test_bad_is_caught(rule, path, text):
    assert lines_found(rule, path, text)


@pytest.mark.parametrize("rule, path, text", GOOD)
def test_good_passes(rule, path, text):
    assert lines_found(rule, path, text) == []


def test_every_rule_has_a_bad_and_a_good_sample():
    assert {row[0] for row in BAD} == {row[0] for row in GOOD} == set(rules.RULES)


def test_findings_name_the_line_after_strings_and_comments():
    text = '/* one\n two */\nauto s = R"(\nstd::mutex\n)";\nchar c = \'"\';\nstd::mutex m;\n'
    assert lines_found("mutex", "src/net/a.cc", text) == [7]


def test_digit_separators_are_not_characters():
    text = "int a = 1'000;\nstd::mutex m;\nint b = 2'000;\n"
    assert lines_found("mutex", "src/net/a.cc", text) == [2]


CMAKE = "kaas_library(wire SOURCES a.cc)\n"

BOOK = "## 1. A\n1. no rule\n## 2. B\n1. one\n2. two\n\n## 3. C\n3. no rule\n"

PROJECTS = [
    # rule, files that break it, files that do not
    ("module-readme", {"src/wire/a.h": ""}, {"src/wire/a.h": "", "src/wire/README.md": "# wire\n"}),
    ("module-readme", {"src/wire/README.md": "x\n" * 50}, {"src/wire/README.md": "x\n" * 20}),
    ("built", {"src/wire/CMakeLists.txt": CMAKE, "src/wire/aa.cc": ""},
     {"src/wire/CMakeLists.txt": CMAKE, "src/wire/a.cc": ""}),
    ("decisions", {"docs/decisions/README.md": "", "docs/decisions/0001-a.md": ""},
     {"docs/decisions/README.md": "[a](0001-a.md)", "docs/decisions/0001-a.md": ""}),
    ("decisions", {"docs/decisions/README.md": "[a](0001-a.md)"}, {"docs/decisions/README.md": ""}),
    ("links", {"docs/a.md": "[b](../b.md)"}, {"docs/a.md": "[b](../b.md#part)", "b.md": ""}),
    ("links", {"README.md": "[b](src/x)"}, {"README.md": "[b](src/wire/)", "src/wire/a/b.h": ""}),
    ("citations", {"src/wire/a.h": "/// As DESIGN 2 says."}, {"src/wire/a.h": "/// BY DESIGN, since 2020."}),
    ("citations", {"docs/design.md": BOOK, "a.md": "sections: DESIGN sections 1, 2 and 4"},
     {"docs/design.md": BOOK, "a.md": "DESIGN sections 1, 2 and 3; DESIGN 1, and 9 more"}),
    ("citations", {"docs/design.md": BOOK, "src/wire/a.cc": "// (DESIGN\n// rule 3)"},
     {"docs/design.md": BOOK, "src/wire/a.cc": "// (DESIGN\n/// rule 2)\n# DESIGN 3: words"}),
]


@pytest.mark.parametrize("rule, bad, good", PROJECTS)
def test_project_rules(rule, bad, good):
    def findings(files):
        return list(project_rules.PROJECT_RULES[rule]([Source(*file) for file in files.items()]))
    assert findings(bad)
    assert findings(good) == []


def test_every_project_rule_has_a_sample():
    assert {row[0] for row in PROJECTS} == set(project_rules.PROJECT_RULES)


@pytest.fixture
def project(tmp_path):
    """A function that lays files in a new git repository and runs tidy on it."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def run(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(textwrap.dedent(text))
        return tidy.main(["--root", str(tmp_path)])
    return run


def test_a_finding_fails_the_run_and_an_exception_lets_it_pass(project, capsys):
    assert project({"a.h": "int a;\n"}) == 1
    assert "a.h:1: pragma-once: " in capsys.readouterr().out
    assert project({"tools/tidy/exceptions.tsv": "pragma-once\t*.h\ta reason\n"}) == 0


def test_an_exception_that_nothing_needs_is_a_finding(project, capsys):
    assert project({"tools/tidy/exceptions.tsv": "mutex\tsrc/net/gone.cc\tan old reason\n"}) == 1
    assert "mutex src/net/gone.cc" in capsys.readouterr().out


def test_a_generated_file_out_of_step_is_a_finding(project, capsys):
    assert project({"tools/tidy/generated.tsv": "docs/a.md\tsh -c 'echo line 3 differs; exit 1'\n"}) == 1
    assert "docs/a.md:1: generated: " in capsys.readouterr().out
    assert project({"tools/tidy/generated.tsv": "docs/a.md\ttrue\n"}) == 0
