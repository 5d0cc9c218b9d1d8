"""Can what is planned be done? Judged when something is planned, and again and again until then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from scheduler.domain.calendar import PlanState
from scheduler.domain.change_sets import ChangeItem, Crossed
from scheduler.domain.foresight import (
    Booking,
    Trouble,
    changed_by,
    difference,
    look_ahead,
    objects_at,
    settle_all,
)
from scheduler.domain.plans import listed
from scheduler.models import ChangePlan, ChangeSet
from scheduler.models.clock import database_now
from scheduler.selectors.change_sets.calendar import bookings, objects_of
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.change_sets.calendar_news import News, tell
from scheduler.services.change_sets.verdicts import verdict_on

JUDGED_EVERY = timedelta(seconds=60)


def troubles_of(found: Sequence[Booking]) -> tuple[Trouble, ...]:
    """The first trouble of each plan, judged on the tree as it is now and will be."""
    return look_ahead(found, objects_of(found), _judge)


def _judge(items: tuple[ChangeItem, ...]) -> tuple[str, ...]:
    verdict = verdict_on(items, by=SYSTEM)
    found = [violation.message for violation in verdict.violations]
    found += [crossing.message for crossing in verdict.crossings]
    return tuple(dict.fromkeys(found))  # each child of a broken sum is told the same


@dataclass(frozen=True, slots=True)
class PlannedThen:
    """What would differ from now at a moment, without a set and with it."""

    without: tuple[ChangeItem, ...]
    with_it: tuple[ChangeItem, ...]


def planned_then(
    items: tuple[ChangeItem, ...], moment: datetime, change_set: ChangeSet | None
) -> PlannedThen:
    """With all that others have planned until then. Raises `Crossed` where that is in the way."""
    own = None
    if change_set is not None:
        own = change_set.plans.filter(state=PlanState.ACTIVE.value).first()
    others = bookings(database_now(), without=own)
    now = objects_of([*others, Booking(0, items)])
    then = objects_at(others, now, moment)
    found = settle_all(items, then)
    if found.crossings:
        raise Crossed(found.crossings)
    return PlannedThen(difference(now, then), difference(now, changed_by(then, found.items)))


def trouble_words(trouble: Trouble, names: dict[int, str]) -> str:
    """ "It cannot begin at 2026-11-20 18:00 UTC, while Night shift is in force: …"."""
    verb = "begin"
    if not trouble.begins:
        verb = "end"
    words = f"It cannot {verb} at {trouble.at:%Y-%m-%d %H:%M} UTC"
    known = [names[plan] for plan in sorted(trouble.others) if plan in names]
    if known:
        words += f", while {listed(known)} {_are(known)} in force"
    elif trouble.others:
        words += ", together with other plans"
    return f"{words}: {' '.join(trouble.messages)}"


def _are(names: Sequence[str]) -> str:
    if len(names) == 1:
        return "is"
    return "are"


def renew_outlooks(*, at_once: bool = False) -> None:
    """What stands against the turns to come. What is new is told."""
    now = database_now()
    active = ChangePlan.objects.filter(state=PlanState.ACTIVE.value).select_related("change_set")
    plans = list(active)
    if not plans:
        return
    if not at_once and not any(_is_due(plan, now) for plan in plans):
        return
    names = {plan.pk: plan.change_set.name for plan in plans}
    found = {trouble.plan: trouble for trouble in troubles_of(bookings(now))}
    for plan in plans:
        trouble = found.get(plan.pk)
        told = []
        if trouble is not None:
            told = [
                {
                    "at": trouble.at.isoformat(),
                    "begins": trouble.begins,
                    "message": trouble_words(trouble, names),
                }
            ]
        _keep(plan, told, now)


def _is_due(plan: ChangePlan, now: datetime) -> bool:
    """Also after the clock was put back."""
    return plan.judged_at is None or not plan.judged_at <= now < plan.judged_at + JUDGED_EVERY


def _keep(plan: ChangePlan, told: list[dict[str, object]], now: datetime) -> None:
    with transaction.atomic():
        row = ChangePlan.objects.select_for_update().get(pk=plan.pk)
        is_new = bool(told) and not row.outlook
        ChangePlan.objects.filter(pk=plan.pk).update(outlook=told, judged_at=now)
        if is_new and row.is_active:
            message = f"{plan.change_set.name}: {told[0]['message']}"
            brief = f"{plan.change_set.name} cannot be done as planned. Its page says why."
            tell(plan, News.FORESEEN, message, SYSTEM, now, brief)
