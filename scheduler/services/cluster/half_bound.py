"""Gangs of which a cluster took only some pods: completed by sessions, or released whole.

Sessions place the rest, as they do for any gang that lacks pods. One that stays in halves for too
long holds room and cannot work: all of its pods are evicted, and whoever made them makes them anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet

from scheduler.models import Decision, Pod, PodGroup
from scheduler.models.clock import database_now
from scheduler.services.locks import alone_with_pods
from scheduler.services.records.events import EventNote, record_events
from scheduler.services.sessions.requests import want_session

LONGEST_HALF = timedelta(minutes=10)
RELEASE = "release"
_STARTED = ("Bound", "Running", "Succeeded")
_WHY = "Its gang was started only in part, and could not be completed within 10 minutes."


def _with_counts() -> QuerySet[PodGroup]:
    """Podgroups with the pods that a cluster has of them, and those that are under way."""
    return PodGroup.objects.annotate(
        started=Count("pods", filter=Q(pods__phase__in=_STARTED)),
        under_way=Count("pods", filter=Q(pods__phase="Binding")),
    ).order_by()


def note_half_bound(ids: Collection[int], now: datetime) -> None:
    """Of these podgroups, remember those that have some pods and too few."""
    if not ids:
        return
    halves = (
        _with_counts()
        .filter(pk__in=ids, half_bound_since=None)
        .annotate(placed=F("started") + F("under_way"))
        .filter(placed__gt=0, placed__lt=F("min_member"))
    )
    found = list(halves.values_list("pk", flat=True))
    PodGroup.objects.filter(pk__in=found).update(half_bound_since=now)


def settle_half_bound_gangs() -> int:
    """Forget those that are whole or gone, and release those that stay in halves.

    How many were released.
    """
    if not PodGroup.objects.exclude(half_bound_since=None).exists():
        return 0
    with transaction.atomic():
        alone_with_pods()
        now = database_now()
        noted = _with_counts().exclude(half_bound_since=None)
        over = Q(started__gte=F("min_member")) | Q(started=0, under_way=0) | Q(phase="Completed")
        _forget(noted.filter(over))
        stuck = list(noted.filter(Q(under_way=0), half_bound_since__lt=now - LONGEST_HALF))
        _release(stuck, now)
        _forget(noted.filter(pk__in=[group.pk for group in stuck]))
    return len(stuck)


def _forget(groups: QuerySet[PodGroup]) -> None:
    ids = list(groups.values_list("pk", flat=True))
    PodGroup.objects.filter(pk__in=ids).update(half_bound_since=None)


def _release(groups: Iterable[PodGroup], now: datetime) -> None:
    pods = Pod.objects.filter(podgroup__in=list(groups), phase__in=("Bound", "Running"))
    found = list(pods.select_related("podgroup__queue", "node"))
    if not found:
        return
    Decision.objects.bulk_create(_eviction(pod, now) for pod in found)
    Pod.objects.filter(pk__in=[pod.pk for pod in found]).update(phase="Releasing", message=_WHY)
    names = {(pod.podgroup.namespace, pod.podgroup.name): pod.podgroup.queue.name for pod in found}
    notes = []
    for (namespace, name), queue in names.items():
        notes.append(
            EventNote("PodGroup", name, "GangReleased", _WHY, namespace, queue=queue, warning=True)
        )
    record_events(notes, now)
    want_session()


def _eviction(pod: Pod, now: datetime) -> Decision:
    node_name = ""
    if pod.node is not None:
        node_name = pod.node.name
    return Decision(
        kind=Decision.EVICT,
        pod=pod,
        pod_name=f"{pod.namespace}/{pod.name}",
        podgroup_name=f"{pod.podgroup.namespace}/{pod.podgroup.name}",
        queue_name=pod.podgroup.queue.name,
        node_name=node_name,
        action=RELEASE,
        created_at=now,
    )
