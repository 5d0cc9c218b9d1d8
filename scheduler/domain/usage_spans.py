"""Which stretch of usage is asked for, and in which steps. Days are those of UTC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

HOURS: Final = "hour"
DAYS: Final = "day"
WEEKS: Final = "week"
MONTHS: Final = "month"
STEPS: Final = (HOURS, DAYS, WEEKS, MONTHS)
WINDOWS: Final = {"24h": 1, "7d": 7, "30d": 30, "365d": 365}
"""In days. They end with the present hour, or with today."""
DEFAULT_WINDOW: Final = "7d"
MOST_DAYS: Final = 800
MOST_HOURS: Final = 35 * 24
_DEFAULT_STEPS: Final = ((1, HOURS), (62, DAYS), (200, WEEKS))


class BadSpan(ValueError):
    """`field` names the parameter that is wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class UsageSpan:
    """From `start` up to, but without, `end`."""

    start: datetime
    end: datetime
    step: str
    window: str = ""

    @property
    def days(self) -> float:
        return (self.end - self.start) / timedelta(days=1)

    @property
    def is_hourly(self) -> bool:
        return self.step == HOURS

    def beginning_of(self, moment: datetime) -> datetime:
        """Of the step that it is in; the first may begin before the span."""
        day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        if self.step == HOURS:
            return moment.replace(minute=0, second=0, microsecond=0)
        if self.step == WEEKS:
            return day - timedelta(days=day.weekday())
        if self.step == MONTHS:
            return day.replace(day=1)
        return day

    def beginnings(self) -> Iterator[datetime]:
        current = self.beginning_of(self.start)
        while current < self.end:
            yield current
            current = self._next(current)

    def _next(self, start: datetime) -> datetime:
        if self.step == HOURS:
            return start + timedelta(hours=1)
        if self.step == DAYS:
            return start + timedelta(days=1)
        if self.step == WEEKS:
            return start + timedelta(days=7)
        return (start + timedelta(days=32)).replace(day=1)


def span_of(
    now: datetime, window: str = "", first: str = "", last: str = "", step: str = ""
) -> UsageSpan:
    """The window, or the days from `first` to `last`, both included. Raises `BadSpan`."""
    now = now.astimezone(UTC)
    if first or last:
        if window:
            raise BadSpan("window", "Give either a window or days, not both.")
        start, end = _days(first, last, now)
        window = ""
    else:
        window = window or DEFAULT_WINDOW
        start, end = _window(window, now)
    found = UsageSpan(start, end, step or _default_step(start, end), window)
    if found.is_hourly and found.days * 24 > MOST_HOURS:
        message = f"Hours are shown for {MOST_HOURS // 24} days at most; choose another step."
        raise BadSpan("step", message)
    return found


def month_span(month: str) -> UsageSpan:
    """Of a whole month, "2026-11". Raises `BadSpan`."""
    try:
        if len(month) != len("2026-11"):
            raise ValueError
        first = date.fromisoformat(f"{month}-01")
        start = _midnight(first)
        end = _midnight((first + timedelta(days=32)).replace(day=1))
    except (ValueError, OverflowError):
        message = f"“{month[:20]}” is not a month; write year and month, such as 2026-11."
        raise BadSpan("month", message) from None
    return UsageSpan(start, end, DAYS)


def _window(window: str, now: datetime) -> tuple[datetime, datetime]:
    if window not in WINDOWS:
        message = f"There is no window “{window[:20]}”. There are {', '.join(WINDOWS)}."
        raise BadSpan("window", message)
    length = timedelta(days=WINDOWS[window])
    if window == "24h":
        end = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    else:
        end = _midnight(now.date()) + timedelta(days=1)
    return end - length, end


def _days(first: str, last: str, now: datetime) -> tuple[datetime, datetime]:
    try:
        end = _midnight(_day("to", last) if last else now.date()) + timedelta(days=1)
        start = _midnight(_day("from", first)) if first else end - timedelta(days=30)
    except OverflowError:
        raise BadSpan("from", "These days are too far away.") from None
    if start >= end:
        raise BadSpan("from", "The first day is after the last one.")
    if (end - start).days > MOST_DAYS:
        raise BadSpan("from", f"That is {(end - start).days} days; {MOST_DAYS} are the most.")
    return start, end


def _day(field: str, text: str) -> date:
    try:
        found = date.fromisoformat(text.strip())
    except ValueError:
        found = date.min
    if not 1970 <= found.year <= 9000:
        raise BadSpan(field, f"“{text[:20]}” is not a day; write it as 2026-11-18.")
    return found


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


def _default_step(start: datetime, end: datetime) -> str:
    for most, step in _DEFAULT_STEPS:
        if (end - start).days <= most:
            return step
    return MONTHS
