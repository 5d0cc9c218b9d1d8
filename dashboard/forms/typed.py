"""Numbers and moments as people type them into an address or a form; what is none is never an error here."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, tzinfo

_FIRST_YEAR, _LAST_YEAR = 1970, 9000  # what every database and every zone can count with
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_SIGNED = re.compile(r"\s*-?\d{1,18}\s*", re.ASCII)


def whole_number(text: str) -> int | None:
    """None where it is none, or larger than any that a database counts with."""
    return int(text) if _WHOLE.fullmatch(text) else None


def number_or_text(text: str) -> int | str:
    """The text itself where it is no whole number, for the rules to refuse by its name."""
    return int(text) if _SIGNED.fullmatch(text) else text


def moment_of(text: str, zone: tzinfo, *, end_of_day: bool = False) -> datetime | None:
    """A moment, or the beginning of a day in that zone; with `end_of_day` the beginning of the next one. None where it is neither."""
    try:
        if len(text) <= len("2026-01-31"):
            day = date.fromisoformat(text) + timedelta(days=1 if end_of_day else 0)
            moment = datetime.combine(day, time.min, zone)
        else:
            moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    return moment if _FIRST_YEAR <= moment.year <= _LAST_YEAR else None
