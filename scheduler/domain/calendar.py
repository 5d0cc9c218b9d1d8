"""Changes that begin and end at set times: once, or every week.

Times are those of a wall clock in a time zone, so a plan keeps its hours when clocks are changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import count
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

_NO_ZONES: Final = frozenset({"localtime", "Factory"})
"""Files beside the zones: one is whatever the machine has, the other says that nothing was set."""
WEEK: Final = timedelta(days=7)
HORIZON: Final = timedelta(days=371)
"""How far ahead plans are laid out and judged: a year, with every change of clocks in it."""


class PlanState(StrEnum):
    ACTIVE = "Active"
    CANCELLED = "Cancelled"
    ENDED = "Ended"


class OccurrenceState(StrEnum):
    """`Beginning` and `Ending` are for real clusters, where sending takes a while."""

    PLANNED = "Planned"
    BEGINNING = "Beginning"
    HOLDING = "Holding"
    ENDING = "Ending"
    ENDED = "Ended"
    BEGIN_CONFLICT = "BeginConflict"
    END_CONFLICT = "EndConflict"
    MISSED = "Missed"
    SKIPPED = "Skipped"
    CANCELLED = "Cancelled"


CONFLICTS: Final = (OccurrenceState.BEGIN_CONFLICT, OccurrenceState.END_CONFLICT)
IN_FORCE: Final = (
    OccurrenceState.HOLDING,
    OccurrenceState.ENDING,
    OccurrenceState.END_CONFLICT,
)
"""Its change is there and has not been taken back."""
OPEN: Final = (
    OccurrenceState.PLANNED,
    OccurrenceState.BEGINNING,
    OccurrenceState.BEGIN_CONFLICT,
    *IN_FORCE,
)
"""Something is still to come of it."""


def is_time_zone(name: str) -> bool:
    return name in available_timezones() and name not in _NO_ZONES


@dataclass(frozen=True, slots=True)
class Turn:
    """One time that a plan begins, and ends if it ends at all. `number` counts from 0."""

    number: int
    begins_at: datetime
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class Timetable:
    """`begins` and `ends` are wall times of the first turn, without a zone of their own.

    `last` is the last day on which a weekly plan may begin.
    """

    begins: datetime
    ends: datetime | None
    zone: str
    weekly: bool = False
    last: date | None = None

    def turn(self, number: int) -> Turn | None:
        """None after the last one."""
        if number and not self.weekly:
            return None
        begins = self.begins + number * WEEK
        if self.last is not None and begins.date() > self.last:
            return None
        ends_at = None
        if self.ends is not None:
            ends_at = moment_of(self.ends + number * WEEK, self.zone)
        return Turn(number, moment_of(begins, self.zone), ends_at)

    def turns_until(self, moment: datetime, first: int = 0) -> Iterator[Turn]:
        """Those that begin by then, from the turn with the number `first`."""
        for number in count(first):
            turn = self.turn(number)
            if turn is None or turn.begins_at > moment:
                return
            yield turn

    @property
    def in_words(self) -> str:
        """ "Fridays 18:00 to Mondays 08:00, Europe/Berlin, until 2026-12-31"."""
        words = _time_words(self.begins, self.weekly)
        if self.ends is not None:
            words += f" to {_time_words(self.ends, self.weekly)}"
        words += f", {self.zone}"
        if self.last is not None:
            words += f", until {self.last:%Y-%m-%d}"
        return words


def _time_words(wall: datetime, weekly: bool) -> str:
    if weekly:
        return f"{wall:%A}s {wall:%H:%M}"
    return f"{wall:%A} {wall:%Y-%m-%d %H:%M}"


def moment_of(wall: datetime, zone: str) -> datetime:
    """The moment at which a clock of the zone shows this.

    Of an hour that comes twice it is the first. For a time that is left out, because clocks are
    put forward, it is the moment of the change: so what begins before it ends still does.
    """
    place = ZoneInfo(zone)
    first = wall.replace(tzinfo=place, fold=0).astimezone(UTC)
    if first.astimezone(place).replace(tzinfo=None) == wall:
        return first
    second = wall.replace(tzinfo=place, fold=1).astimezone(UTC)
    return _change_of_clocks(second, first, place)


def _change_of_clocks(before: datetime, after: datetime, place: ZoneInfo) -> datetime:
    """The first second after `before` with the offset that holds at `after`."""
    wanted = after.astimezone(place).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
        if middle.astimezone(place).utcoffset() == wanted:
            after = middle
        else:
            before = middle
    return after
