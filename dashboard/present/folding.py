"""Which branches of the queue tree are open: down to a level, or opened and closed by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

ALL_LEVELS = 0
_A_SCREENFUL = 60  # rows that one takes in; a larger tree opens folded
_MOST_OFFERED = 6

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Folding:
    """`levels` is how many levels are open, `ALL_LEVELS` for every one.

    Queues that were folded or unfolded by hand come first.
    """

    levels: int
    folded: Collection[str] = ()
    unfolded: Collection[str] = ()

    def folded_rows(self, rows: Collection[Row]) -> set[str]:
        folded: set[str] = set()
        for row in rows:
            if not row["leaf"] and self._is_folded(row):
                folded.add(row["name"])
        return folded

    def _is_folded(self, row: Row) -> bool:
        if row["name"] in self.folded:
            return True
        is_deep = self.levels != ALL_LEVELS and row["depth"] + 1 >= self.levels
        return is_deep and row["name"] not in self.unfolded


def fitting_levels(rows: Collection[Row]) -> int:
    """As many levels as a screen takes, two at least; all of a small tree."""
    if len(rows) <= _A_SCREENFUL:
        return ALL_LEVELS
    per_level = Counter(row["depth"] + 1 for row in rows)
    fitting = collapsed_level(rows)
    shown = 0
    for level in sorted(per_level):
        shown += per_level[level]
        if shown <= _A_SCREENFUL:
            fitting = max(fitting, level)
    return int(fitting)


def collapsed_level(rows: Collection[Row]) -> int:
    """The level at which all is collapsed: the topmost one, or the next if that has one row."""
    top = min((row["depth"] for row in rows), default=0)
    is_single = sum(row["depth"] == top for row in rows) == 1
    return int(top + 1 + is_single)


def offered_levels(rows: Collection[Row]) -> list[int]:
    """The levels between collapsing all and expanding all."""
    deepest = max((row["depth"] + 1 for row in rows), default=1)
    first = collapsed_level(rows)
    return list(range(first + 1, min(deepest, first + _MOST_OFFERED)))
