"""How long everything is kept: history is rolled up, and every table is pruned in small steps.

`KEPT` holds tables whose time the setting KEEP_HOURS can change, `SAMPLES` the history of queues.
The spans that a reader can choose are `SPANS` in `scheduler/selectors/records/history.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.models import (
    DateTimeField,
    DurationField,
    Exists,
    ExpressionWrapper,
    IntegerField,
    Max,
    Min,
    OuterRef,
    QuerySet,
    Value,
)
from django.db.models.functions import Cast
from django.utils import timezone

from scheduler.conf import conf, is_kubernetes
from scheduler.models import (
    BulkRun,
    Change,
    ChangeHorizon,
    Command,
    Comparison,
    Decision,
    Event,
    Eviction,
    Happening,
    Job,
    LoanSample,
    LossRow,
    Notice,
    NoticeDelivery,
    Pod,
    PodClass,
    PodGroup,
    PodStretch,
    Preview,
    Queue,
    QueueSample,
    SavedScenario,
    SchedulingSession,
    StartForecast,
    StarvedRow,
    UsageRow,
    WaitRow,
)
from scheduler.models.bulk import fetch
from scheduler.selectors.cluster.nodes import OCCUPYING
from scheduler.services.locks import alone_with_pods
from scheduler.services.records import idempotency
from scheduler.services.records.kept_sessions import thin_out_kept_sessions
from scheduler.services.records.loan_samples import note_loans
from scheduler.services.records.rollup import roll_up
from scheduler.services.usage.booking import book_usage
from scheduler.services.usage.losses import note_losses
from scheduler.services.usage.statements import send_due_statements

STEP = 2000
"""Rows deleted in one transaction."""
MOST_SECONDS = 10.0
"""For all tables together; what is left is for the next time."""

KEPT: Final[dict[str, tuple[Any, str, timedelta]]] = {
    "decisions": (Decision, "created_at", timedelta(hours=2)),
    "sessions": (SchedulingSession, "started_at", timedelta(hours=24)),
    "evictions": (Eviction, "created_at", timedelta(days=30)),
    "events": (Event, "last_at", timedelta(days=7)),
    "comparisons": (Comparison, "since", timedelta(days=7)),
    "start_forecasts": (StartForecast, "made_at", timedelta(days=30)),
    "commands": (Command, "created_at", timedelta(days=365)),
    "previews": (Preview, "created_at", timedelta(days=7)),
    "happenings": (Happening, "at", timedelta(days=2)),
    "notice_deliveries": (NoticeDelivery, "created_at", timedelta(days=30)),
    "notices": (Notice, "created_at", timedelta(days=90)),
    "bulk_runs": (BulkRun, "created_at", timedelta(days=30)),
    "deleted_queues": (Queue, "deleted_at", timedelta(days=365)),
}
"""Table, the moment that counts, and for how long.

The setting KEEP_HOURS, such as `events=48;decisions=6`, replaces the last for each table it names.
"""

# A little longer than can be asked for: what holds at the beginning of a span was said before it.
SAMPLES: Final = (
    (QueueSample.RAW, timedelta(minutes=15)),
    (QueueSample.MINUTE, timedelta(hours=25)),
    (QueueSample.HOUR, timedelta(days=31)),
)
USAGE: Final = (
    (UsageRow.JOB, UsageRow.HOUR, timedelta(days=8)),
    (UsageRow.USER, UsageRow.HOUR, timedelta(days=35)),
    (UsageRow.QUEUE, UsageRow.HOUR, timedelta(days=35)),
    (UsageRow.CLUSTER, UsageRow.HOUR, timedelta(days=35)),
    (UsageRow.JOB, UsageRow.DAY, timedelta(days=100)),
    (UsageRow.USER, UsageRow.DAY, timedelta(days=800)),
    (UsageRow.QUEUE, UsageRow.DAY, timedelta(days=800)),
    (UsageRow.CLUSTER, UsageRow.DAY, timedelta(days=800)),
)
"""Days for two years and a little: a month can be compared with that of the year before."""
FAIRNESS_KEPT = timedelta(days=800)
STRETCHES_KEPT = timedelta(days=3)
"""For longer than a pod that was over already is taken for news (models/usage_triggers.py)."""
LATE_SAMPLES = timedelta(seconds=10)
"""A session's samples are of the moment it began to write, and are seen when it has committed."""
CHANGES_KEPT = 50_000
ENDED = ("Completed", "Failed", "Terminated")
"""Jobs that are over. An Aborted one is only suspended: it waits to be resumed, however long."""
POD_EVENTS_KEPT = timedelta(hours=2)
"""Each waiting pod has one of its own, and pods come and go by the thousand.

Their podgroup's are kept as long as any.
"""
JOBS_KEPT = timedelta(days=30)
"""Without a time to live of their own."""


