"""History in coarser steps: one packed row for each queue and bucket.

There is none where nothing has changed since the row before it.

A row holds until the next one, like a raw sample does. So that a reader never has to look far back,
every queue has a row at each whole hour of minutes and at each whole day of hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db.models import Max

from scheduler.domain.timelines import FIGURES, LOAN_FIGURES, Data, Point, average
from scheduler.models import LoanSample, Queue, QueueSample
from scheduler.models.bulk import fetch
from scheduler.selectors.records.history import as_points
from scheduler.selectors.sessions.snapshot_rows import loaded


@dataclass(frozen=True, slots=True)
class Level:
    """Buckets of `seconds` are made of those of `source`, at most `catch_up` at a time.

    Each queue has one at every multiple of `key`.
    """

    seconds: int
    source: int
    catch_up: int
    key: int
    model: Any = QueueSample
    figures: tuple[str, ...] = FIGURES


MINUTES: Final = Level(QueueSample.MINUTE, QueueSample.RAW, 15, 3600)
HOURS: Final = Level(QueueSample.HOUR, QueueSample.MINUTE, 24, 24 * 3600)
LOAN_HOURS: Final = Level(
    QueueSample.HOUR, QueueSample.MINUTE, 24, 24 * 3600, LoanSample, LOAN_FIGURES
)


def roll_up(now: datetime) -> None:
    """Whole minutes out of raw samples, whole hours out of minutes."""
    for level in (MINUTES, HOURS, LOAN_HOURS):
        for start in _due_buckets(level, now):
            _roll_up(level, start)


def _due_buckets(level: Level, now: datetime) -> list[datetime]:
    """The buckets that are over and not yet made, oldest first."""
    end = int(now.timestamp()) // level.seconds * level.seconds
    last = level.model.objects.filter(seconds=level.seconds).aggregate(last=Max("at"))["last"]
    first = end - level.catch_up * level.seconds
    if last is not None:
        first = max(first, int(last.timestamp()) + level.seconds)
    buckets: list[datetime] = []
    for at in range(first, end, level.seconds):
        buckets.append(datetime.fromtimestamp(at, tz=UTC))
    return buckets


def _roll_up(level: Level, start: datetime) -> None:
    end = start + timedelta(seconds=level.seconds)
    standing = standing_at(start, level)
    within: dict[str, list[Point]] = {}
    samples = level.model.objects.filter(seconds=level.source, at__gte=start, at__lt=end)
    for name, at, data in samples.order_by("at").values_list("queue_name", "at", "data"):
        within.setdefault(name, []).extend(as_points(at, level.source, data))
    names = set(within)
    if int(start.timestamp()) % level.key == 0:
        names |= standing.keys() & _queue_names()
    rows = []
    for name in sorted(names):
        rows.append(_bucket_sample(level, name, start, standing.get(name), within.get(name, [])))
    level.model.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)


def _queue_names() -> set[str]:
    return set(Queue.objects.values_list("name", flat=True))


def _bucket_sample(
    level: Level,
    name: str,
    start: datetime,
    before: Data | None,
    points: list[Point],
) -> Any:
    begin = start.timestamp()
    end = begin + level.seconds
    if before is not None:
        points = [(begin, before), *points]
    points = [point for point in points if point[0] < end]
    last = {}
    for key, value in points[-1][1].items():
        if key != "last":
            last[key] = value
    data: dict[str, Any] = dict(average(points, begin, end, level.figures))
    if "state" in last:
        data["state"] = last["state"]
    return level.model(
        queue_name=name,
        seconds=level.seconds,
        at=start,
        data=data if data == last else {**data, "last": last},
    )


def standing_at(moment: datetime, level: Level) -> dict[str, Data]:
    """The last word on each queue before this moment, at any length up to the level's own.

    What was said long ago is forgotten.
    """
    table = level.model._meta.db_table
    sql = (
        f"SELECT s.queue_name, s.data FROM {table} s JOIN (SELECT queue_name, max(at) "
        f"AS at FROM {table} "
        "WHERE seconds <= %s AND at < %s AND at >= %s GROUP BY queue_name) newest ON "
        "newest.queue_name = s.queue_name "
        "AND newest.at = s.at WHERE s.seconds <= %s ORDER BY s.seconds DESC"
    )
    oldest = moment - timedelta(seconds=2 * level.key)
    rows = fetch(sql, [level.seconds, moment, oldest, level.seconds])
    standing: dict[str, Data] = {}
    for name, data in rows:
        standing[name] = _last_point(loaded(data))
    return standing


def _last_point(data: Data) -> Data:
    return data.get("last", data)  # type: ignore[no-any-return]
