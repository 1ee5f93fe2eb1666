"""The house rules that a machine can check. Each rule takes a Source and yields (line, message)."""

import ast
import re

# Lowest first: a module includes only itself and what stands before it.
MODULES = ("base wire storage security net telemetry client catalog kube cluster coordinator broker "
           "operator console bin").split()
ASIO_MODULES = {"net", "client", "kube", "telemetry"}

FUNCTION_LINES = 60
TEST_LINES = 100
FILE_LINES = 600
README_LINES = 40

RULES = {}


def rule(function):
    RULES[function.__name__.replace("_", "-")] = function
    return function


def _each(source, pattern, message):
    for line in source.find(pattern):
        yield line, message


def includes(source):
    """(line, quoted name) of every include of ours."""
    for number, line in enumerate(source.code.split("\n"), 1):
        if match := re.match(r'\s*#\s*include\s*"([^"]+)"', line):
            yield number, match.group(1)


@rule
def layers(source):
    """A module includes only modules that stand before it."""
    if source.module not in MODULES or not source.is_cpp:
        return
    for line, name in includes(source):
        owner = name.split("/")[0]
        if "/" not in name or owner not in MODULES:
            yield line, f'"{name}" does not start with a module; include it as "<module>/<file>"'
        elif MODULES.index(owner) > MODULES.index(source.module):
            yield line, f"{source.module}/ stands before {owner}/ and may not include it"


@rule
def own_header_first(source):
    """thing.cc starts with thing.h, which so is known to compile alone."""
    if source.module is None or not source.path.endswith(".cc"):
        return
    own = source.path.removeprefix("src/").removesuffix(".cc") + ".h"
    found = list(includes(source))
    if own in (name for _, name in found) and found[0][1] != own:
        yield found[0][0], f'"{own}" comes first'


@rule
def pragma_once(source):
    if source.path.endswith(".h") and not re.search(r"^#pragma once$", source.code, re.MULTILINE):
        yield 1, "a header needs #pragma once"


@rule
def asio_header(source):
    """The header of all Asio costs seconds a file: only the modules that own sockets take it."""
    if source.is_cpp and source.module and source.module not in ASIO_MODULES:
        yield from _each(source, r"#\s*include\s*<boost/asio\.hpp>",
                         "include the parts of Asio that are used, such as <boost/asio/awaitable.hpp>")


@rule
def sockets(source):
    if source.is_cpp and source.module and source.module not in ASIO_MODULES and not source.is_test:
        yield from _each(source, r"#\s*include\s*<(sys/socket\.h|netinet/tcp\.h|boost/asio/ip/(tcp|udp)\.hpp)>",
                         "sockets belong to net, client, kube and telemetry")


@rule
def todo(source):
    """What is left to do is an issue."""
    for number, line in enumerate(source.lines, 1):
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\): \S)", line):
            yield number, "open work names its issue: TODO(#123): what"


@rule
def detached(source):
    """A detached coroutine or thread loses its exception and outlives its owner."""
    if source.is_cpp and source.module:
        yield from _each(source, r"\bdetached\b|\.detach\(\)",
                         "give it an owner that ends and joins it")


@rule
def mutex(source):
    """-Wthread-safety cannot see the standard library's locks."""
    if source.is_cpp and source.module:
        yield from _each(
            source,
            r"\bstd::(\w*mutex|condition_variable\w*|lock_guard|unique_lock|scoped_lock|shared_lock)\b",
            "use base::Mutex and its annotations")


@rule
def clock(source):
    if source.is_cpp and source.module:
        yield from _each(
            source,
            r"\b(system_clock|steady_clock|high_resolution_clock)::now\b"
            r"|\b(clock_gettime|gettimeofday|nanosleep|usleep|sleep_for|sleep_until)\b"
            r"|(?<![\w.>:])(::|std::)?(time|sleep)\((nullptr|NULL|0|\d+)\)",
            "time comes from base::Clock, and nothing sleeps")