def tidy_up() -> None:
    now = timezone.now()
    until = time.monotonic() + MOST_SECONDS
    note_loans(now)
    roll_up(now - LATE_SAMPLES)
    note_losses(now)
    book_usage(now, until)
    send_due_statements(now)
    _prune_decisions(now - kept_for("decisions"), until)
    thin_out_kept_sessions(now, kept_for("sessions"), kept_for("evictions"))
    for rows in _past_their_time(now):
        _prune_rows(rows, until)
    _prune_classes()
    _prune_changes()
    idempotency.prune()


def kept_for(table: str) -> timedelta:
    hours = conf().keep_hours.get(table)
    if hours is None:
        return KEPT[table][2]
    return timedelta(hours=hours)


def _past_their_time(now: datetime) -> Iterable[Any]:
    for table, (model, column, _) in KEPT.items():
        if model in (Decision, Queue):  # with ways of their own
            continue
        rows = model.objects.filter(**{f"{column}__lt": now - kept_for(table)})
        if model is SchedulingSession:
            rows = rows.exclude(Exists(_still_to_do())).exclude(Exists(_kept_for_replay()))
        yield rows
    yield Session.objects.filter(expire_date__lt=now)
    yield Event.objects.filter(kind="Pod", last_at__lt=now - POD_EVENTS_KEPT)
    for seconds, kept in SAMPLES:
        yield QueueSample.objects.filter(seconds=seconds, at__lt=now - kept)
        yield LoanSample.objects.filter(seconds=seconds, at__lt=now - kept)
    for grain, seconds, kept in USAGE:
        yield UsageRow.objects.filter(grain=grain, seconds=seconds, at__lt=now - kept)
        if grain == UsageRow.CLUSTER:
            yield LossRow.objects.filter(seconds=seconds, at__lt=now - kept)
    yield StarvedRow.objects.filter(at__lt=now - FAIRNESS_KEPT)
    yield WaitRow.objects.filter(at__lt=now - FAIRNESS_KEPT)
    yield PodStretch.objects.filter(booked=True, ended_at__lt=now - STRETCHES_KEPT)
    if not is_kubernetes():  # there, what has ended goes when the cluster deletes it
        yield from _ended_long_ago(now)
    yield _forgotten_queues(now)


def _ended_long_ago(now: datetime) -> Iterable[Any]:
    ended = Job.objects.filter(~Exists(_on_nodes()), phase__in=ENDED)
    # SQLite multiplies no other kind of number with a length of time
    whole_seconds = Cast("ttl_seconds_after_finished", IntegerField())
    to_live = ExpressionWrapper(whole_seconds * Value(timedelta(seconds=1)), DurationField())
    yield ended.filter(finished_at__lt=ExpressionWrapper(Value(now) - to_live, DateTimeField()))
    yield ended.filter(ttl_seconds_after_finished=None, finished_at__lt=now - JOBS_KEPT)
    yield PodGroup.objects.filter(
        job=None, phase="Completed", finished_at__lt=now - timedelta(days=1)
    )


def _forgotten_queues(now: datetime) -> QuerySet[Queue]:
    """Deleted so long ago that no record of a job, and no other queue, refers to them any more."""
    deleted = Queue.with_deleted.filter(deleted_at__lt=now - kept_for("deleted_queues"))
    return deleted.filter(jobs=None, podgroups=None).exclude(
        Exists(Queue.with_deleted.filter(parent=OuterRef("pk")))
    )


def _on_nodes() -> QuerySet[Pod]:
    """Of a job: pods that the cluster has still to be told of, whatever has become of the job."""
    return Pod.objects.filter(podgroup__job=OuterRef("pk"), phase__in=OCCUPYING)


