"""How well a span of time was scheduled, from the database: placements, evictions, and the time of
accelerators that was useful or lost (of CPUs if the cluster has no accelerators).

Decisions are kept for two hours, and finished jobs of the sample for one. So a span of the last
hour is whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import (
    Count,
    DurationField,
    Expression,
    ExpressionWrapper,
    Min,
    QuerySet,
    Sum,
    Value,
)
from django.db.models.functions import Greatest, Least

from scheduler.models import (
    ClusterState,
    Decision,
    Eviction,
    Pod,
    PodClass,
    SchedulingSession,
)
from scheduler.selectors.cluster.evictions import amount_of, measure_of

MOST_GANGS = 10

LONGEST_WHOLE_SPAN = 3600.0
"""Seconds. The jobs of the sample are deleted an hour after they ended, with their pods."""


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
    """What was decided in this time, and what came of it.

    A cluster that is younger is looked at from its first session on.
    """
    span = _Span(_not_before_first_session(since), until)
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


def _not_before_first_session(since: datetime) -> datetime:
    first: datetime | None = SchedulingSession.objects.aggregate(at=Min("started_at"))["at"]
    if first is None:
        return since
    return max(since, first)


@dataclass(frozen=True, slots=True)
class _Span:
    since: datetime
    until: datetime

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


def _placements(span: _Span) -> int:
    return Decision.objects.filter(
        kind=Decision.BIND, created_at__gte=span.since, created_at__lt=span.until
    ).count()


def _evictions(span: _Span) -> QuerySet[Eviction]:
    return Eviction.objects.filter(created_at__gte=span.since, created_at__lt=span.until)


def _evictions_by_action(span: _Span) -> dict[str, int]:
    rows = _evictions(span).order_by().values("action").annotate(pods=Count("id"))
    evictions: dict[str, int] = {}
    for row in rows.order_by("action"):
        evictions[row["action"]] = row["pods"]
    return evictions


def _most_evicted(span: _Span) -> list[tuple[str, int]]:
    rows = (
        _evictions(span)
        .order_by()
        .values("podgroup_name")
        .annotate(times=Count("session_number", distinct=True))
        .order_by("-times", "podgroup_name")
    )
    evicted: list[tuple[str, int]] = []
    for row in rows[:MOST_GANGS]:
        evicted.append((row["podgroup_name"], row["times"]))
    return evicted


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
    return _spent(span, measured_in, ended, Least("finished_at", Value(span.until)))


def _unfinished(span: _Span, measured_in: str) -> float:
    running = Pod.objects.filter(phase="Running", started_at__lt=span.until)
    return _spent(span, measured_in, running, Value(span.until))


def _spent(span: _Span, measured_in: str, pods: QuerySet[Pod], end: Expression) -> float:
    """The time of these pods from the beginning of the span, or their own, to this end.

    Summed by class of pods: there are few of those, and many pods.
    """
    ran = ExpressionWrapper(end - Greatest("started_at", Value(span.since)), DurationField())
    rows = pods.order_by().values("pod_class").annotate(ran=Sum(ran))
    seconds = {}
    for row in rows:
        seconds[row["pod_class"]] = row["ran"].total_seconds()
    spent = 0.0
    for pod_class in PodClass.objects.filter(pk__in=seconds):
        spent += amount_of(pod_class.requests, measured_in) * seconds[pod_class.pk]
    return spent
