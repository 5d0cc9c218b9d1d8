"""Learns from jobs that have ended how long jobs run, and keeps it in a small table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Max

from scheduler.domain.gang_sizes import NO_SIZE, size_of
from scheduler.domain.resources import Resources
from scheduler.domain.run_times import RunTime, RunTimes
from scheduler.models import LearntRunTime, PodGroup

LOOKED_AT = 20_000
"""Of the newest gangs, those that have ended: how long jobs ran months ago says little."""


def learn_run_times() -> RunTimes:
    """Writes the table anew."""
    learnt = RunTimes.learn(_ended_gangs())
    rows = []
    for (user, queue, size), found in learnt.circles.items():
        rows.append(
            LearntRunTime(
                user=user,
                queue=queue,
                size=size,
                count=found.count,
                quantiles=[round(seconds, 3) for seconds in found.quantiles],
            )
        )
    with transaction.atomic():
        LearntRunTime.objects.all().delete()
        LearntRunTime.objects.bulk_create(rows, batch_size=500)
    return learnt


def _ended_gangs() -> Iterable[RunTime]:
    """Without those that were evicted on the way: part of their time they waited."""
    newest = PodGroup.objects.aggregate(newest=Max("pk"))["newest"] or 0
    ended = PodGroup.objects.filter(
        pk__gt=newest - LOOKED_AT,
        phase="Completed",
        started_at__isnull=False,
        finished_at__isnull=False,
        evictions=0,
    )
    columns = ("owner", "queue__name", "min_resources", "started_at", "finished_at")
    for user, queue, amounts, started, finished in ended.order_by().values_list(*columns):
        seconds = (finished - started).total_seconds()
        if seconds >= 0:
            yield RunTime(user, queue, size_of_request(amounts), seconds)


def size_of_request(amounts: Resources | dict[str, Any] | None) -> str:
    if amounts is None:
        return NO_SIZE
    return size_of(Resources(amounts).items())
