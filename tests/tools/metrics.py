"""How hard the code is to read, in figures.

Run `make metrics`, or `python tests/tools/metrics.py --compare REV`.

Migrations and vendored files are left out. Tests are measured in a column of their own. The figures
say where to look; they are not a target that code should be bent to.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import statistics
import subprocess
import tarfile
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUEUE_FIELDS = ("dequeue_strategy", "guarantee")
"""Two fields of a queue, one that is only kept and one that figures are made of: in how many files
a field is spelled out says how many a new one would touch."""

CODE = ("scheduler/", "dashboard/", "manage.py")
TESTS = ("tests/",)
FULLEST_FOLDERS = 3

Files = Mapping[str, bytes]
"""The content of each file by its path below the root."""

LAYOUT = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Python:
    """What is counted in Python files; `add` reads one more."""

    files: int = 0
    tokens_of_lines: list[int] = field(default_factory=list)
    line_lengths: list[int] = field(default_factory=list)
    function_lengths: list[int] = field(default_factory=list)
    function_names: list[str] = field(default_factory=list)
    statements: int = 0
    comprehensions: int = 0
    ternaries: int = 0

    def add(self, text: str) -> None:
        self.files += 1
        self.tokens_of_lines.extend(tokens_of_lines(text))
        self.line_lengths.extend(line_lengths(text))
        for node in ast.walk(ast.parse(text)):
            self._count(node)

    def _count(self, node: ast.AST) -> None:
        self.statements += isinstance(node, ast.stmt)
        self.comprehensions += isinstance(node, COMPREHENSIONS)
        self.ternaries += isinstance(node, ast.IfExp)
        if isinstance(node, FUNCTIONS):
            self.function_names.append(node.name)
            self.function_lengths.append((node.end_lineno or node.lineno) - node.lineno + 1)


def tokens_of_lines(text: str) -> list[int]:
    """How many tokens start on each line that has any; a comment is none, a text is one."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    counts = Counter(token.start[0] for token in tokens if token.type not in LAYOUT)
    return list(counts.values())


def line_lengths(text: str) -> list[int]:
    """Of all lines that are not empty."""
    return [len(line) for line in text.splitlines() if line.strip()]


def is_one_word(name: str) -> bool:
    return "_" not in name.strip("_")


def percentile(values: Iterable[int], share: float) -> int:
    """The value below which `share` of the values lie; 0 where there are none."""
    ordered = sorted(values)
    if not ordered:
        return 0
    return ordered[int(len(ordered) * share)]


def share_over(lengths: list[int], limit: int) -> float:
    if not lengths:
        return 0.0
    return sum(length > limit for length in lengths) / len(lengths)


