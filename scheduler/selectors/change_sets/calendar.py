"""Plans of change sets: which there are, what they will do, and who may see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from scheduler.domain.access import Access
from scheduler.domain.calendar import (
    CONFLICTS,
    HORIZON,
    IN_FORCE,
    OPEN,
    OccurrenceState,
    PlanState,
    Turn,
)
from scheduler.domain.change_sets import Manifest
from scheduler.domain.foresight import Booking, Key
from scheduler.models import ChangePlan, Occurrence
from scheduler.selectors.change_sets.listing import visible_sets
from scheduler.selectors.change_sets.objects import manifests_now


def visible_plans(access: Access, reader: str) -> QuerySet[ChangePlan]:
    """Those of change sets that the reader may see."""
    plans = ChangePlan.objects.select_related("change_set", "planner")
    if access.sees_everything:
        return plans
    return plans.filter(change_set__in=visible_sets(access, reader))


def visible_occurrences(access: Access, reader: str) -> QuerySet[Occurrence]:
    found = Occurrence.objects.select_related("plan__change_set")
    if access.sees_everything:
        return found
    return found.filter(plan__change_set__in=visible_sets(access, reader))


def conflicts_seen(access: Access, reader: str) -> QuerySet[Occurrence]:
    """What waits for a person."""
    return visible_occurrences(access, reader).filter(state__in=CONFLICTS)


def bookings(now: datetime, without: ChangePlan | None = None) -> list[Booking]:
    """Everything that is planned, and what is in force of it."""
    concerned = Q(state=PlanState.ACTIVE.value) | Q(occurrences__state__in=IN_FORCE)
    plans = ChangePlan.objects.filter(concerned).distinct().select_related("change_set")
    if without is not None:
        plans = plans.exclude(pk=without.pk)
    found = []
    for plan in plans.order_by("pk").prefetch_related("occurrences"):
        found.append(booking_of(plan, list(plan.occurrences.all()), now))
    return found


def booking_of(plan: ChangePlan, occurrences: Sequence[Occurrence], now: datetime) -> Booking:
    """With every turn to come within the horizon."""
    turns = []
    if plan.is_active:
        begun = {row.number for row in occurrences if row.state != OccurrenceState.PLANNED}
        for turn in plan.timetable.turns_until(now + HORIZON):
            if turn.number not in begun and not _is_over(turn, now):
                turns.append(turn)
    for row in occurrences:
        if row.state in IN_FORCE:
            return Booking(
                plan.pk, plan.change_set.changes, tuple(turns), row.applied, row.ends_at or now
            )
    return Booking(plan.pk, plan.change_set.changes, tuple(turns))


def _is_over(turn: Turn, now: datetime) -> bool:
    return turn.ends_at is not None and turn.ends_at <= now


def objects_of(found: Iterable[Booking]) -> dict[Key, Manifest]:
    """What the plans are about, as it is now."""
    keys: set[Key] = set()
    for booking in found:
        keys.update(item.key for item in (*booking.items, *booking.held))
    return manifests_now(keys)


@dataclass(frozen=True, slots=True)
class Entry:
    """One turn in the calendar. `row` is None while nothing is written about it."""

    plan: ChangePlan
    turn: Turn
    state: str
    row: Occurrence | None = None


def entries_between(plans: Iterable[ChangePlan], start: datetime, end: datetime) -> list[Entry]:
    """The turns that hold or begin between two moments, in the order of their begin."""
    found = []
    for plan in plans:
        rows = {row.number: row for row in plan.occurrences.all()}
        for turn in plan.timetable.turns_until(end):
            if (turn.ends_at or turn.begins_at) < start or turn.begins_at >= end:
                continue
            row = rows.get(turn.number)
            if row is not None:
                found.append(Entry(plan, _turn_of(row), row.state, row))
            elif plan.is_active:
                found.append(Entry(plan, turn, OccurrenceState.PLANNED.value))
    return sorted(found, key=lambda entry: (entry.turn.begins_at, entry.plan.pk))


def _turn_of(row: Occurrence) -> Turn:
    return Turn(row.number, row.begins_at, row.ends_at)


def has_open_occurrences(plan: ChangePlan) -> bool:
    return plan.occurrences.filter(state__in=OPEN).exists()
