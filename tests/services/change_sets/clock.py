"""A database clock that a test sets, for the calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.services.change_sets import calendar, conflicts, occurrences, outlook, plans

_READERS = (calendar, conflicts, occurrences, outlook, plans)


class SetClock:
    """Shows what it is set to. It stands still by itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
        self.now = now
        for module in _READERS:
            monkeypatch.setattr(module, "database_now", lambda: self.now)

    def set(self, text: str) -> None:
        self.now = at(text)

    def pass_by(self, **time: float) -> None:
        self.now += timedelta(**time)


def at(text: str) -> datetime:
    """UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