def python_files(files: Files, places: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path, content in files.items():
        if path.endswith(".py") and path.startswith(places) and "migrations/" not in path:
            found[path] = content.decode()
    return found


def fullest_folders(paths: Iterable[str]) -> list[tuple[str, int]]:
    """Folders with the most modules that lie in them directly, `__init__` not counted."""
    modules = [path for path in paths if not path.endswith("__init__.py")]
    folders = Counter(path.rpartition("/")[0] for path in modules)
    return folders.most_common(FULLEST_FOLDERS)


def files_that_spell_out(word: str, texts: Iterable[str]) -> int:
    """Files in which the word is a name of the code or a text that consists of it alone."""
    return sum(_spells_out(word, text) for text in texts)


def _spells_out(word: str, text: str) -> bool:
    if word not in text:
        return False
    spellings = {word, f'"{word}"', f"'{word}'"}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return any(token.string in spellings for token in tokens if token.type not in LAYOUT)


def figures_of_python(texts: Mapping[str, str]) -> dict[str, str]:
    counted = Python()
    for text in texts.values():
        counted.add(text)
    per_thousand = 1000 / max(1, counted.statements)
    one_word = sum(map(is_one_word, counted.function_names)) / max(1, len(counted.function_names))
    figures = {
        "Python files": f"{counted.files:,}",
        "lines with something on them": f"{len(counted.line_lengths):,}",
        "tokens a line, median": str(percentile(counted.tokens_of_lines, 0.5)),
        "tokens a line, 90th percentile": str(percentile(counted.tokens_of_lines, 0.9)),
        "lines over 100 characters": as_percent(share_over(counted.line_lengths, 100)),
        "lines over 120 characters": as_percent(share_over(counted.line_lengths, 120)),
        "comprehensions per 1,000 statements": f"{counted.comprehensions * per_thousand:.0f}",
        "ternaries per 1,000 statements": f"{counted.ternaries * per_thousand:.0f}",
        "function names of one word": as_percent(one_word),
        "lines of a function, median": f"{statistics.median(counted.function_lengths or [0]):g}",
    }
    for name in QUEUE_FIELDS:
        figures[f"files that spell out {name}"] = str(files_that_spell_out(name, texts.values()))
    for rank, (folder, modules) in enumerate(fullest_folders(texts), start=1):
        figures[f"modules in the fullest folder, no. {rank}"] = f"{modules} {folder}"
    return figures


def as_percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def figures_of_templates(files: Files) -> dict[str, str]:
    lengths: list[int] = []
    for path, content in files.items():
        if path.startswith("templates/") and path.endswith(".html"):
            lengths.extend(line_lengths(content.decode()))
    return {
        "template lines": f"{len(lengths):,}",
        "template lines over 140 characters": as_percent(share_over(lengths, 140)),
        "template lines over 200 characters": as_percent(share_over(lengths, 200)),
        "longest template line": f"{max(lengths, default=0):,}",
    }


FOR_TESTS_ONLY = "static/vendor/axe-core/"


def figures_of_front_end(files: Files) -> dict[str, str]:
    """In bytes, as the files lie here."""
    sizes: Counter[str] = Counter()
    for path, content in files.items():
        kind = _front_end_kind(path)
        if kind:
            sizes[kind] += len(content)
    names = ("CSS, own", "CSS, vendored", "JavaScript, own", "JavaScript, vendored")
    return {f"bytes of {name}": f"{sizes[name]:,}" for name in names}


def _front_end_kind(path: str) -> str:
    languages = {"css": "CSS", "js": "JavaScript"}
    language = languages.get(path.rpartition(".")[2])
    if language is None or not path.startswith("static/") or path.startswith(FOR_TESTS_ONLY):
        return ""
    owner = "vendored" if path.startswith("static/vendor/") else "own"
    return f"{language}, {owner}"


def figures_of(files: Files) -> dict[str, str]:
    return {
        **figures_of_python(python_files(files, CODE)),
        **figures_of_templates(files),
        **figures_of_front_end(files),
    }


AT_THE_START: Mapping[str, str] = {
    "tokens a line, 90th percentile": "22",
    "lines over 120 characters": "4.8 %",
    "comprehensions per 1,000 statements": "63",
    "ternaries per 1,000 statements": "43",
    "function names of one word": "53 %",
    "files that spell out dequeue_strategy": "some 20",
    "modules in the fullest folder, no. 1": "47 scheduler/services",
    "modules in the fullest folder, no. 2": "45 dashboard",
    "modules in the fullest folder, no. 3": "26 scheduler/engine",
    "template lines over 200 characters": "26 %",
    "longest template line": "1,813",
}
"""What was counted before the rooms were divided by subject."""

OTHERS: Mapping[str, str] = {
    "tokens a line, 90th percentile": "12 to 13",
    "lines over 120 characters": "0.0 to 0.1 %",
    "comprehensions per 1,000 statements": "4 to 26",
    "ternaries per 1,000 statements": "5",
    "function names of one word": "33 to 41 %",
    "template lines over 200 characters": "0.5 to 1.4 %",
}
"""Three projects that are good to read: healthchecks, netbox and distributed."""


def working_tree(root: Path) -> dict[str, bytes]:
    """All files that git knows or would take, as they are on the disk."""
    listed = _git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z").decode()
    paths = [path for path in listed.split("\0") if path]
    return {path: (root / path).read_bytes() for path in paths if (root / path).is_file()}


def revision(root: Path, name: str) -> dict[str, bytes]:
    content = io.BytesIO(_git(root, "archive", "--format=tar", name))
    with tarfile.open(fileobj=content) as archive:
        return dict(_members(archive))


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        content = archive.extractfile(member) if member.isfile() else None
        if content is not None:
            yield member.name, content.read()


def _git(root: Path, *arguments: str) -> bytes:
    done = subprocess.run(
        ["git", *arguments],
        cwd=root,
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout


def as_table(columns: Mapping[str, Mapping[str, str]]) -> str:
    """One line a figure, one column a mapping; the first column decides which figures there are."""
    first = next(iter(columns.values()))
    rows = [["", *columns]]
    for name in first:
        rows.append([name, *(column.get(name, "") for column in columns.values())])
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def _line(cells: list[str], widths: list[int]) -> str:
    first, *others = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join([first, *others]).rstrip()


def main(arguments: list[str] | None = None, show: Callable[[str], object] = print) -> None:
    parser = argparse.ArgumentParser(description="How hard the code is to read, in figures.")
    parser.add_argument("--compare", metavar="REV", help="measure this git revision beside it")
    options = parser.parse_args(arguments)
    files = working_tree(ROOT)
    columns: dict[str, Mapping[str, str]] = {"now": figures_of(files)}
    if options.compare:
        columns[_short(options.compare)] = figures_of(revision(ROOT, options.compare))
    columns["tests"] = figures_of_python(python_files(files, TESTS))
    columns["at the start"] = AT_THE_START
    columns["healthchecks, netbox, distributed"] = OTHERS
    show(as_table(columns))


def _short(name: str) -> str:
    """Full hashes are too wide for a column."""
    return name[:10] if re.fullmatch("[0-9a-f]{11,}", name) else name


if __name__ == "__main__":
    main()
