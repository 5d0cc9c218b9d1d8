"""Records that hold the name of a queue but not its row.

Where a name was used more than once, the time tells which queue is meant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise

from django.db.models import Count, Q

from scheduler.models import Queue


@dataclass(frozen=True, slots=True)
class Use:
    """A name was this queue's from `start` up to `end`; None where it is open."""

    place: str
    start: datetime | None
    end: datetime | None


def records_of(seen: Collection[str], at: str, column: str = "queue_name") -> Q:
    """The records of these queues (places, as of `Access.visible`).

    `at` is the column that says when it happened.
    """
    uses = {}
    for name, own in _reused().items():
        uses[name] = _readable_uses(own, seen)
    wholly_seen = [name for name in seen if uses.get(name) is None]
    found = Q(**{f"{column}__in": sorted(wholly_seen)})
    for name, readable in uses.items():
        for use in readable or ():
            found |= Q(**{column: name}) & _within(use, at)
    return found


def _readable_uses(uses: Sequence[Use], seen: Collection[str]) -> list[Use] | None:
    """The uses that may be read, those that follow each other as one.

    None where all may: then the name alone says it.
    """
    if all(use.place in seen for use in uses):
        return None
    readable: list[Use] = []
    for is_seen, run in groupby(uses, lambda use: use.place in seen):
        if is_seen:
            first, *others = run
            last = others[-1] if others else first
            readable.append(Use(first.place, first.start, last.end))
    return readable


def _within(use: Use, at: str) -> Q:
    times = {f"{at}__gte": use.start, f"{at}__lt": use.end}
    return Q(**{lookup: moment for lookup, moment in times.items() if moment is not None})


def _reused() -> dict[str, list[Use]]:
    """The uses of each name that more than one queue had, in their order."""
    names = (
        Queue.with_deleted.order_by()
        .values("name")
        .annotate(number=Count("pk"))
        .filter(number__gt=1)
        .values("name")
    )
    rows = (
        Queue.with_deleted.filter(name__in=names)
        .only("name", "created_at", "deleted_at")
        .order_by("name", "created_at", "pk")
    )
    return {name: _uses(own) for name, own in groupby(rows, lambda queue: queue.name)}


def _uses(rows: Iterable[Queue]) -> list[Use]:
    queues = list(rows)
    turns: list[datetime | None] = []
    for earlier, later in pairwise(queues):
        turns.append(_between(earlier, later))
    limits = pairwise([None, *turns, None])
    uses: list[Use] = []
    for queue, (start, end) in zip(queues, limits, strict=True):
        uses.append(Use(queue.place, start, end))
    return uses


def _between(earlier: Queue, later: Queue) -> datetime:
    """Half-way: what is noted of a deletion or a creation may be some moments off."""
    deleted_at = earlier.deleted_at or later.created_at
    return deleted_at + (later.created_at - deleted_at) / 2
