"""What changed between two versions: field by field for objects, line by line for texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """One field; None stands for "not there"."""

    field: str
    before: str | None
    after: str | None


def differences(before: Any, after: Any) -> list[Difference]:
    """Only what differs, by path, in the order of the fields."""
    old = dict(_leaves("", before))
    new = dict(_leaves("", after))
    found = []
    for path in {**old, **new}:
        if old.get(path) != new.get(path):
            found.append(Difference(path, old.get(path), new.get(path)))
    return found


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}".lstrip("."), inner)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for place, inner in enumerate(value):
            yield from _leaves(f"{path}[{place}]", inner)
    elif value is not None and value != "":  # an empty text is as good as none
        yield path or "value", _words(value)


def _words(value: Any) -> str:
    if isinstance(value, bool):
        if value:
            return "yes"
        return "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if value == {}:
        return "none"
    return str(value)


@dataclass(frozen=True, slots=True)
class Line:
    kind: str  # same, added, removed, place
    text: str


_KINDS = {"+": "added", "-": "removed", "@": "place"}


def line_differences(before: str, after: str) -> list[Line]:
    lines = []
    found = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3))
    for text in found[2:]:
        kind = _KINDS.get(text[:1], "same")
        if kind != "place":
            text = text[1:]
        lines.append(Line(kind, text))
    return lines
