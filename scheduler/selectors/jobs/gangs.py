"""Gangs and their pods in numbers, and why a gang waits: for lists and explanations."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from scheduler.models import ClusterState, PodGroup
from scheduler.models.bulk import fetch_as_planned
from scheduler.models.prepared import Prepared, slot
from scheduler.selectors.sessions.snapshot_rows import ids_parameter, one_of_ids

WAITING = ("Pending", "Inqueue")

PhaseCounts = dict[str, int]


def pods_by_phase(podgroups: Collection[int]) -> dict[int, PhaseCounts]:
    """How many pods of each podgroup are in which phase; podgroups without pods are left out.

    Those not made yet are Pending.
    """
    if not podgroups:
        return {}
    counts: dict[int, PhaseCounts] = {}
    chosen = one_of_ids("podgroup_id")
    made = (
        f"SELECT podgroup_id, phase, count(*) FROM scheduler_pod WHERE {chosen} GROUP BY "
        "podgroup_id, phase"
    )
    unmade = (
        "SELECT podgroup_id, 'Pending', end_index - next_index FROM scheduler_unmadepods WHERE "
        f"{chosen}"
    )
    for podgroup, phase, number in fetch_as_planned(
        f"{made} UNION ALL {unmade}", [ids_parameter(podgroups)] * 2
    ):
        own = counts.setdefault(podgroup, {})
        own[phase] = own.get(phase, 0) + number
    return counts


_STANDING = (
    "namespace",
    "name",
    "queue",
    "phase",
    "job__phase",
    "job__message",
    "reason_code",
    "reason_message",
    "reason_figures",
    "reason_checks",
    "reason_session",
    "pod_conditions",
    "ahead",
    "evaluated_at",
)


def _standing() -> QuerySet[Any, Any]:
    """A gang with its reason and its place in line.

    The place counts those ahead of it in its queue, by priority and age. Also when the last session
    looked at it.

    The place counts those ahead of it in its queue by priority and age. `evaluated` is the last
    session that looked at it.
    """
    earlier = Q(created_at__lt=OuterRef("created_at")) | Q(
        created_at=OuterRef("created_at"), pk__lt=OuterRef("pk")
    )
    before = Q(priority__gt=OuterRef("priority")) | Q(priority=OuterRef("priority")) & earlier
    others = PodGroup.objects.filter(before, queue=OuterRef("queue"), phase__in=WAITING).order_by()
    ahead = Subquery(others.values("queue").annotate(number=Count("id")).values("number"))
    looked = ClusterState.objects.filter(pk=1, last_session=OuterRef("reason_session")).values(
        "last_session_at"
    )
    found = PodGroup.objects.filter(namespace=slot("namespace"), name=slot("name")).order_by()
    return found.annotate(ahead=Coalesce(ahead, 0), evaluated_at=Subquery(looked)).values_list(
        *_STANDING
    )


_BY_NAME = Prepared(_standing, keep_plan=True)


def place_in_line(namespace: str, name: str) -> dict[str, Any] | None:
    """What there is to say about why a gang waits; None where there is no such gang."""
    row = _BY_NAME.row(namespace=namespace, name=name)
    if row is None:
        return None
    return dict(zip(_STANDING, row, strict=True))
