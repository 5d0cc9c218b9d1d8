"""The clock that all processes share: the database's. Those of other machines may differ."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.utils import timezone

_CLOCK = "statement_timestamp()"


def database_now() -> datetime:
    """For whatever another process compares with its own time: claims, pauses, patience."""
    if connection.vendor != "postgresql":
        return timezone.now()  # SQLite has no clock but that of this machine
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_CLOCK}")
        (now,) = cursor.fetchone()
    assert isinstance(now, datetime)
    return now


def clock_in_sql() -> tuple[str, list[datetime]]:
    """For a statement that is written out: the present moment, and the parameters of it."""
    if connection.vendor == "postgresql":
        return _CLOCK, []
    return "%s", [timezone.now()]
