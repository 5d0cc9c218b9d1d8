"""`-o jsonpath=…` and `-o custom-columns=…`: answers in a form of one's own, as in kubectl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dashboard.cli.jsonpath import Template
from dashboard.cli.jsonpath_nodes import BadTemplate
from dashboard.cli.jsonpath_values import go_text
from dashboard.cli.problems import ExitCode, Problem, usage

_LONGEST_FILE: Final = 1_000_000
_GAP: Final = 3
_NARROWEST: Final = 6


class OwnForm(str):
    """Stands where `-o json` stands, and says what is made of the JSON."""

    __slots__ = ()

    def text_for(self, value: Any) -> str:
        raise NotImplementedError


class JsonPathForm(OwnForm):
    __slots__ = ("_template",)
    _template: Template

    def __new__(cls, template: str) -> JsonPathForm:
        form = super().__new__(cls, "json")
        form._template = _read(template, "jsonpath")
        return form

    def text_for(self, value: Any) -> str:
        return _apply(lambda: self._template.text_for(value), "jsonpath")


class ColumnsForm(OwnForm):
    """One line for each object of a list."""

    __slots__ = ("_columns",)
    _columns: list[tuple[str, Template]]

    def __new__(cls, columns: Sequence[tuple[str, str]]) -> ColumnsForm:
        form = super().__new__(cls, "json")
        form._columns = [(title, _read(_relaxed(path), title)) for title, path in columns]
        return form

    def text_for(self, value: Any) -> str:
        rows = [[title for title, _ in self._columns]]
        for item in _items(value):
            rows.append([self._cell(title, path, item) for title, path in self._columns])
        widths = []
        for column in zip(*rows, strict=True):
            widths.append(max(_NARROWEST, *(len(cell) + _GAP for cell in column)))
        lines = []
        for row in rows:
            padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("".join([*padded[:-1], row[-1]]))
        return "\n".join(lines) + "\n"

    def _cell(self, title: str, path: Template, item: Any) -> str:
        def write() -> str:
            found = path.results(item)
            if not found or not found[0]:
                return "<none>"
            return ",".join(go_text(value) for values in found for value in values)

        return _apply(write, title)


def own_form(text: str) -> OwnForm | None:
    """The form that the text asks for, None where it is none of these. Raises `Problem`."""
    name, equals, argument = text.partition("=")
    if name not in ("jsonpath", "jsonpath-file", "custom-columns", "custom-columns-file"):
        return None
    if not equals or not argument:
        raise usage(f"-o {name} needs a template: -o {name}=…")
    if name == "jsonpath":
        return JsonPathForm(argument)
    if name == "jsonpath-file":
        return JsonPathForm(_content(argument))
    if name == "custom-columns":
        return ColumnsForm(_columns(argument))
    return ColumnsForm(_columns_of_file(_content(argument), argument))


def _read(template: str, where: str) -> Template:
    try:
        return Template(template)
    except BadTemplate as problem:
        raise usage(f"{where}: {problem}.") from None


def _apply(make: Any, where: str) -> str:
    try:
        return str(make())
    except BadTemplate as problem:
        raise Problem(f"{where}: {problem}.", ExitCode.REFUSED) from None


def _content(path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8") as file:
            return file.read(_LONGEST_FILE)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise usage(f"{path} cannot be read: {reason}.") from None


def _columns(text: str) -> list[tuple[str, str]]:
    """`NAME:.metadata.name,WEIGHT:.spec.weight`."""
    columns = []
    for part in _split(text):
        title, colon, path = part.partition(":")
        if not colon or not title or not path:
            raise usage(f"custom-columns: “{part[:60]}” is no column. Write TITLE:PATH.")
        columns.append((title, path))
    return columns


def _split(text: str) -> list[str]:
    """At commas that stand in no brackets."""
    parts = [""]
    depth = 0
    for letter in text:
        depth += (letter in "[{(") - (letter in ")}]")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _columns_of_file(text: str, name: str) -> list[tuple[str, str]]:
    """The titles in the first line, their paths in the second."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or len(lines[0]) != len(lines[1]):
        raise usage(f"{name} must have a line of titles, and a line with as many paths below it.")
    return list(zip(lines[0], lines[1], strict=True))


def _relaxed(path: str) -> str:
    """`metadata.name`, `.metadata.name` and `{.metadata.name}` are the same."""
    inner = path.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1]
    if not inner.startswith((".", "[", "$", "@")):
        inner = f".{inner}"
    return f"{{{inner}}}"


def _items(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        for key in ("items", "results"):
            if isinstance(value.get(key), list):
                return list(value[key])
    if isinstance(value, list):
        return value
    return [value]
