"""The calendar, kept by a worker: what is due begins and ends. Any worker, any number of times."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from scheduler.domain.calendar import OccurrenceState, PlanState, Turn
from scheduler.models import ChangePlan, Occurrence
from scheduler.models.clock import database_now
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.change_sets.calendar_news import News, tell
from scheduler.services.change_sets.occurrences import (
    begin,
    end,
    finish_plan,
    locked_occurrence,
    take_up_again,
)
from scheduler.services.change_sets.outlook import renew_outlooks

logger = logging.getLogger(__name__)

_BEGINNING = (OccurrenceState.PLANNED.value, OccurrenceState.BEGINNING.value)
_ENDING = (OccurrenceState.HOLDING.value, OccurrenceState.ENDING.value)


def keep_calendar() -> None:
    """Everything that is due by the database's clock, in the order of its time.

    One that fails unexpectedly is logged, stops no other, and is tried again with the next tick.
    """
    now = database_now()
    _expect_again(now)
    for number in _without_next_turn(now):
        lay_out(number, now)
    for number, step in _due(now):
        try:
            step(number)
        except Exception as problem:
            logger.error("the occurrence %s failed", number, exc_info=problem)
    _let_conflicts_pass(now)
    renew_outlooks()


def _without_next_turn(now: datetime) -> list[int]:
    active = ChangePlan.objects.filter(state=PlanState.ACTIVE.value)
    known = active.annotate(newest=Max("occurrences__begins_at"))
    return list(known.exclude(newest__gt=now).order_by("pk").values_list("pk", flat=True))


def lay_out(number: int, now: datetime) -> None:
    """A row for each turn of a plan that has come, and for the next one."""
    with transaction.atomic():
        plan = ChangePlan.objects.select_for_update().get(pk=number)
        if not plan.is_active:
            return
        newest = plan.occurrences.order_by("-number").values_list("number", flat=True).first()
        first = 0
        if newest is not None:
            first = newest + 1
        turns = list(plan.timetable.turns_until(now, first))
        following = plan.timetable.turn(first + len(turns))
        if following is not None:
            turns.append(following)
        rows = [_row(plan, turn) for turn in turns]
        Occurrence.objects.bulk_create(rows, ignore_conflicts=True)


def _row(plan: ChangePlan, turn: Turn) -> Occurrence:
    return Occurrence(plan=plan, number=turn.number, begins_at=turn.begins_at, ends_at=turn.ends_at)


def _due(now: datetime) -> Iterable[tuple[int, Callable[[int], None]]]:
    """What ends at a moment ends before others begin."""
    steps: list[tuple[datetime, bool, int, int, Callable[[int], None]]] = []
    for row in Occurrence.objects.filter(state__in=_ENDING, ends_at__lte=now):
        assert row.ends_at is not None
        steps.append((row.ends_at, False, row.plan_id, row.pk, end))
    for row in Occurrence.objects.filter(state__in=_BEGINNING, begins_at__lte=now):
        steps.append((row.begins_at, True, row.plan_id, row.pk, begin))
        if row.ends_at is not None and row.ends_at <= now:
            steps.append((row.ends_at, False, row.plan_id, row.pk, end))
    for _, _, _, number, step in sorted(steps, key=lambda step: step[:4]):
        yield number, step


def _expect_again(now: datetime) -> None:
    """The clock was put back: what was taken for missed still has its time."""
    missed = Occurrence.objects.filter(state=OccurrenceState.MISSED.value, ends_at__gt=now)
    over = ChangePlan.objects.filter(state=PlanState.ENDED.value, occurrences__in=missed)
    for number in over.distinct().values_list("pk", flat=True):
        with transaction.atomic():
            take_up_again(number)
    missed.filter(plan__state=PlanState.ACTIVE.value).update(
        state=OccurrenceState.PLANNED.value, message=""
    )


def _let_conflicts_pass(now: datetime) -> None:
    """One that could not begin, and whose end has come: there is nothing left to decide."""
    late = Occurrence.objects.filter(
        state=OccurrenceState.BEGIN_CONFLICT.value, ends_at__lte=now
    ).values_list("pk", flat=True)
    for number in late:
        with transaction.atomic():
            row = locked_occurrence(number)
            if row.state == OccurrenceState.BEGIN_CONFLICT:
                _pass(row, now)


def _pass(row: Occurrence, now: datetime) -> None:
    row.state = OccurrenceState.MISSED
    row.message = f"Its time passed while it waited for a person. {row.message}"
    row.save()
    message = f"{row.plan.change_set.name} was missed: its conflict was not resolved in time."
    tell(row.plan, News.MISSED, message, SYSTEM, now)
    finish_plan(row.plan, now)
