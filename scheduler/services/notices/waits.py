"""Jobs that wait longer than usual: looked for now and then, for those who asked.

What is usual is what the page of a job says: how long jobs of about this size, that started last
in the queue, had waited.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from django.db.models import QuerySet
from django.utils import timezone

from scheduler.domain.durations import seconds_between
from scheduler.domain.notices import Note, NoticeKind
from scheduler.models import Notice, NoticeRule, PodGroup
from scheduler.selectors.jobs.gangs import WAITING
from scheduler.selectors.jobs.page import usual_wait
from scheduler.selectors.notices.rules import active_rules
from scheduler.selectors.queues.objects import names_in_records
from scheduler.services.notices.publish import publish

MOST_GANGS: Final = 500
"""Of each rule, those that wait longest."""
SHORTEST: Final = 60.0
"""Seconds. Where jobs start at once, a few seconds more are no news."""


def look_for_long_waits() -> None:
    rules = list(active_rules({NoticeKind.JOB_WAITS_LONG}).select_related("user", "queue"))
    if not rules:
        return
    usual = _UsualWaits()
    now = timezone.now()
    notes: dict[str, Note] = {}
    for rule in rules:
        for note in _long_waits(rule, usual, now):
            notes[note.key] = note
    told = set(Notice.objects.filter(key__in=notes).values_list("key", flat=True))
    publish(note for key, note in notes.items() if key not in told)


class _UsualWaits:
    """Asked once for each queue and size."""

    def __init__(self) -> None:
        self._known: dict[Any, float | None] = {}

    def of(self, gang: PodGroup) -> float | None:
        """Seconds; None where too few have started."""
        key = (gang.queue_id, str(gang.min_resources))
        if key not in self._known:
            quarters, _ = usual_wait(gang.queue_id, gang.min_resources)
            self._known[key] = quarters[1] if quarters else None
        return self._known[key]


def _long_waits(rule: NoticeRule, usual: _UsualWaits, now: datetime) -> Iterator[Note]:
    for gang in _waiting_gangs(rule):
        median = usual.of(gang)
        if median is None:
            continue
        waited = seconds_between(gang.created_at, now)
        if waited > rule.times_usual * max(median, SHORTEST):
            yield _note(gang, rule, waited, median)


def _waiting_gangs(rule: NoticeRule) -> Iterable[PodGroup]:
    gangs: QuerySet[PodGroup] = PodGroup.objects.filter(phase__in=WAITING, started_at=None)
    if rule.queue:
        gangs = gangs.filter(queue__name__in=names_in_records(rule.queue.name))
    else:
        gangs = gangs.filter(owner=rule.user.get_username())
    return gangs.select_related("queue").order_by("created_at")[:MOST_GANGS]


def _note(gang: PodGroup, rule: NoticeRule, waited: float, median: float) -> Note:
    return Note(
        NoticeKind.JOB_WAITS_LONG,
        f"waits:{gang.uid}:{rule.user_id}",
        f"Job {gang.namespace}/{gang.name} waits longer than usual",
        f"It has waited for {_minutes(waited)}. Jobs like it waited for {_minutes(median)}. "
        f"{gang.reason_message}".strip(),
        queue=gang.queue.name,
        namespace=gang.namespace,
        name=gang.name,
        owner=gang.owner,
        users=(rule.user.get_username(),),
    )


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{round(seconds)} seconds"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"
