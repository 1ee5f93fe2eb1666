"""Rules about the project as a whole. Each takes all sources and yields (path, line, message)."""

import re

from rules import README_LINES

PROJECT_RULES = {}


def rule(function):
    PROJECT_RULES[function.__name__.replace("_", "-")] = function
    return function


def modules(sources):
    return sorted({source.module for source in sources if source.module})


@rule
def module_readme(sources):
    """Every module says what it owns, in a page."""
    by_path = {source.path: source for source in sources}
    for module in modules(sources):
        path = f"src/{module}/README.md"
        if path not in by_path:
            yield path, 1, "every module needs a README"
        elif len(by_path[path].lines) > README_LINES:
            yield path, 1, f"a module's README has at most {README_LINES} lines"


@rule
def built(sources):
    """A source that no CMakeLists.txt names compiles nowhere and rots."""
    lists = {source.path: source.text for source in sources if source.path.endswith("CMakeLists.txt")}
    for source in sources:
        if source.module and source.path.endswith(".cc"):
            name = source.path.removeprefix(f"src/{source.module}/")
            if not re.search(rf"(?<![\w/.]){re.escape(name)}\b",
                             lists.get(f"src/{source.module}/CMakeLists.txt", "")):
                yield source.path, 1, f"not named in src/{source.module}/CMakeLists.txt"


@rule
def decisions(sources):
    """docs/decisions/README.md lists every decision, and only those."""
    index = next((s for s in sources if s.path == "docs/decisions/README.md"), None)
    if index is None:
        return
    there = {s.path.rsplit("/", 1)[1] for s in sources
             if re.fullmatch(r"docs/decisions/\d{4}-[\w-]+\.md", s.path)}
    listed = set(re.findall(r"\((\d{4}-[\w-]+\.md)\)", index.text))
    for name in sorted(there ^ listed):
        where = "is not in the index" if name in there else "is in the index but not there"
        yield index.path, 1, f"{name} {where}"


@rule
def links(sources):
    """A relative link in a document leads somewhere."""
    paths = {source.path for source in sources}
    folders = {path.rsplit("/", 1)[0] for path in paths if "/" in path}
    folders |= {"/".join(folder.split("/")[:n]) for folder in folders
                for n in range(1, folder.count("/") + 1)}
    for source in sources:
        if not source.path.endswith(".md"):
            continue
        for number, line in enumerate(source.lines, 1):
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
                if "://" in target or target.startswith("mailto:"):
                    continue
                resolved = _resolve(source.path, target)
                if resolved not in paths and resolved not in folders and resolved != "":
                    yield source.path, number, f"link to {target}, which is not there"


@rule
def citations(sources):
    """"DESIGN 7" and "DESIGN rule 7" in a comment lead to docs/design.md; whoever reads it has nothing else."""
    book = next((source for source in sources if source.path == "docs/design.md"), None)
    text = book.text if book else ""
    rules = re.search(r"^## 2\..*?(?=^## 3\.|\Z)", text, re.DOTALL | re.MULTILINE)
    there = {"section": set(re.findall(r"^## (\d+)\.", text, re.MULTILINE)),
             "rule": set(re.findall(r"^(\d+)\. ", rules.group() if rules else "", re.MULTILINE))}
    # A comment may break the line within a citation.
    gap = r"(?:\s|//+|#)+"
    numbers = rf"\d+(?:(?:,|{gap}and){gap}\d+)*"
    for source in sources:
        for found in re.finditer(rf"\bDESIGN{gap}(?:(section|rule)s?{gap})?({numbers})", source.text):
            kind = found[1] or "section"
            for number in re.findall(r"\d+", found[2]):
                if number not in there[kind]:
                    line = source.text.count("\n", 0, found.start()) + 1
                    yield source.path, line, f"docs/design.md has no {kind} {number}"


def _resolve(path, target):
    parts = path.split("/")[:-1]
    for step in target.rstrip("/").split("/"):
        if step == "..":
            parts = parts[:-1]
        elif step != ".":
            parts.append(step)
    return "/".join(parts)
