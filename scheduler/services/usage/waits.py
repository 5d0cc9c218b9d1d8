"""How long gangs waited that started between two marks."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from scheduler.domain.gang_sizes import size_of
from scheduler.domain.usage import DAY, moment_at, whole_seconds
from scheduler.domain.wait_buckets import bucket_of
from scheduler.models import PodGroup, WaitRow
from scheduler.services.usage.additions import add_amounts

_KEY: Final = {
    "at": "timestamptz",
    "queue_name": "text",
    "owner": "text",
    "size": "text",
    "bucket": "integer",
}


def add_waits(start: int, end: int) -> None:
    """By the day of the start."""
    rows = PodGroup.objects.filter(started_at__gte=moment_at(start), started_at__lt=moment_at(end))
    columns = ("queue__name", "owner", "min_resources", "created_at", "started_at")
    found: Counter[tuple[Any, ...]] = Counter()
    for queue, owner, least, created, started in rows.order_by().values_list(*columns):
        day = moment_at(whole_seconds(started) // DAY * DAY)
        size = size_of((least or {}).items())
        bucket = bucket_of((started - created).total_seconds())
        found[day, queue, owner, size, bucket] += 1
    add_amounts(WaitRow, _KEY, "count", found)
