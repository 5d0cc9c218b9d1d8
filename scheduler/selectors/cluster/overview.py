"""The four questions of the overview: is it healthy, how full, who is starved, what is stuck."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max, QuerySet
from django.utils import timezone

from scheduler.models import ClusterState, Eviction, Job, Node, PodGroup, SchedulingSession
from scheduler.selectors.queues.page import WAITING, GangRow, with_members

Names = Collection[str] | None  # the queues that the reader may see; None for all
Rows = Collection[int] | None  # the same by their rows: `Access.readable`
_LATELY = 5000  # so many evicted pods are looked at for the last gangs: their record may be long


@dataclass(frozen=True, slots=True)
class NodeCounts:
    ready: int
    total: int
    cordoned: int


def longest_waits(queues: Rows, limit: int = 8) -> list[GangRow]:
    return with_members(
        _waiting_podgroups(queues)
        .select_related("queue", "job")
        .order_by("created_at", "id")[:limit]
    )


def waiting_count(queues: Rows) -> int:
    return _waiting_podgroups(queues).count()


def _waiting_podgroups(queues: Rows) -> QuerySet[PodGroup]:
    return _rows_of_queues(PodGroup.objects.filter(phase__in=WAITING), queues)


def _rows_of_queues(
    rows: QuerySet[Any],
    queues: Collection[Any] | None,
    field: str = "queue",
) -> QuerySet[Any]:
    if queues is None:
        return rows
    return rows.filter(**{f"{field}__in": queues})


def last_sessions(limit: int = 40) -> list[SchedulingSession]:
    """Newest first, without what is still running."""
    return list(SchedulingSession.objects.exclude(state=SchedulingSession.RUNNING)[:limit])


def recent_evictions(queues: Names, limit: int = 6) -> list[dict[str, Any]]:
    """The gangs that lost pods last.

    There is one line for each gang, session and beneficiary, with the number of `pods` and the
    moment `at`.
    """
    newest = Eviction.objects.aggregate(newest=Max("id"))["newest"] or 0
    lately = _rows_of_queues(Eviction.objects.filter(id__gt=newest - _LATELY), queues, "queue_name")
    gangs = lately.order_by().values(
        "session_number",
        "podgroup_name",
        "queue_name",
        "beneficiary",
        "beneficiary_queue",
        "action",
    )
    return list(
        gangs.annotate(pods=Count("id"), at=Max("created_at"), last=Max("id")).order_by("-last")[
            :limit
        ]
    )


def evictions_since(since: datetime, queues: Names) -> int:
    return _rows_of_queues(
        Eviction.objects.filter(created_at__gte=since), queues, "queue_name"
    ).count()


def recent_failures(queues: Rows, limit: int = 6) -> list[Job]:
    return list(
        _rows_of_queues(Job.objects.filter(phase="Failed"), queues)
        .select_related("queue")
        .order_by("-finished_at", "-id")[:limit]
    )


def failures_since(since: datetime, queues: Rows) -> int:
    return _rows_of_queues(
        Job.objects.filter(phase="Failed", finished_at__gte=since), queues
    ).count()


def node_counts() -> NodeCounts:
    return NodeCounts(
        Node.objects.filter(ready=True).count(),
        Node.objects.count(),
        Node.objects.filter(unschedulable=True).count(),
    )


def cluster_state() -> ClusterState | None:
    return ClusterState.objects.first()


def a_day_ago() -> datetime:
    return timezone.now() - timedelta(days=1)
