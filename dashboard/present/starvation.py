"""Starved queues: their jobs wait for something of which the queue has less than it deserves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from dashboard.present.amounts import short_name, shown, unit, with_unit
from dashboard.present.bars import Span, bar_html, rectangles, scaled
from scheduler.selectors.queues.listing import QueueBoard, QueueRow


@dataclass(frozen=True, slots=True, order=True)
class Gap:
    """What a queue deserves and does not have of the resource that its jobs wait for."""

    share: float
    queue: str
    state: str
    resource: str
    amount: int
    allocated: int
    promised: int
    deserved: int


def starved(board: QueueBoard) -> list[dict[str, Any]]:
    """Leaf queues that lack something, the widest gap first (as a share of what they deserve)."""
    found = []
    for row in filter(is_starved, board.rows):
        found.append(sorted(gaps(row), reverse=True))
    found.sort(key=lambda lacking: (-lacking[0].share, lacking[0].queue))
    return [_line(lacking) for lacking in found]


def is_starved(row: QueueRow) -> bool:
    return row.is_leaf and next(gaps(row), None) is not None


def gaps(row: QueueRow) -> Iterator[Gap]:
    """Only jobs that wait for room count, not those that cannot run or wait for a queue's limit."""
    if row.figures is None:
        return
    for resource, wanted in row.figures.lacking.items():
        deserved = row.figures.deserved.amount(resource)
        allocated = row.figures.allocated.amount(resource)
        promised = row.figures.promised.amount(resource)
        amount = min(wanted, deserved - allocated - promised)
        if amount > 0:
            yield Gap(
                amount / deserved,
                row.name,
                row.state,
                resource,
                amount,
                allocated,
                promised,
                deserved,
            )


def _named(resource: str, amount: int) -> str:
    """Bytes carry a unit but no name: "672 Gi memory", where "96 CPU" says of what."""
    if unit(resource):
        return with_unit(resource, amount)
    return f"{shown(resource, amount)} {short_name(resource).lower()}"


def _have_words(gap: Gap) -> str:
    words = (
        f"{shown(gap.resource, gap.allocated)} of {with_unit(gap.resource, gap.deserved)} deserved"
    )
    if gap.promised:
        return f"{words}, {shown(gap.resource, gap.promised)} promised"
    return words


def _line(lacking: list[Gap]) -> dict[str, Any]:
    """The widest gap of a queue as a bar, the others in a word."""
    gap, *others = lacking
    words = _have_words(gap)
    if others:
        also = []
        for other in others:
            also.append(_named(other.resource, other.amount))
        words += f"; also {', '.join(also)}"
    return {
        "name": gap.queue,
        "state": gap.state,
        "gap": _named(gap.resource, gap.amount),
        "text": words,
        "bar": _gap_bar(gap),
    }


def _gap_bar(gap: Gap) -> SafeString:
    have = scaled(gap.allocated, gap.deserved)
    lack = scaled(gap.amount, gap.deserved)
    return bar_html(rectangles([Span("use", 0, have), Span("lack", have, lack)]))
