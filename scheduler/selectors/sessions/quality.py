"""How well a span of time was scheduled, from the database: placements, evictions, and the time of
one resource that was useful or lost.

Decisions are kept for two hours, and finished jobs of the sample for one. So a span of the last
hour is whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, QuerySet

from scheduler.domain.mixes import GPU
from scheduler.models import Decision, Eviction, Node, Pod

MOST_GANGS = 10


@dataclass(frozen=True, slots=True)
class Quality:
    """Amounts are of `resource`, in its base units times seconds."""

    resource: str
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


def quality_between(since: datetime, until: datetime, resource: str = GPU) -> Quality:
    """What was decided in this time, and what came of it."""
    span = _Span(since, until)
    return Quality(
        resource=resource,
        seconds=span.seconds,
        placements=_decided(Decision.BIND, span).count(),
        evictions_by_action=_evictions_by_action(span),
        most_evicted=_most_evicted(span),
        capacity=_capacity(resource) * span.seconds,
        useful=_useful(span, resource),
        lost=_lost(span, resource),
        unfinished=_unfinished(span, resource),
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


def _decided(kind: str, span: _Span) -> QuerySet[Decision]:
    """Decisions of sessions, without those of cancelled jobs and drained nodes."""
    return Decision.objects.filter(
        kind=kind, session__isnull=False, created_at__gte=span.since, created_at__lt=span.until
    )


def _evictions_by_action(span: _Span) -> dict[str, int]:
    rows = _decided(Decision.EVICT, span).order_by().values("action").annotate(pods=Count("id"))
    return {row["action"]: row["pods"] for row in rows.order_by("action")}


def _most_evicted(span: _Span) -> list[tuple[str, int]]:
    rows = (
        Eviction.objects.filter(created_at__gte=span.since, created_at__lt=span.until)
        .order_by()
        .values("podgroup_name")
        .annotate(times=Count("session_number", distinct=True))
        .order_by("-times", "podgroup_name")
    )
    return [(row["podgroup_name"], row["times"]) for row in rows[:MOST_GANGS]]


def _capacity(resource: str) -> int:
    return sum(node.allocatable.amount(resource) for node in Node.objects.all())


def _useful(span: _Span, resource: str) -> float:
    """Of pods that ran to their end in this time."""
    ended = Pod.objects.filter(
        phase="Succeeded", finished_at__gte=span.since, started_at__lt=span.until
    )
    spent = 0.0
    for pod in ended.select_related("pod_class"):
        seconds = span.overlap(pod.started_at, pod.finished_at)
        spent += pod.pod_class.requests.amount(resource) * seconds
    return spent


def _unfinished(span: _Span, resource: str) -> float:
    running = Pod.objects.filter(phase="Running", started_at__lt=span.until)
    spent = 0.0
    for pod in running.select_related("pod_class"):
        seconds = span.overlap(pod.started_at, span.until)
        spent += pod.pod_class.requests.amount(resource) * seconds
    return spent


def _lost(span: _Span, resource: str) -> float:
    """The time from the placement of each victim to its eviction."""
    victims = list(_decided(Decision.EVICT, span).order_by("id"))
    amounts = _amounts_of({victim.pod_id for victim in victims}, resource)
    placed_at = _placements_of({victim.pod_name for victim in victims})
    spent = 0.0
    for victim in victims:
        began = _last_before(placed_at.get(victim.pod_name, ()), victim.created_at)
        spent += amounts[victim.pod_id] * span.overlap(began, victim.created_at)
    return spent


def _amounts_of(pods: Iterable[int | None], resource: str) -> Counter[int | None]:
    """What each pod asks for. Pods that are gone count nothing."""
    found: Counter[int | None] = Counter()
    for pod in Pod.objects.filter(pk__in=list(pods)).select_related("pod_class"):
        found[pod.pk] = pod.pod_class.requests.amount(resource)
    return found


def _placements_of(pods: Iterable[str]) -> dict[str, list[datetime]]:
    found: dict[str, list[datetime]] = {}
    placements = Decision.objects.filter(kind=Decision.BIND, pod_name__in=list(pods))
    for name, moment in placements.order_by("id").values_list("pod_name", "created_at"):
        found.setdefault(name, []).append(moment)
    return found


def _last_before(moments: Iterable[datetime], end: datetime) -> datetime | None:
    return max((moment for moment in moments if moment < end), default=None)
