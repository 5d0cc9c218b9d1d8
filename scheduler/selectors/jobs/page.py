"""One job's page: its gang, its pods, what happened to it and for whom it had to make room."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from statistics import quantiles
from typing import Any

from django.db.models import Count, Max, Q, QuerySet

from scheduler.domain.durations import seconds_between
from scheduler.domain.resources import Resources
from scheduler.models import ClusterState, Event, Eviction, Pod, PodGroup, Queue
from scheduler.selectors.jobs.listing import WAITING

PODS_A_PAGE = 200
MOST_RECORDS = 200
_STARTS_FOR_AN_ESTIMATE = 50
FEWEST_STARTS = 5
_STARTS_LOOKED_AT = 500
_LOOKED_AT = (
    10_000  # of the newest gangs, those that started: what was usual long ago is not any more
)


def gang_named(namespace: str, name: str) -> PodGroup | None:
    """By its own name, or by what a real cluster calls its podgroup."""
    gangs = PodGroup.objects.select_related("queue", "queue__parent", "job")
    found = gangs.filter(namespace=namespace, name=name).first()
    if found is not None:
        return found
    return gangs.filter(namespace=namespace, object_name=name).first()


def pods_of(gang: PodGroup, phase: str = "", start: int = 0) -> list[Pod]:
    """A page of them, and one more if there are more, by task and number.

    Of one phase if it is given.
    """
    pods = gang.pods.select_related("node", "pod_class", "reserved_node")
    if phase:
        pods = pods.filter(phase=phase)
    ordered = pods.order_by("task", "index", "pk")
    return list(ordered[start : start + PODS_A_PAGE + 1])


@dataclass(frozen=True, slots=True)
class Member:
    """As much of a pod as a square shows."""

    name: str
    task: str
    index: int
    phase: str
    node: str | None


def members_of(gang: PodGroup) -> list[Member]:
    found: list[Member] = []
    for row in gang.pods.order_by().values_list("name", "task", "index", "phase", "node__name"):
        found.append(Member(*row))
    return found


def tasks_of(gang: PodGroup) -> dict[str, tuple[dict[str, int], Resources]]:
    """By task: its pods counted by phase, and what each of them asks for."""
    tasks: dict[str, tuple[dict[str, int], Resources]] = {}
    rows = (
        gang.pods.order_by()
        .values_list("task", "phase", "pod_class__requests")
        .annotate(number=Count("pk"))
    )
    for task, phase, request, number in rows:
        counts, _ = tasks.setdefault(task, ({}, Resources(request)))
        counts[phase] = counts.get(phase, 0) + number
    return tasks


@dataclass(frozen=True, slots=True)
class PlaceInLine:
    """Where a waiting gang stands in its queue, and how long others waited.

    The waits are None while there were too few starts.
    """

    position: int
    waiting: int
    ahead: tuple[str, ...]
    usual: tuple[float, float, float] | None  # a quarter waited less, half, three quarters
    starts: int


def place_in_line(gang: PodGroup) -> PlaceInLine:
    """By priority, then by age, as the queue orders them unless a policy has other rules."""
    waiting = PodGroup.objects.filter(queue=gang.queue_id, phase__in=WAITING)
    before = Q(priority__gt=gang.priority) | Q(
        priority=gang.priority, created_at__lt=gang.created_at
    )
    ahead = waiting.filter(before).exclude(pk=gang.pk)
    names = []
    for namespace, name in ahead.order_by("-priority", "created_at").values_list(
        "namespace", "name"
    )[:5]:
        names.append(f"{namespace}/{name}")
    return PlaceInLine(
        ahead.count() + 1,
        waiting.count(),
        tuple(names),
        *usual_wait(gang.queue_id, gang.min_resources),
    )


def place_at_the_end(queue: str, request: Resources | None = None) -> PlaceInLine | None:
    """Where a job that is submitted to the queue now, and asks for this, would stand.

    None where there is no such queue.
    """
    key = Queue.objects.filter(name=queue).values_list("pk", flat=True).first()
    if key is None:
        return None
    waiting = PodGroup.objects.filter(queue=key, phase__in=WAITING).count()
    return PlaceInLine(waiting + 1, waiting, (), *usual_wait(key, request))


def usual_wait(
    queue: int, request: Resources | None
) -> tuple[tuple[float, float, float] | None, int]:
    """How long jobs of about this size or larger waited that started last in the queue.

    In quarters, and how many jobs that were.
    """
    newest = PodGroup.objects.aggregate(newest=Max("pk"))["newest"] or 0
    started = PodGroup.objects.filter(
        queue=queue, started_at__isnull=False, pk__gt=newest - _LOOKED_AT
    ).order_by("-pk")
    rows = started.values_list("created_at", "started_at", "min_resources")[:_STARTS_LOOKED_AT]
    alike = []
    for since, at, size in rows:
        if at and _is_comparable(size, request):
            alike.append(seconds_between(since, at))
    waits = alike[:_STARTS_FOR_AN_ESTIMATE]
    if len(waits) < FEWEST_STARTS:
        return None, len(waits)
    first, median, third = quantiles(waits, n=4)
    return (max(0.0, first), median, third), len(waits)


def _is_comparable(size: Resources | None, request: Resources | None) -> bool:
    """Whether it asks for at least half as much of everything.

    How fast small jobs start says nothing about a large one.
    """
    if size is None or not request:
        return not request
    return all(2 * size.amount(name) >= amount for name, amount in request.items())


def events_of(gang: PodGroup) -> QuerySet[Event]:
    """Of the job, of its gang and of its pods, newest first.

    What happened to an earlier one of the same name is not its own.
    """
    own = Q(kind__in=("Job", "PodGroup"), name=gang.name)
    pods = Q(kind="Pod", name__in=gang.pods.order_by().values("name"))
    return Event.objects.filter(own | pods, namespace=gang.namespace, last_at__gte=gang.created_at)


def evictions_of(gang: PodGroup) -> tuple[list[Eviction], list[Eviction]]:
    """Those that it suffered, and those that others suffered for it."""
    key = f"{gang.namespace}/{gang.name}"
    since = Eviction.objects.filter(created_at__gte=gang.created_at)
    return list(since.filter(podgroup_name=key)[:MOST_RECORDS]), list(
        since.filter(beneficiary=key)[:MOST_RECORDS]
    )


def last_eviction(gang: PodGroup) -> Eviction | None:
    """Of one of its pods."""
    key = f"{gang.namespace}/{gang.name}"
    own = Eviction.objects.filter(podgroup_name=key, created_at__gte=gang.created_at)
    return own.order_by("-id").first()


def waiting_since(gang: PodGroup) -> datetime:
    """When it was submitted, or when it began to wait again.

    It waits again when it was resumed or restarted, or has lost the pods it needs.
    """
    if gang.job:
        since = gang.job.phase_since
    else:
        since = None
    if since:
        return max(gang.created_at, since)
    return gang.created_at


def evaluation_of(gang: PodGroup) -> dict[str, Any]:
    """The session that found the reason, and the last one that looked.

    While nothing has changed, the reason is still true.
    """
    state = ClusterState.objects.only("last_session", "last_session_at").get(pk=1)
    return {
        "found_in": gang.reason_session,
        "session": state.last_session,
        "at": state.last_session_at,
    }
