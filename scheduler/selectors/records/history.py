"""What a queue had over the last hour, day, week or month, ready to be drawn.

There are at most a few hundred points, whatever the span.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.models import Q
from django.utils import timezone

from scheduler.domain.change_sets import QUEUE
from scheduler.domain.timelines import FIGURES, Point, averages, bands
from scheduler.models import Command, Event, Occurrence, QueueSample

EDITS: Final = ("CreateQueue", "UpdateQueue", "DeleteQueue")
MOST_MARKERS = 200


@dataclass(frozen=True, slots=True)
class Span:
    """`step` is the distance of two points in seconds.

    `coarsest` the longest buckets that are read for it.
    """

    seconds: int
    step: int
    coarsest: int


SPANS: Final = {
    "1h": Span(3600, 60, QueueSample.MINUTE),
    "24h": Span(24 * 3600, 300, QueueSample.MINUTE),
    "7d": Span(7 * 24 * 3600, 3600, QueueSample.HOUR),
    "30d": Span(30 * 24 * 3600, 3 * 3600, QueueSample.HOUR),
}


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch in which the queue had one state."""

    start: float
    end: float
    state: str


@dataclass(frozen=True, slots=True)
class Marker:
    """Something that was done to the queue: `kind` is "command", "edit" or "plan"."""

    at: float
    kind: str
    action: str
    actor: str
    message: str


@dataclass(frozen=True, slots=True)
class QueueHistory:
    """Times are seconds since 1970, amounts base units.

    `series[resource][figure]` has one entry a time, None where nothing is known.

    `since` is when collecting began, None while there is nothing at all.
    """

    queue: str
    span: str
    step: int
    start: float
    end: float
    since: float | None
    times: tuple[float, ...]
    series: dict[str, dict[str, list[int | None]]] = field(default_factory=dict)
    states: tuple[Band, ...] = ()
    markers: tuple[Marker, ...] = ()


class UnknownSpan(ValueError):
    def __init__(self, span: str) -> None:
        super().__init__(f"“{span}” is not a span of history; give one of {', '.join(SPANS)}.")


def queue_history(name: str, span: str = "1h", now: datetime | None = None) -> QueueHistory:
    """What a queue had, its states, and who did what to it.

    The figures are allocated, deserved, guarantee, capability and pending.

    Raises `UnknownSpan`.
    """
    if span not in SPANS:
        raise UnknownSpan(span)
    chosen = SPANS[span]
    end = (now or timezone.now()).timestamp()
    start, edges = steps_of(chosen, end)
    points = points_between(name, chosen.coarsest, start, end)
    series = {}
    if points:
        series = _by_resource(averages(points, edges), len(edges) - 1)
    return QueueHistory(
        queue=name,
        span=span,
        step=chosen.step,
        start=start,
        end=end,
        since=_created_at(name),
        times=tuple(float(edge) for edge in edges[:-1]),
        series=series,
        states=tuple(Band(*band) for band in bands(points, start, end)),
        markers=tuple(_markers_since(name, _to_moment(start))),
    )


def steps_of(span: Span, end: float) -> tuple[float, list[float]]:
    """Where the span begins, and the edges of its steps."""
    start = _floor_to_step(end - span.seconds, span.step) + span.step
    edges = [*range(int(start), int(end) + 1, span.step), end]
    if edges[-1] <= edges[-2]:
        edges = edges[:-1]
    return start, edges


def _floor_to_step(seconds: float, step: int) -> int:
    return int(seconds // step) * step


def _to_moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=timezone.get_default_timezone())


def _by_resource(
    found: dict[str, dict[str, list[int | None]]], length: int
) -> dict[str, dict[str, list[int | None]]]:
    resources: set[str] = set()
    for series in found.values():
        resources.update(series)
    nothing: list[int | None] = [None] * length
    by_resource: dict[str, dict[str, list[int | None]]] = {}
    for resource in sorted(resources):
        by_resource[resource] = {figure: found[figure].get(resource, nothing) for figure in FIGURES}
    return by_resource


def points_between(
    name: str, coarsest: int, start: float, end: float, model: Any = QueueSample
) -> list[Point]:
    """Coarse buckets first, then finer ones, raw samples last.

    Each level goes on where the one before it ends.
    """
    points = list(_points_at_start(name, coarsest, start, model))
    covered = start
    for seconds in _levels_up_to(coarsest):
        rows = model.objects.filter(
            queue_name=name,
            seconds=seconds,
            at__gte=_to_moment(covered),
            at__lte=_to_moment(end),
        )
        for at, data in rows.order_by("at").values_list("at", "data"):
            points += as_points(at, seconds, data)
            covered = at.timestamp() + seconds
    return points


def _levels_up_to(coarsest: int) -> list[int]:
    found: list[int] = []
    for length in (QueueSample.HOUR, QueueSample.MINUTE, QueueSample.RAW):
        if length <= coarsest:
            found.append(length)
    return found


def _points_at_start(name: str, coarsest: int, start: float, model: Any) -> Iterable[Point]:
    """What still holds when the stretch begins: the last word before it."""
    earlier = model.objects.filter(
        queue_name=name, seconds__in=_levels_up_to(coarsest), at__lt=_to_moment(start)
    )
    row = earlier.order_by("-at", "seconds").values_list("at", "seconds", "data").first()
    if row:
        return as_points(*row)
    return ()


def as_points(at: datetime, seconds: int, data: Any) -> Iterable[Point]:
    """A bucket counts with its average, then with its last value until the next one."""
    yield at.timestamp(), data
    if seconds and "last" in data:
        yield at.timestamp() + seconds, data["last"]


def _created_at(name: str) -> float | None:
    first = (
        QueueSample.objects.filter(queue_name=name)
        .order_by("at")
        .values_list("at", flat=True)
        .first()
    )
    if first:
        return first.timestamp()
    return None


def _markers_since(name: str, start: datetime) -> list[Marker]:
    commands = Command.objects.filter(
        target_kind="Queue",
        target_name=name,
        result=Command.DONE,
        executed_at__gte=start,
    )
    edits = Event.objects.filter(kind="Queue", name=name, reason__in=EDITS, last_at__gte=start)
    found = []
    for row in commands[:MOST_MARKERS]:
        if row.executed_at:
            found.append(
                Marker(row.executed_at.timestamp(), "command", row.action, row.actor, row.message)
            )
    found += [_edit_marker(event) for event in edits[:MOST_MARKERS]]
    found += _plan_markers(name, start)
    return sorted(found, key=lambda marker: marker.at)


def _plan_markers(name: str, start: datetime) -> list[Marker]:
    """Where planned changes of the queue began and ended."""
    rows = Occurrence.objects.filter(Q(began_at__gte=start) | Q(ended_at__gte=start))
    found = []
    for row in rows.select_related("plan__change_set").order_by("-pk")[:MOST_MARKERS]:
        if not any(item.key == (QUEUE, name) for item in row.applied):
            continue
        title = row.plan.change_set.name
        actor = row.plan.planned_by
        for at, action, verb in (
            (row.began_at, "BeginPlannedChange", "began"),
            (row.ended_at, "EndPlannedChange", "ended"),
        ):
            if at is not None and at >= start:
                found.append(Marker(at.timestamp(), "plan", action, actor, f"{title} {verb}."))
    return found


def _edit_marker(event: Event) -> Marker:
    actor, _, message = event.message.partition(": ")
    return Marker(event.last_at.timestamp(), "edit", event.reason, actor, message)
