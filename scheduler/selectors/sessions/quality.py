"""How well a span of time was scheduled, from the database: placements, evictions, and the time of
accelerators that was useful or lost (of CPUs if the cluster has no accelerators).

Decisions are kept for two hours, and finished jobs of the sample for one. So a span of the last
hour is whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, QuerySet, Sum

from scheduler.domain.resources import Resources, is_accelerator, units_per_one
from scheduler.models import ClusterState, Decision, Eviction, Pod
from scheduler.selectors.cluster.evictions import CORES, measure_of

MOST_GANGS = 10


@dataclass(frozen=True, slots=True)
class Quality:
    """Amounts are accelerators or cores, times seconds: `measured_in` says which."""

    measured_in: str
    seconds: float
    placements: int
    evictions_by_action: dict[str, int]
    most_evicted: list[tuple[str, int]]
    """Gangs, and in how many sessions each of them lost pods."""
    capacity: float
    useful: float
    lost: float
    unfinished: float
    """Of pods that still run."""

    @property
    def evictions(self) -> int:
        return sum(self.evictions_by_action.values())

    @property
    def evictions_per_placement(self) -> float:
        if not self.placements:
            return 0.0
        return self.evictions / self.placements

    def share(self, amount: float) -> float:
        """Of all that there was."""
        if not self.capacity:
            return 0.0
        return amount / self.capacity


def quality_between(since: datetime, until: datetime) -> Quality:
    """What was decided in this time, and what came of it."""
    span = _Span(since, until)
    total = ClusterState.objects.values_list("total", flat=True).get(pk=1)
    measured_in, amount = measure_of(total)
    return Quality(
        measured_in=measured_in,
        seconds=span.seconds,
        placements=_placements(span),
        evictions_by_action=_evictions_by_action(span),
        most_evicted=_most_evicted(span),
        capacity=amount * span.seconds,
        useful=_useful(span, measured_in),
        lost=_lost(span, measured_in),
        unfinished=_unfinished(span, measured_in),
    )


@dataclass(frozen=True, slots=True)
class _Span:
    since: datetime
    until: datetime

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()

    def overlap(self, began: datetime | None, ended: datetime | None) -> float:
        """Seconds of this time between the two moments, 0 if one of them is not known."""
        if began is None or ended is None:
            return 0.0
        first = max(began, self.since)
        last = min(ended, self.until)
        return max(0.0, (last - first).total_seconds())


def _placements(span: _Span) -> int:
    return Decision.objects.filter(
        kind=Decision.BIND, created_at__gte=span.since, created_at__lt=span.until
    ).count()


def _evictions(span: _Span) -> QuerySet[Eviction]:
    return Eviction.objects.filter(created_at__gte=span.since, created_at__lt=span.until)


def _evictions_by_action(span: _Span) -> dict[str, int]:
    rows = _evictions(span).order_by().values("action").annotate(pods=Count("id"))
    return {row["action"]: row["pods"] for row in rows.order_by("action")}


def _most_evicted(span: _Span) -> list[tuple[str, int]]:
    rows = (
        _evictions(span)
        .order_by()
        .values("podgroup_name")
        .annotate(times=Count("session_number", distinct=True))
        .order_by("-times", "podgroup_name")
    )
    return [(row["podgroup_name"], row["times"]) for row in rows[:MOST_GANGS]]


def _lost(span: _Span, measured_in: str) -> float:
    """The running time of pods that were evicted."""
    sums = _evictions(span).aggregate(
        accelerators=Sum("accelerator_seconds"), cores=Sum("core_seconds")
    )
    return float(sums[measured_in] or 0)


def _useful(span: _Span, measured_in: str) -> float:
    """Of pods that ran to their end in this time."""
    ended = Pod.objects.filter(
        phase="Succeeded", finished_at__gte=span.since, started_at__lt=span.until
    )
    spent = 0.0
    for pod in ended.select_related("pod_class"):
        seconds = span.overlap(pod.started_at, pod.finished_at)
        spent += _amount(pod.pod_class.requests, measured_in) * seconds
    return spent


def _unfinished(span: _Span, measured_in: str) -> float:
    running = Pod.objects.filter(phase="Running", started_at__lt=span.until)
    spent = 0.0
    for pod in running.select_related("pod_class"):
        seconds = span.overlap(pod.started_at, span.until)
        spent += _amount(pod.pod_class.requests, measured_in) * seconds
    return spent


def _amount(requests: Resources, measured_in: str) -> float:
    """Accelerators or cores of a pod."""
    if measured_in == CORES:
        return requests.amount("cpu") / units_per_one("cpu")
    found = 0.0
    for name, amount in requests.items():
        if is_accelerator(name):
            found += amount / units_per_one(name)
    return found
