"""What queues deserved, borrowed, lent and were owed between two marks, out of their samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from scheduler.domain.queues import ROOT
from scheduler.domain.timelines import Data, Point
from scheduler.domain.usage import HOUR, UNCOUNTED, moment_at, unit_of
from scheduler.models import LoanSample, Queue, QueueSample
from scheduler.selectors.records.history import as_points
from scheduler.services.records.rollup import Level, standing_at
from scheduler.services.usage.starved import add_starved, owed_by_resource
from scheduler.services.usage.sums import Sums

_MINUTES: Final = Level(QueueSample.MINUTE, QueueSample.MINUTE, 1, 3600)
_LOAN_MINUTES: Final = Level(QueueSample.MINUTE, QueueSample.MINUTE, 1, 3600, LoanSample)
_LONGEST: Final = 24 * HOUR
"""Minutes are kept for a day: what nobody looked at for longer is not known."""

_Stretch = tuple[int, int, Data]  # from, to, and what held between


def add_shares(sums: Sums, start: int, end: int) -> None:
    start = max(start, end - _LONGEST)
    leaves = _leaves()
    figures = _stretches(_MINUTES, start, end)
    loans = _stretches(_LOAN_MINUTES, start, end)
    for name, stretches in figures.items():
        if name == ROOT:
            _add(sums, "", stretches, _capacity)
        elif name in leaves:
            _add(sums, name, stretches, _figures_of_queue)
    for name, stretches in loans.items():
        if name in leaves:
            _add(sums, name, stretches, _loans_of_queue)
    add_starved(figures, loans, leaves)


def _leaves() -> set[str]:
    """Queues that hold pods themselves: the sums of all queues are those of the cluster."""
    rows = Queue.objects.values_list("pk", "name", "parent_id")
    parents = {parent for _, _, parent in rows}
    return {name for pk, name, _ in rows if pk not in parents}


def _add(sums: Sums, queue: str, stretches: Iterable[_Stretch], figures: Any) -> None:
    for start, end, data in stretches:
        hour = start // HOUR * HOUR
        for figure, resource, amount in figures(data):
            if resource not in UNCOUNTED:
                value = amount * (end - start) // unit_of(resource)
                sums.add_queue(queue, hour, resource, figure, value)


def _capacity(data: Data) -> Iterator[tuple[str, str, int]]:
    for resource, amount in data.get("deserved", {}).items():
        yield "deserved", resource, amount


def _figures_of_queue(data: Data) -> Iterator[tuple[str, str, int]]:
    """Owed is what a queue lacks of its deserved, as far as its pods ask for it."""
    for resource, amount in data.get("deserved", {}).items():
        yield "deserved", resource, amount
    for resource, amount in owed_by_resource(data).items():
        yield "owed", resource, amount


def _loans_of_queue(data: Data) -> Iterator[tuple[str, str, int]]:
    for figure in ("borrowed", "lent"):
        for resource, amount in data.get(figure, {}).items():
            yield figure, resource, amount


def _stretches(level: Level, start: int, end: int) -> dict[str, list[_Stretch]]:
    """By queue: what held from when to when, cut at whole hours."""
    first = moment_at(start)
    points: dict[str, list[Point]] = {}
    for name, data in standing_at(first, level).items():
        points[name] = [(start, data)]
    rows = level.model.objects.filter(
        seconds=QueueSample.MINUTE, at__gte=first, at__lt=moment_at(end)
    )
    for name, at, data in rows.order_by("at").values_list("queue_name", "at", "data"):
        points.setdefault(name, []).extend(_points(at, data))
    return {name: list(_cut(known, end)) for name, known in points.items()}


def _points(at: datetime, data: Data) -> Iterable[Point]:
    return as_points(at, QueueSample.MINUTE, data)


def _cut(points: Sequence[Point], end: int) -> Iterator[_Stretch]:
    ends = [*(int(at) for at, _ in points), end][1:]
    for (at, data), until in zip(points, ends, strict=True):
        start = int(at)
        until = min(until, end)
        while start < until:
            stop = min(until, start // HOUR * HOUR + HOUR)
            yield start, stop, data
            start = stop