@rule
def files(source):
    """Whatever touches a file can be made to fail by the volume of a test."""
    if source.is_cpp and source.module and not source.is_test:
        yield from _each(
            source,
            r"(?<![\w>.])::(open|openat|creat|read|pread|preadv2?|readv|write|pwrite|pwritev2?|writev"
            r"|fsync|fdatasync|sync_file_range|rename|renameat2?|unlink|unlinkat|mkdir|mkdirat|rmdir"
            r"|ftruncate|truncate|fallocate|link|linkat|symlink|stat|fstat|lstat|statx|opendir|sendfile"
            r"|chmod|fchmod)\("
            r"|\b(fopen|mkstemp|mkdtemp)\(|\bstd::filesystem\b|\bstd::[io]?fstream\b",
            "file operations go through storage::Volume")


@rule
def catch_all(source):
    if source.is_cpp and source.module:
        yield from _each(source, r"\bcatch\s*\(\s*\.\.\.\s*\)",
                         "catch (...) stands only at the root of a thread or task")


@rule
def machine(source):
    """What names one machine or one registry's host breaks on the next machine."""
    hosts = r"repo1\.maven\.org|proxy\.golang\.org|deb\.debian\.org|registry\.npmjs\.org|pypi\.org"
    pattern = rf"(?<![\w.$}}])/(work|root|home)/\w|\b({hosts})\b"
    for number, line in enumerate(source.lines, 1):
        if re.search(pattern, line):
            yield number, "a path of one machine, or the host of a registry"


@rule
def text(source):
    if "/corpus/" in source.path:  # a fuzz target's seeds are whatever they are
        return
    for number, line in enumerate(source.lines, 1):
        if line != line.rstrip():
            yield number, "white space at the end of the line"
    if source.text and not source.text.endswith("\n"):
        yield len(source.lines), "the last line needs its end"


def _cpp_functions(source):
    """(first line, last line, head) of every function body outside of other functions.

    A head is what stands between the last `;`, `{` or `}` and a body's `{`. With parentheses it is a
    function, unless it is inside one: namespaces and classes are entered, all else is passed over.
    """
    code, head_start, opened = source.code, 0, []
    code = re.sub(r"^[ \t]*#.*(?:\\\n.*)*", lambda m: re.sub(r"[^\n]", " ", m.group()), code,
                  flags=re.MULTILINE)
    for match in re.finditer(r"[{};]", code):
        position, mark = match.start(), match.group()
        inside_function = any(kind == "function" for kind, _, _ in opened)
        if mark == "{":
            head = code[head_start:position].strip()
            kind = "function" if "(" in head and not re.match(r"(extern|enum)\b", head) else "scope"
            if re.search(r"[=(,]\s*$", head):
                kind = "value"
            first = code.count("\n", 0, head_start + len(code[head_start:position])
                               - len(code[head_start:position].lstrip())) + 1
            opened.append(("inner" if inside_function else kind, first, head))
        elif mark == "}" and opened:
            kind, first, head = opened.pop()
            if kind == "function":
                yield first, code.count("\n", 0, position) + 1, head
        head_start = position + 1


def _python_functions(source):
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno, node.name


@rule
def function_length(source):
    if source.is_cpp:
        functions = _cpp_functions(source)
    elif source.path.endswith(".py"):
        functions = _python_functions(source)
    else:
        return
    for first, last, head in functions:
        limit = TEST_LINES if source.is_test or "test" in source.path.split("/")[-1] else FUNCTION_LINES
        if last - first + 1 > limit:
            name = re.sub(r"\s+", " ", head)[:60]
            yield first, f"{last - first + 1} lines where {limit} are allowed: {name}"


@rule
def file_length(source):
    if source.path.endswith((".cc", ".h", ".py", ".java", ".go", ".js", ".cmake", ".sh")):
        if len(source.lines) - 1 > FILE_LINES:
            yield 1, f"{len(source.lines) - 1} lines where {FILE_LINES} are allowed"
