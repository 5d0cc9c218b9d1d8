"""How much the last hour's evictions cost: how many there were, what work they lost, and whom they
met again and again.

One index holds all that is asked of the evictions, so that a hundred thousand of them are counted
in a moment.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, IntegerField, Max, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.utils import timezone

from scheduler.domain.resources import Resources, is_accelerator, units_per_one
from scheduler.models import ClusterState, Eviction, SchedulingSession

WINDOW = timedelta(hours=1)
OFTEN = 3
"""A gang that was evicted so many times in the last hour is named."""
MOST_GANGS = 10
ACCELERATORS = "accelerators"
CORES = "cores"
"""What lost work is counted in."""


@dataclass(frozen=True, slots=True)
class EvictedGang:
    """`times` counts the sessions that evicted pods of it."""

    podgroup: str
    queue: str
    times: int
    pods: int
    last: datetime


@dataclass(frozen=True, slots=True)
class EvictionCosts:
    """Of the whole cluster in the last hour; `often` of the queues that the reader may see.

    `lost_seconds` are the running times of evicted pods, times their `lost_of`: accelerators, or
    cores where the cluster has none of those. `lost_share` is their part of what all of them can
    give in an hour. It is None, like `per_placement`, where nothing is there to compare with.
    """

    placements: int
    evictions: int
    per_placement: float | None
    lost_of: str
    lost_seconds: float
    lost_share: float | None
    often: tuple[EvictedGang, ...]


def eviction_costs(visible: Collection[str] | None) -> EvictionCosts:
    """`visible` are the queues that the reader may see, None for all."""
    since = timezone.now() - WINDOW
    lately = Eviction.objects.filter(created_at__gte=since)
    sums = lately.aggregate(
        evictions=Count("session_number"),
        accelerators=Sum("accelerator_seconds"),
        cores=Sum("core_seconds"),
    )
    placements = _placements(since)
    total = ClusterState.objects.values_list("total", flat=True).get(pk=1)
    lost_of, amount = measure_of(total)
    lost = float(sums[lost_of] or 0)
    capacity = amount * WINDOW.total_seconds()
    return EvictionCosts(
        placements=placements,
        evictions=sums["evictions"],
        per_placement=sums["evictions"] / placements if placements else None,
        lost_of=lost_of,
        lost_seconds=lost,
        lost_share=lost / capacity if capacity else None,
        often=_often_evicted(since, visible),
    )


def _placements(since: datetime) -> int:
    """From the sessions' own counts: there are a few thousand of them, and many more decisions."""
    binds = Cast(KeyTextTransform("binds", "counts"), IntegerField())
    sessions = SchedulingSession.objects.filter(started_at__gte=since)
    return sessions.aggregate(binds=Sum(binds))["binds"] or 0


def measure_of(total: Resources) -> tuple[str, float]:
    """What lost work is counted in, and how much of it the cluster has."""
    accelerators = amount_of(total, ACCELERATORS)
    if accelerators:
        return ACCELERATORS, accelerators
    return CORES, amount_of(total, CORES)


def amount_of(resources: Resources, measure: str) -> float:
    """How many accelerators or cores these are."""
    if measure == CORES:
        return resources.amount("cpu") / units_per_one("cpu")
    found = 0.0
    for name, amount in resources.items():
        if is_accelerator(name):
            found += amount / units_per_one(name)
    return found


def _often_evicted(since: datetime, visible: Collection[str] | None) -> tuple[EvictedGang, ...]:
    lately = Eviction.objects.filter(created_at__gte=since)
    if visible is not None:
        lately = lately.filter(queue_name__in=visible)
    by_gang = lately.order_by().values_list("podgroup_name", "queue_name")
    counted = by_gang.annotate(
        times=Count("session_number", distinct=True),
        pods=Count("session_number"),
        last=Max("created_at"),
    )
    often = counted.filter(times__gte=OFTEN).order_by("-times", "podgroup_name")
    gangs: list[EvictedGang] = []
    for row in often[:MOST_GANGS]:
        gangs.append(EvictedGang(*row))
    return tuple(gangs)
