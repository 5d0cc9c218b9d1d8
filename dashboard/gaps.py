"""Starved queues: they ask for more while they have less than they deserve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dashboard.amounts import short_name, shown, unit, with_unit
from scheduler.selectors.queues import QueueBoard, QueueRow


@dataclass(frozen=True, slots=True, order=True)
class Gap:
    """What a queue lacks of one resource: it deserves it, asks for it and does not have it."""

    share: float
    queue: str
    state: str
    resource: str
    amount: int
    allocated: int
    deserved: int


def starved(board: QueueBoard) -> list[dict[str, Any]]:
    """Leaf queues that lack something, the widest gap first (as a share of what they deserve)."""
    found = [lacking for row in board.rows if row.is_leaf and (lacking := sorted(gaps(row), reverse=True))]
    return [_line(lacking) for lacking in sorted(found, key=lambda lacking: (-lacking[0].share, lacking[0].queue))]


def is_starved(row: QueueRow) -> bool:
    return row.is_leaf and next(gaps(row), None) is not None


def gaps(row: QueueRow) -> Iterator[Gap]:
    if row.figures is None:
        return
    for resource, deserved in row.figures.deserved.items():
        allocated = row.figures.allocated.amount(resource)
        amount = min(deserved, row.figures.request.amount(resource)) - allocated
        if amount > 0:
            yield Gap(amount / deserved, row.name, row.state, resource, amount, allocated, deserved)


def _named(resource: str, amount: int) -> str:
    """Bytes carry a unit but no name: "672 Gi memory", where "96 CPU" says of what."""
    return with_unit(resource, amount) if unit(resource) else f"{shown(resource, amount)} {short_name(resource).lower()}"


def _line(lacking: list[Gap]) -> dict[str, Any]:
    """The widest gap of a queue as a bar, the others in a word."""
    gap, *others = lacking
    also = ", ".join(_named(other.resource, other.amount) for other in others)
    return {
        "name": gap.queue,
        "state": gap.state,
        "gap": _named(gap.resource, gap.amount),
        "text": f"{shown(gap.resource, gap.allocated)} of {with_unit(gap.resource, gap.deserved)} deserved"
        + (f"; also {also}" if also else ""),
        "have": 1000 * gap.allocated // gap.deserved,
        "lack": 1000 * gap.amount // gap.deserved,
    }
