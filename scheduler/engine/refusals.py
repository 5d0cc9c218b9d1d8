"""A "no" with the figures behind it, from which the words for people are made later and only if
needed.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.domain.reasons import ReasonCode


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One resource on one level: what was needed, the limit there, what is in use of it, and how
    much of that is lent and may come back.
    """

    resource: str
    level: str
    need: int
    limit: int
    used: int
    lent: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """`event` is Volcano's text for the podgroup's event, if it has one."""

    code: ReasonCode
    message: str = ""
    shortfalls: tuple[Shortfall, ...] = ()
    event: str = ""
