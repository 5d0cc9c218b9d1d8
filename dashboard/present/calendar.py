"""Planned changes as a month of days, in the reader's time zone."""

from __future__ import annotations

import calendar
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from scheduler.domain.calendar import OccurrenceState
from scheduler.selectors.change_sets.calendar import Entry

STATE_WORDS = {
    OccurrenceState.PLANNED.value: "planned",
    OccurrenceState.BEGINNING.value: "beginning",
    OccurrenceState.HOLDING.value: "in force",
    OccurrenceState.ENDING.value: "ending",
    OccurrenceState.ENDED.value: "ended",
    OccurrenceState.BEGIN_CONFLICT.value: "could not begin",
    OccurrenceState.END_CONFLICT.value: "could not end",
    OccurrenceState.MISSED.value: "missed",
    OccurrenceState.SKIPPED.value: "skipped",
    OccurrenceState.CANCELLED.value: "cancelled",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A turn on one day: "from 18:00", "all day", "until 08:00"."""

    number: int
    name: str
    when: str
    state: str
    in_words: str


@dataclass(slots=True)
class Day:
    day: date
    is_today: bool
    in_month: bool
    entries: list[Shown] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Month:
    first: date
    days: tuple[Day, ...]

    @property
    def earlier(self) -> str:
        return f"{self.first - timedelta(days=1):%Y-%m}"

    @property
    def later(self) -> str:
        return f"{self.first + timedelta(days=31):%Y-%m}"

    @property
    def has_entries(self) -> bool:
        return any(day.entries for day in self.days)


def span_of(first: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The whole weeks, from Monday, that a month touches."""
    days = _days_around(first)
    start = datetime.combine(days[0], time(), zone)
    return start, datetime.combine(days[-1] + timedelta(days=1), time(), zone)


def _days_around(first: date) -> list[date]:
    return list(calendar.Calendar().itermonthdates(first.year, first.month))


def month_of(entries: Iterable[Entry], first: date, today: date, zone: ZoneInfo) -> Month:
    days = {}
    for day in _days_around(first):
        days[day] = Day(day, day == today, day.month == first.month)
    for entry in entries:
        begins = entry.turn.begins_at.astimezone(zone)
        ends = begins
        if entry.turn.ends_at is not None:
            ends = entry.turn.ends_at.astimezone(zone)
        for day, shown in days.items():
            if begins.date() <= day <= _last_day(begins, ends):
                shown.entries.append(_shown(entry, day, begins, ends))
    return Month(first, tuple(days.values()))


def _last_day(begins: datetime, ends: datetime) -> date:
    """One that ends at midnight does not reach into the next day."""
    if ends > begins and ends.time() == time():
        return ends.date() - timedelta(days=1)
    return ends.date()


def _shown(entry: Entry, day: date, begins: datetime, ends: datetime) -> Shown:
    state = entry.state
    return Shown(
        entry.plan.change_set_id,
        entry.plan.change_set.name,
        _when(entry, day, begins, ends),
        state,
        STATE_WORDS.get(state, state),
    )


def _when(entry: Entry, day: date, begins: datetime, ends: datetime) -> str:
    begins_then = begins.date() == day
    ends_then = _last_day(begins, ends) == day
    if entry.turn.ends_at is None:
        return f"at {begins:%H:%M}"
    if begins_then and ends_then:
        return f"{begins:%H:%M} to {_end_words(ends)}"
    if begins_then:
        return f"from {begins:%H:%M}"
    if ends_then:
        return f"until {_end_words(ends)}"
    return "all day"


def _end_words(ends: datetime) -> str:
    if ends.time() == time():
        return "24:00"
    return f"{ends:%H:%M}"
