"""Lengths of time as Go, and with it Kubernetes, writes them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER = r"(\d{1,18}(?:\.\d{0,9})?|\.\d{1,9})"
_PLAIN = re.compile(_NUMBER, re.ASCII)
_PART = re.compile(f"{_NUMBER}(ms|s|m|h)", re.ASCII)


def seconds_between(begin: datetime, end: datetime) -> float:
    """Never negative: where the clock was put back in between, nobody knows how long it was."""
    return max(0.0, (end - begin).total_seconds())


def seconds_in(text: str) -> float | None:
    """From texts such as 90s, 1h30m or a plain number of seconds; None for anything else."""
    if _PLAIN.fullmatch(text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
