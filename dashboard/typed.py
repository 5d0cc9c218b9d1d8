"""Numbers as people type them into an address or a form; what is none is never an error here."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_SIGNED = re.compile(r"\s*-?\d{1,18}\s*", re.ASCII)


def whole_number(text: str) -> int | None:
    """None where it is none, or larger than any that a database counts with."""
    return int(text) if _WHOLE.fullmatch(text) else None


def number_or_text(text: str) -> int | str:
    """The text itself where it is no whole number, for the rules to refuse by its name."""
    return int(text) if _SIGNED.fullmatch(text) else text
