"""Label selectors as Kubernetes writes them: `team=a,stage!=test,zone in (x,y),!old`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_KEY = r"[A-Za-z0-9][A-Za-z0-9./_-]*"
_VALUE = r"[A-Za-z0-9._-]*"
_REQUIREMENT: Final = re.compile(
    rf"(?P<absent>!) *(?P<gone>{_KEY})"
    rf"|(?P<key>{_KEY})"
    rf"(?: *(?P<sign>==|!=|=) *(?P<value>{_VALUE})| +(?P<word>in|notin) *\((?P<values>[^()]*)\))?"
)
_BETWEEN: Final = re.compile(r" *(?:,|$) *")
_SAID: Final = re.compile(_VALUE)
FORMS: Final = "key=value, key!=value, key in (a,b), key notin (a,b), key or !key, joined by commas"


class NotASelector(ValueError):
    """The text cannot be read as a selector; the message names the part."""


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """What one label must be. `values` is None where it only must be there.

    As in Kubernetes, an object without the label satisfies what is `negated`.
    """

    key: str
    values: tuple[str, ...] | None = None
    negated: bool = False


def parse_selector(text: str) -> tuple[LabelRequirement, ...]:
    """All of these must hold. Raises `NotASelector`."""
    found: list[LabelRequirement] = []
    rest = text.strip()
    place = 0
    while place < len(rest):
        match = _REQUIREMENT.match(rest, place)
        if match:
            end = _BETWEEN.match(rest, match.end())
        else:
            end = None
        if match is None or end is None:
            raise NotASelector(f"“{rest[place : place + 40]}” is not a label selector.")
        found.append(_read_requirement(match))
        place = end.end()
    return tuple(found)


def _read_requirement(match: re.Match[str]) -> LabelRequirement:
    if match["absent"]:
        return LabelRequirement(match["gone"], negated=True)
    if match["word"]:
        return LabelRequirement(
            match["key"],
            _read_values(match["values"]),
            negated=match["word"] == "notin",
        )
    if match["sign"]:
        return LabelRequirement(match["key"], (match["value"],), negated=match["sign"] == "!=")
    return LabelRequirement(match["key"])


def _read_values(text: str) -> tuple[str, ...]:
    values = tuple(part.strip() for part in text.split(","))
    wrong = next((value for value in values if not _SAID.fullmatch(value)), None)
    if wrong is not None:
        raise NotASelector(f"“{wrong[:40]}” is not the value of a label.")
    return values
