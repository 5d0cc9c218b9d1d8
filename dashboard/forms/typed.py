"""Numbers and moments as people type them into an address or a form. Nothing here raises."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, tzinfo

# Every database and every time zone can count with these.
_FIRST_YEAR = 1970
_LAST_YEAR = 9000
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_SIGNED = re.compile(r"\s*-?\d{1,18}\s*", re.ASCII)


def whole_number(text: str) -> int | None:
    """None where it is none, or larger than any that a database counts with."""
    if not _WHOLE.fullmatch(text):
        return None
    return int(text)


def number_or_text(text: str) -> int | str:
    """The text itself where it is no whole number, for the rules to refuse by its name."""
    if not _SIGNED.fullmatch(text):
        return text
    return int(text)


def moment_of(text: str, zone: tzinfo, *, end_of_day: bool = False) -> datetime | None:
    """A moment, or the start of a day in that zone; with `end_of_day` the start of the next day.

    None where the text is neither a moment nor a day.
    """
    try:
        if len(text) <= len("2026-01-31"):
            day = date.fromisoformat(text) + timedelta(days=int(end_of_day))
            moment = datetime.combine(day, time.min, zone)
        else:
            moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        return None
    return moment
