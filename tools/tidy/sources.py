"""Reads tracked files and gives rules what they look at: lines, and C++ with its words taken out."""

import dataclasses
import functools
import pathlib
import re
import subprocess

# A raw string, a string, a character, a line comment or a block comment: whichever begins first.
_NOT_CODE = re.compile(
    r'R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*"
    r"|/\*.*?\*/",
    re.DOTALL)


def _blank(match):
    return "".join(character if character == "\n" else " " for character in match.group())


@dataclasses.dataclass(frozen=True)
class Source:
    """One tracked text file; `path` is relative to the project and uses forward slashes."""

    path: str
    text: str

    @functools.cached_property
    def lines(self):
        return self.text.split("\n")

    @functools.cached_property
    def code(self):
        """The text with strings and comments blanked, line for line (include lines stay)."""
        kept = re.sub(r'^[ \t]*#[ \t]*include[ \t]*"[^"\n]*"', lambda m: m.group().replace('"', "\x00"),
                      self.text, flags=re.MULTILINE)
        return _NOT_CODE.sub(_blank, kept).replace("\x00", '"')

    @property
    def is_cpp(self):
        return self.path.endswith((".cc", ".h"))

    @property
    def is_test(self):
        return self.path.endswith(("_test.cc", "_fuzz.cc"))

    @property
    def module(self):
        """The folder below src/, or None outside it."""
        parts = self.path.split("/")
        return parts[1] if parts[0] == "src" and len(parts) > 2 else None

    def find(self, pattern):
        """Line numbers (from 1) of code that matches."""
        return [self.code.count("\n", 0, m.start()) + 1 for m in re.finditer(pattern, self.code)]


def tracked(root):
    """Every text file that git knows of, new ones that are not ignored included."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=True).stdout.decode().split("\0")
    sources = []
    for path in sorted(filter(None, listed)):
        file = pathlib.Path(root, path)
        if not file.is_file() or file.is_symlink():
            continue
        data = file.read_bytes()
        if b"\0" in data[:4096]:
            continue
        sources.append(Source(path, data.decode("utf-8", errors="replace")))
    return sources
