"""Who lacked what others had: what a queue was owed, divided among those that borrowed from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from scheduler.domain.timelines import Data
from scheduler.domain.usage import DAY, UNCOUNTED, moment_at, unit_of
from scheduler.models import StarvedRow
from scheduler.services.usage.additions import add_amounts

_KEY: Final = {
    "resource": "text",
    "at": "timestamptz",
    "lender": "text",
    "borrower": "text",
}

Stretches = Mapping[str, Iterable[tuple[int, int, Data]]]


def add_starved(figures: Stretches, loans: Stretches, leaves: Iterable[str]) -> None:
    """What a queue was owed at a time is laid at those that borrowed from it then, the largest
    loan first.
    """
    found: Counter[tuple[Any, ...]] = Counter()
    for queue in leaves:
        lent = [stretch for stretch in loans.get(queue, ()) if stretch[2].get("to")]
        if not lent:
            continue
        for start, end, data in figures.get(queue, ()):
            for since, until, loan in lent:
                seconds = min(end, until) - max(start, since)
                if seconds > 0:
                    day = moment_at(max(start, since) // DAY * DAY)
                    for (resource, borrower), amount in _pairs(data, loan["to"]).items():
                        value = amount * seconds // unit_of(resource)
                        found[resource, day, queue, borrower] += value
    add_amounts(StarvedRow, _KEY, "amount", found)


def _pairs(data: Data, lent: Mapping[str, int]) -> dict[tuple[str, str], int]:
    left = owed_by_resource(data)
    found: dict[tuple[str, str], int] = {}
    for key, amount in sorted(lent.items(), key=lambda one: (-one[1], one[0])):
        resource, _, borrower = key.partition(" ")
        part = min(amount, left.get(resource, 0))
        if part > 0 and resource not in UNCOUNTED:
            found[resource, borrower] = part
            left[resource] -= part
    return found


def owed_by_resource(data: Data) -> dict[str, int]:
    """What a queue lacks of its deserved, as far as its pods ask for it."""
    asked: Mapping[str, int] = data.get("pending", {})
    has: Mapping[str, int] = data.get("allocated", {})
    found = {}
    for resource, amount in data.get("deserved", {}).items():
        lacks = amount - has.get(resource, 0)
        found[resource] = max(0, min(lacks, asked.get(resource, 0)))
    return found
