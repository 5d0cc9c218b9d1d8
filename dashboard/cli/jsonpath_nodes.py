"""The parts of a JSONPath template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class BadTemplate(ValueError):
    """The template cannot be read, or does not fit what it is applied to."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text, a number or a truth value that stands for itself."""

    value: Any


@dataclass(frozen=True, slots=True)
class Field:
    name: str


@dataclass(frozen=True, slots=True)
class Every:
    """`.*`"""


@dataclass(frozen=True, slots=True)
class Everywhere:
    """`..`"""


@dataclass(frozen=True, slots=True)
class Slice:
    """`is_single` for an index, such as `[2]`."""

    begin: int | None
    end: int | None
    step: int | None
    is_single: bool


@dataclass(frozen=True, slots=True)
class Union:
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Without an operator: the left side is there."""

    left: Path
    operator: str = ""
    right: Path = ()


@dataclass(frozen=True, slots=True)
class Word:
    """`range` or `end`."""

    name: str


Node = Text | Field | Every | Everywhere | Slice | Union | Filter | Word
Path = tuple[Node, ...]