def _still_to_do() -> QuerySet[Decision]:
    """Of a session: decisions that nobody has carried out yet."""
    return Decision.objects.filter(session=OuterRef("pk"), done_at=None)


def _kept_for_replay() -> QuerySet[SavedScenario]:
    """Of a session: its page stays for as long as it can be run again."""
    return SavedScenario.objects.filter(session_number=OuterRef("number"))


def _prune_rows(rows: Any, until: float) -> None:
    has_pods = rows.model in (Job, PodGroup)
    if has_pods:
        step = STEP // 10
    else:
        step = STEP
    while time.monotonic() < until:
        with transaction.atomic():
            if has_pods:
                # nobody brings one back to life between being chosen and being deleted
                alone_with_pods()
            ids = _oldest_rows(rows, step)
            if has_pods and _prune_many_pods(rows.model, ids):
                continue
            if ids:
                rows.model._base_manager.filter(pk__in=ids).delete()
        if len(ids) < step:
            return


def _prune_many_pods(model: type[Job] | type[PodGroup], ids: list[Any]) -> bool:
    """A step of its own, where these have so many pods that one transaction would take long."""
    if model is Job:
        pods = Pod.objects.filter(podgroup__job__in=ids)
    else:
        pods = Pod.objects.filter(podgroup__in=ids)
    chosen = _oldest_rows(pods, STEP)
    if len(chosen) < STEP:
        return False
    Pod.objects.filter(pk__in=chosen).delete()
    return True


def _oldest_rows(rows: Any, step: int) -> list[Any]:
    return list(rows.order_by("pk").values_list("pk", flat=True)[:step])


def _prune_decisions(before: datetime, until: float) -> None:
    """By their numbers, which grow with time: an index of the moments would have to be written with
    every decision.

    What is still to be carried out stays, however long everything stood still: a pod would wait for
    it for ever.
    """
    while time.monotonic() < until:
        first = list(
            Decision.objects.exclude(done_at=None)
            .order_by("pk")
            .values_list("pk", "created_at")[:STEP]
        )
        old = [pk for pk, at in first if at < before]
        Decision.objects.filter(pk__in=old).delete()
        if len(old) < STEP:
            return


@transaction.atomic
def _prune_classes() -> None:
    """Classes that no pod has.

    Whoever is just using one holds it (`services.pods`), and it is passed over.
    """
    unused = "NOT EXISTS (SELECT 1 FROM scheduler_pod p WHERE p.pod_class_id = c.id)"
    if connection.vendor == "postgresql":
        lock = "FOR UPDATE SKIP LOCKED"
    else:
        lock = ""
    held = []
    for (pk,) in fetch(
        f"SELECT c.id FROM scheduler_podclass c WHERE {unused} ORDER BY c.id LIMIT 500 {lock}"
    ):
        held.append(pk)
    if held:
        used = (
            Pod.objects.filter(pod_class__in=held)
            .order_by()
            .values_list("pod_class_id", flat=True)
            .distinct()
        )
        PodClass.objects.filter(pk__in=set(held) - set(used)).delete()


@transaction.atomic
def _prune_changes() -> None:
    """Old entries of the change log.

    The horizon tells a reader that stopped before it to read everything again.
    """
    newest = Change.objects.aggregate(newest=Max("id"))["newest"] or 0
    oldest_kept = newest - CHANGES_KEPT
    if oldest_kept <= 0:
        return
    old = Change.objects.filter(id__lte=oldest_kept)
    position = oldest_kept
    if connection.vendor == "postgresql":
        position = _oldest_transaction_kept(oldest_kept)
        old = Change.objects.filter(transaction__lt=position)
    ChangeHorizon.objects.update_or_create(id=1, defaults={"position": position})
    old.delete()


def _oldest_transaction_kept(oldest_kept: int) -> int:
    """Never past the oldest transaction that still runs: that is where readers stand, and one held
    open must not make them start again.
    """
    kept = (
        Change.objects.filter(id__gt=oldest_kept).aggregate(first=Min("transaction"))["first"] or 0
    )
    ((running,),) = fetch("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
    return int(min(kept, running))
