"""Where the cluster's room went: looked at every minute, as the last session left it."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import Count

from scheduler.domain.losses import cause_of, parts_of_room
from scheduler.domain.usage import DAY, HOUR, UNCOUNTED, moment_at, unit_of, whole_seconds
from scheduler.models import ClusterState, LossRow, Pod, PodClass, UsageBook
from scheduler.services.usage.additions import add_amounts

LONGEST: Final = 120
"""Seconds for which one look counts: of what nobody looked at, nothing is said."""
_KEY: Final = {"seconds": "integer", "resource": "text", "at": "timestamptz", "part": "text"}


@transaction.atomic
def note_losses(now: datetime) -> None:
    """What is the case counts from the last look to this one."""
    UsageBook.objects.get_or_create(pk=1)
    book = UsageBook.objects.select_for_update().get(pk=1)
    second = whole_seconds(now)
    before = book.looked_at
    if before is not None and second <= before:
        if before - second > LONGEST:  # the clock was wrong
            UsageBook.objects.filter(pk=1).update(looked_at=second)
        return
    UsageBook.objects.filter(pk=1).update(looked_at=second)
    if before is not None and second - before <= LONGEST:
        _add(before, second)


def _add(start: int, end: int) -> None:
    parts = room_now()
    found: Counter[tuple[Any, ...]] = Counter()
    while start < end:
        hour = start // HOUR * HOUR
        stop = min(end, hour + HOUR)
        for (resource, part), amount in parts.items():
            value = amount * (stop - start)
            found[HOUR, resource, moment_at(hour), part] += value
            found[DAY, resource, moment_at(hour // DAY * DAY), part] += value
        start = stop
    add_amounts(LossRow, _KEY, "amount", found)


def room_now() -> dict[tuple[str, str], int]:
    """By resource and part, in the units of usage."""
    state = ClusterState.objects.filter(pk=1).first()
    if state is None:
        return {}
    asked = _asked()
    found = {}
    for resource, total in state.total.items():
        if resource in UNCOUNTED or not total:
            continue
        unit = unit_of(resource)
        used = state.allocated.get(resource, 0)
        wanted = {cause: amount // unit for cause, amount in asked[resource].items()}
        for part, amount in parts_of_room(total // unit, used // unit, wanted).items():
            found[resource, part] = amount
    return found


def _asked() -> defaultdict[str, Counter[str]]:
    """By resource and cause: what pods that wait ask for."""
    rows = (
        Pod.objects.filter(phase="Pending", podgroup__phase__in=("Pending", "Inqueue"))
        .order_by()
        .values_list("podgroup__reason_code", "pod_class_id")
        .annotate(number=Count("pk"))
    )
    waiting = list(rows)
    classes = PodClass.objects.in_bulk({pod_class for _, pod_class, _ in waiting})
    asked: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for reason, pod_class, number in waiting:
        if pod_class in classes:
            for resource, amount in classes[pod_class].requests.items():
                asked[resource][cause_of(reason)] += amount * number
    return asked
