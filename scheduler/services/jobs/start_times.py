"""Looks ahead in the background: when does each waiting gang start?

It takes a fixed small share of one core (`FORECAST_SHARE`): what a look cost says when the next one
may begin. Sessions never wait for it, and it changes nothing that they read.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Q, Subquery
from django.utils import timezone

from scheduler.conf import conf
from scheduler.domain.run_times import RunTimes
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.start_forecasts import Calibration, Past, Range, Waits, Why, is_kept
from scheduler.models import (
    ClusterState,
    ExpectedStart,
    LookAhead,
    PodGroup,
    StartForecast,
)
from scheduler.models.workload import LIVE_PHASES
from scheduler.selectors.sessions.trials import cluster_now
from scheduler.services.jobs.run_times import learn_run_times, read_run_times, size_of_request
from scheduler.services.sessions.policies import policy_in_force
from scheduler.simulation.forward import Limits, Progress
from scheduler.simulation.start_times import Lookout, look_ahead

HORIZON: Final = timedelta(days=2)
MOST_SESSIONS: Final = 1500
MOST_PROCESSOR_SECONDS: Final = 15.0
"""Of one look, all three runs together. What lies further ahead is not said then."""
SHORTEST_PAUSE: Final = timedelta(seconds=10)
TAKEN_FOR: Final = timedelta(minutes=3)
"""How long a worker that died keeps others from looking."""
LEARN_EVERY: Final = timedelta(minutes=5)
LEARN_FIRST_EVERY: Final = timedelta(seconds=30)
"""While nothing was learnt yet."""
PAST_LOOKED_AT: Final = 20_000
BATCH: Final = 500


def renew_start_times() -> bool:
    """Looks ahead if it is time to. Answers whether it did."""
    share = conf().forecast_share
    now = timezone.now()
    if share <= 0 or not _take_turn(now):
        return False
    began = time.thread_time()
    sessions, waiting = _look(now)
    used = time.thread_time() - began
    pause = max(SHORTEST_PAUSE, timedelta(seconds=used / share))
    LookAhead.objects.filter(pk=1).update(
        next_at=timezone.now() + pause,
        made_at=now,
        processor_seconds=used,
        sessions=sessions,
        waiting=waiting,
    )
    return True


def _take_turn(now: datetime) -> bool:
    """One looks at a time. A clock that was put back delays nobody for longer than a turn."""
    LookAhead.objects.get_or_create(pk=1)
    free = Q(next_at=None) | Q(next_at__lte=now) | Q(next_at__gt=now + timedelta(hours=1))
    return bool(LookAhead.objects.filter(free, pk=1).update(next_at=now + TAKEN_FOR))


def _look(now: datetime) -> tuple[int, int]:
    _close_forecasts(now)
    run_times = _run_times(now)
    gangs = _live_gangs()
    if not any(gang.waits for gang in gangs.values()):
        ExpectedStart.objects.all().delete()
        return 0, 0
    snapshot = cluster_now()
    taken_at = datetime.fromtimestamp(snapshot.taken_at, UTC)
    seen = _look_ahead(snapshot, gangs, run_times)
    _write(seen, gangs, Calibration(past_forecasts(taken_at)), taken_at)
    return seen.sessions, len(seen.waits) + len(seen.unknown)


# What is known


@dataclass(frozen=True, slots=True)
class _Gang:
    number: int
    owner: str
    queue: str
    size: str
    created_at: datetime
    has_started: bool
    waits: bool


def _live_gangs() -> dict[str, _Gang]:
    columns = (
        "pk",
        "namespace",
        "name",
        "owner",
        "queue__name",
        "min_resources",
        "created_at",
        "started_at",
        "phase",
    )
    found = {}
    rows = PodGroup.objects.filter(phase__in=LIVE_PHASES).order_by().values_list(*columns)
    for number, namespace, name, owner, queue, amounts, created, started, phase in rows:
        found[f"{namespace}/{name}"] = _Gang(
            number,
            owner,
            queue,
            size_of_request(amounts),
            created,
            started is not None,
            phase != "Running",
        )
    return found


def _run_times(now: datetime) -> RunTimes:
    state = LookAhead.objects.get(pk=1)
    known = read_run_times()
    pause = LEARN_EVERY if known.circles else LEARN_FIRST_EVERY
    if state.learnt_at is not None and state.learnt_at <= now < state.learnt_at + pause:
        return known
    learnt = learn_run_times()
    LookAhead.objects.filter(pk=1).update(learnt_at=now)
    return learnt


def _look_ahead(snapshot: Snapshot, gangs: Mapping[str, _Gang], run_times: RunTimes) -> Lookout:
    state = ClusterState.objects.select_related("policy").get(pk=1)
    users = []
    for key in snapshot.groups.key:
        gang = gangs.get(key)
        users.append(gang.owner if gang else "")
    limits = Limits(HORIZON.total_seconds(), MOST_SESSIONS, max(0.1, state.period_seconds))
    until = time.thread_time() + MOST_PROCESSOR_SECONDS

    def keep_going(_progress: Progress) -> bool:
        return time.thread_time() < until

    return look_ahead(snapshot, policy_in_force(state), users, run_times, limits, keep_going)


# What came of earlier ones


def _close_forecasts(now: datetime) -> None:
    """Of gangs that have started since, or that are gone."""
    gang = PodGroup.objects.filter(pk=OuterRef("podgroup_number"))
    still_open = StartForecast.objects.filter(ended_at=None)
    with_start = still_open.annotate(start=Subquery(gang.values("started_at")[:1]))
    rows = list(with_start.filter(start__gte=F("made_at")))
    for row in rows:
        row.ended_at = row.start
        row.actual = (row.start - row.made_at).total_seconds()
    StartForecast.objects.bulk_update(rows, ["ended_at", "actual"], batch_size=BATCH)
    waits_on = gang.filter(phase__in=LIVE_PHASES, started_at=None)
    still_open.filter(~Exists(waits_on)).update(ended_at=now)


def past_forecasts(now: datetime) -> list[Past]:
    """Newest first, and those that wait for longer than expected."""
    columns = ("queue_name", "size", "low", "median", "high", "actual", "made_at")
    newest = StartForecast.objects.order_by("-pk")
    closed = newest.filter(actual__isnull=False).values_list(*columns)[:PAST_LOOKED_AT]
    waiting = newest.filter(ended_at=None).values_list(*columns)[:PAST_LOOKED_AT]
    found = []
    for queue, size, low, median, high, actual, made_at in (*waiting, *closed):
        waits = Waits(low, median, high)
        if actual is None:
            so_far = (now - made_at).total_seconds()
            past = Past(queue, size, waits, so_far, is_over=False, made_at=made_at.timestamp())
        else:
            past = Past(queue, size, waits, actual, made_at=made_at.timestamp())
        found.append(past)
    return found


# What is written


def _write(
    seen: Lookout, gangs: Mapping[str, _Gang], calibration: Calibration, taken_at: datetime
) -> None:
    rows = []
    kept = []
    waited_before = _waited_at_last()
    for key, waits in seen.waits.items():
        gang = gangs.get(key)
        if gang is None:
            continue  # it came after the gangs were read
        given = calibration.range_of(gang.queue, gang.size, waits)
        rows.append(_expected(gang, given, taken_at))
        waited = (taken_at - gang.created_at).total_seconds()
        if not gang.has_started and is_kept(waited, waited_before.get(gang.number)):
            kept.append(_forecast(key, gang, waits, given, taken_at))
    for key, why in seen.unknown.items():
        if key in gangs:
            rows.append(ExpectedStart(podgroup_number=gangs[key].number, made_at=taken_at, why=why))
    _replace_expected(rows)
    StartForecast.objects.bulk_create(kept, batch_size=BATCH)


def _waited_at_last() -> dict[int, float]:
    """By gang: how long it had waited when a forecast of it was kept last."""
    created = PodGroup.objects.filter(pk=OuterRef("podgroup_number")).values("created_at")[:1]
    rows = (
        StartForecast.objects.filter(ended_at=None)
        .order_by()
        .values("podgroup_number")
        .annotate(last=Max("made_at"), created=Subquery(created))
    )
    found = {}
    for row in rows:
        if row["created"] is not None:
            found[row["podgroup_number"]] = (row["last"] - row["created"]).total_seconds()
    return found


def _expected(gang: _Gang, given: Range | None, taken_at: datetime) -> ExpectedStart:
    if given is None:
        return ExpectedStart(podgroup_number=gang.number, made_at=taken_at, why=Why.FEW_FORECASTS)
    return ExpectedStart(
        podgroup_number=gang.number,
        made_at=taken_at,
        earliest_at=taken_at + timedelta(seconds=given.earliest),
        latest_at=taken_at + timedelta(seconds=given.latest),
        cases=given.cases,
    )


def _forecast(
    key: str, gang: _Gang, waits: Waits, given: Range | None, taken_at: datetime
) -> StartForecast:
    return StartForecast(
        podgroup_number=gang.number,
        podgroup_name=key,
        queue_name=gang.queue,
        size=gang.size,
        made_at=taken_at,
        low=waits.low,
        median=waits.median,
        high=waits.high,
        earliest=given.earliest if given else None,
        latest=given.latest if given else None,
    )


def _replace_expected(rows: Iterable[ExpectedStart]) -> None:
    with transaction.atomic():
        ExpectedStart.objects.all().delete()
        ExpectedStart.objects.bulk_create(rows, batch_size=BATCH)
