"""Turns that could not begin or end by themselves: a person decides."""

from __future__ import annotations

from django.db import transaction

from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.calendar import OccurrenceState
from scheduler.domain.change_sets import ChangeItem, with_item
from scheduler.domain.jobs.commands import NotPossible
from scheduler.models import ChangeSet, Occurrence
from scheduler.models.clock import database_now
from scheduler.selectors.change_sets.calendar import visible_occurrences
from scheduler.selectors.change_sets.objects import crossings_of
from scheduler.services.accounts.access import access_for
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.change_sets.apply import carry_out, for_the_set
from scheduler.services.change_sets.calendar_news import News, tell
from scheduler.services.change_sets.drafts import renewed
from scheduler.services.change_sets.occurrences import (
    backwards,
    finish_plan,
    locked_occurrence,
    note_begun,
    note_ended,
    send_begin,
    send_end,
)
from scheduler.services.change_sets.plans import require_say
from scheduler.services.cluster.queue_writes import are_queues_in_cluster, rehearsal

State = OccurrenceState
Items = tuple[ChangeItem, ...]


def visible_occurrence(number: int, by: Actor) -> Occurrence:
    row = visible_occurrences(access_for(by), by.name).filter(pk=number).first()
    if row is None:
        raise Occurrence.DoesNotExist(f"There is no occurrence {number}.")
    return row


def ways_out(row: Occurrence) -> Items:
    """What "bring up to date and apply now" would do, on the objects as they are."""
    items = row.plan.change_set.changes
    if row.state == State.END_CONFLICT:
        items = backwards(row)
    return _up_to_date(items)


def _up_to_date(items: Items) -> Items:
    for crossing in crossings_of(items):
        items = with_item(items, renewed(crossing.item, crossing.now))
    return items


def apply_now(number: int, *, by: Actor = SYSTEM, dry_run: bool = False) -> Occurrence:
    """Over what others changed meanwhile: at its begin what the set wants, at its end what was.

    Asks for the rights to all of it. Raises `NotPossible` for one that is no conflict or whose time
    is over, and what applying raises. Nothing is changed then.
    """
    visible = visible_occurrence(number, by)
    with rehearsal(dry_run):
        with transaction.atomic():
            row = locked_occurrence(visible.pk)
            _require_conflict(row)
            items = ways_out(row)
            if row.state == State.BEGIN_CONFLICT:
                _begin_now(row, items, by)
            else:
                _end_now(row, items, by)
            if dry_run:
                transaction.set_rollback(True)
        if are_queues_in_cluster():
            _send(row, by)
    row.refresh_from_db()
    return row


def _require_conflict(row: Occurrence) -> None:
    name = row.plan.change_set.name
    if not row.is_conflict:
        raise NotPossible(f"{name} is no conflict: this turn of it is {row.state}")
    if row.state == State.END_CONFLICT or row.ends_at is None:
        return
    if row.ends_at <= database_now():
        raise NotPossible(f"The time of this turn of {name} is over; skip it")


def _begin_now(row: Occurrence, items: Items, by: Actor) -> None:
    """The set keeps what it was brought up to: later turns begin from there."""
    if not items:
        message = "Everything is as the change set wants it already."
        raise Rejected([Violation("nothing_to_do", "", "", message, "skip this turn")])
    change_set = ChangeSet.objects.select_for_update().get(pk=row.plan.change_set_id)
    change_set.keep(items)
    change_set.resource_version += 1
    change_set.save()
    row.plan.change_set = change_set
    if are_queues_in_cluster():
        _claim(row, items, State.BEGINNING)
        return
    carry_out(items, for_the_set(by, change_set))
    now = database_now()
    note_begun(row, items, for_the_set(by, change_set), now)
    _tell_resolved(row, by)


def _end_now(row: Occurrence, items: Items, by: Actor) -> None:
    if are_queues_in_cluster():
        _claim(row, tuple(item.reversed for item in items), State.ENDING)
        return
    carry_out(items, for_the_set(by, row.plan.change_set))
    note_ended(row, by, database_now())
    _tell_resolved(row, by)


def _claim(row: Occurrence, items: Items, state: State) -> None:
    row.keep(items)
    row.state = state
    row.claimed_at = database_now()
    row.save()
    _tell_resolved(row, by=SYSTEM)


def _send(row: Occurrence, by: Actor) -> None:
    if row.state == State.BEGINNING:
        send_begin(row.pk, for_the_set(by, row.plan.change_set))
    else:
        send_end(row.pk, by)


def _tell_resolved(row: Occurrence, by: Actor) -> None:
    message = f"Resolved a conflict of {row.plan.change_set.name}: brought up to date and applied."
    tell(row.plan, News.RESOLVED, message, by, database_now())


def skip(number: int, *, by: Actor = SYSTEM, dry_run: bool = False) -> Occurrence:
    """A turn that is to come, or that could not begin, is left out. One that could not end is left
    as it is.

    Raises `NotPossible` for any other, and `Forbidden`.
    """
    visible = visible_occurrence(number, by)
    require_say(visible.plan, by)
    with transaction.atomic():
        row = locked_occurrence(visible.pk)
        now = database_now()
        name = row.plan.change_set.name
        if row.state == State.END_CONFLICT:
            note_ended(row, by, now, kept="What is there was kept as it is.")
        elif row.state in (State.PLANNED, State.BEGIN_CONFLICT):
            row.state = State.SKIPPED
            row.decided_by = by.name[:150]
            row.save()
            message = f"Skipped the turn of {name} at {row.begins_at:%Y-%m-%d %H:%M} UTC."
            tell(row.plan, News.SKIPPED, message, by, now)
            finish_plan(row.plan, now)
        else:
            raise NotPossible(f"This turn of {name} is {row.state} and cannot be skipped")
        if dry_run:
            transaction.set_rollback(True)
    return row
