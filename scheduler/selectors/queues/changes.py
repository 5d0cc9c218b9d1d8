"""Which queues changed lately, and in what: their figures, their quotas or their state."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from django.db.models import Exists, OuterRef, Q

from scheduler.models import AuditEntry, Queue, QueueSample

FIGURES: Final = "figures"
QUOTA: Final = "quota"
STATE: Final = "state"
_EDITS: Final = ("CreateQueue", "UpdateQueue")


def queues_changed_since(since: datetime) -> dict[str, list[str]]:
    """By name, what changed. Three queries, whatever the number of queues.

    A sample is written when the figures of a queue change, and only then.
    """
    changed: dict[str, list[str]] = {}
    _note(changed, _with_new_figures(since), FIGURES)
    _note(changed, _with_new_quota(since), QUOTA)
    states = Queue.objects.filter(state_since__gte=since)
    _note(changed, states.order_by("name").values_list("name", flat=True), STATE)
    return changed


def _note(changed: dict[str, list[str]], names: Iterable[str], what: str) -> None:
    for name in names:
        changed.setdefault(name, []).append(what)


def _with_new_figures(since: datetime) -> Iterable[str]:
    """Asked queue by queue, in the index: the samples of an hour are many."""
    samples = QueueSample.objects.filter(queue_name=OuterRef("name"), at__gte=since)
    sampled = Q(Exists(samples.filter(seconds=QueueSample.RAW)))
    sampled |= Q(Exists(samples.filter(seconds=QueueSample.MINUTE)))
    return Queue.objects.filter(sampled).order_by("name").values_list("name", flat=True)


def _with_new_quota(since: datetime) -> set[str]:
    edits = AuditEntry.objects.filter(at__gte=since, kind="Queue", action__in=_EDITS)
    return set(edits.order_by().values_list("name", flat=True))
