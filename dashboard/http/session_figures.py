"""What sessions did and took since this process started, counted from their rows for /metrics.

As in Volcano, whose scheduler counts in memory, a restart begins again at zero. Prometheus expects
that of counters. Each reading takes only the rows that are new since the last one.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.models import Max, Model
from django.utils import timezone

from scheduler.domain.durations import seconds_between
from scheduler.models import Decision, Eviction, PodGroup, SchedulingSession

VOLCANO_BOUNDS: Final = tuple(5.0 * 2**power for power in range(15))
"""Milliseconds, as Volcano has them for sessions, actions and tasks."""
VOLCANO_JOB_BOUNDS: Final = tuple(32.0 * 2**power for power in range(10))
SECONDS_BOUNDS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)


class Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.sum = 0.0
        self._counts = [0] * (len(bounds) + 1)  # the last is for what is above all bounds

    def note(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """How many are at most so large, by bound, as Prometheus has them."""
        running = 0
        buckets = []
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self._counts, strict=True):
            running += count
            buckets.append((bound, float(running)))
        return buckets


@dataclass(slots=True)
class Counted:
    """All figures; times are in milliseconds, except for `parts`."""

    session: Histogram = field(default_factory=lambda: Histogram(VOLCANO_BOUNDS))
    opening: Histogram = field(default_factory=lambda: Histogram(VOLCANO_BOUNDS))
    actions: dict[str, Histogram] = field(default_factory=dict)
    parts: dict[str, Histogram] = field(default_factory=dict)  # in seconds
    tasks: Histogram = field(default_factory=lambda: Histogram(VOLCANO_BOUNDS))
    jobs: Histogram = field(default_factory=lambda: Histogram(VOLCANO_JOB_BOUNDS))
    preemption_attempts: int = 0
    preemption_victims: int = 0  # of the last session that had any
    evictions: Counter[tuple[str, str, str]] = field(
        default_factory=Counter
    )  # by action, queue and reason
    transactions: Counter[str] = field(default_factory=Counter)  # by action


class SessionFigures:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started_at = timezone.now()
        self._counted = Counted()
        self._seen: dict[type[Model], int] = {}  # the newest row of each table that was counted
        self._jobs_until = self._started_at

    def read(self) -> Counted:
        with self._lock:
            self._count_sessions()
            self._count_tasks()
            self._count_evictions()
            return self._counted

    def _new_rows(self, model: type[Model], time_field: str) -> Any:
        """Oldest first. A database that was put back to an older state begins where it stands."""
        rows = model._default_manager.order_by("pk")
        newest = rows.aggregate(newest=Max("pk"))["newest"] or 0
        if model in self._seen:
            rows = rows.filter(pk__gt=min(self._seen[model], newest))
        else:
            rows = rows.filter(**{f"{time_field}__gte": self._started_at})
        return rows

    def _count_sessions(self) -> None:
        rows = self._new_rows(SchedulingSession, "started_at").exclude(finished_at=None)
        for session in rows.only("started_at", "finished_at", "durations", "counts", "state"):
            self._seen[SchedulingSession] = session.pk
            if session.state == SchedulingSession.DONE:
                self._counted.session.note(
                    seconds_between(session.started_at, session.finished_at) * 1000
                )
                self._note_parts(session)
                self._count_jobs(session.started_at)

    def _note_parts(self, session: SchedulingSession) -> None:
        counted = self._counted
        durations: dict[str, Any] = dict(session.durations)
        actions: dict[str, float] = durations.pop("actions", {})
        counted.opening.note(float(durations.get("claim", 0)) + float(durations.get("read", 0)))
        counted.preemption_attempts += int(session.counts.get("preemptionAttempts", 0))
        for name, milliseconds in actions.items():
            counted.actions.setdefault(name, Histogram(VOLCANO_BOUNDS)).note(float(milliseconds))
        for name, milliseconds in durations.items():
            counted.parts.setdefault(name, Histogram(SECONDS_BOUNDS)).note(
                float(milliseconds) / 1000
            )

    def _count_jobs(self, until: datetime) -> None:
        """Gangs that started before `until`.

        What happened before a session began is in the database when the session has ended.
        """
        if until <= self._jobs_until:
            return
        started = PodGroup.objects.filter(started_at__gt=self._jobs_until, started_at__lte=until)
        for group in started.only("created_at", "started_at"):
            self._counted.jobs.note(
                seconds_between(group.created_at, group.started_at or until) * 1000
            )
        self._jobs_until = until

    def _count_tasks(self) -> None:
        rows = self._new_rows(Decision, "created_at").values_list(
            "pk", "kind", "created_at", "pod__created_at"
        )
        for pk, kind, decided_at, created_at in rows:
            self._seen[Decision] = pk
            if kind == Decision.BIND and created_at is not None:
                self._counted.tasks.note(seconds_between(created_at, decided_at) * 1000)

    def _count_evictions(self) -> None:
        fields = ("pk", "action", "queue_name", "reason", "session_number", "beneficiary")
        victims: Counter[int] = Counter()
        transactions = set()
        for pk, action, queue, reason, session, beneficiary in self._new_rows(
            Eviction, "created_at"
        ).values_list(*fields):
            self._seen[Eviction] = pk
            self._counted.evictions[action, queue, reason] += 1
            transactions.add((session, action, beneficiary))
            if action == "preempt":
                victims[session] += 1
        self._counted.transactions.update(action for _, action, _ in transactions)
        if victims:
            self._counted.preemption_victims = victims[max(victims)]


SESSIONS = SessionFigures()
