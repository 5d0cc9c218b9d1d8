"""What a question about a waiting gang finds, and the words for amounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from scheduler.domain.reasons import ReasonCode
from scheduler.domain.resources import format_quantity
from scheduler.engine.decisions import Check
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


class Finding(NamedTuple):
    """One reason why a gang has not started: its code, one sentence, and the figures behind it."""

    code: ReasonCode
    message: str
    figures: Mapping[str, object]


Question = Callable[[Session, Gang], Finding | None]


def quantity(resource: str, amount: int) -> str:
    """For people: "4 cpu", "16Gi memory"."""
    return f"{format_quantity(resource, amount)} {resource}"


def use_words(check: Check) -> str:
    """ "5 in use, 2 promised": what pods hold and what is kept for others, told apart."""
    amount = partial(format_quantity, check.resource)
    words = [f"{amount(check.used)} in use"]
    if check.promised:
        words.append(f"{amount(check.promised)} promised")
    if check.admitted:
        words.append(f"{amount(check.admitted)} reserved for jobs admitted before")
    if check.leaving:
        words.append(f"{amount(check.leaving)} of that on loan or leaving")
    return ", ".join(words)


def check_figures(check: Check, gang: Gang) -> dict[str, object]:
    """What a check found, and how many of the gang's pods had a place when it was tried."""
    return {
        "resource": check.resource,
        "level": check.level,
        "need": check.need,
        "limit": check.limit,
        "used": check.used,
        "promised": check.promised,
        "leaving": check.leaving,
        "admitted": check.admitted,
        "free": check.free,
        "short": check.short,
        **placeable_figures(gang),
    }


def placeable_figures(gang: Gang) -> dict[str, object]:
    """Nothing for a gang that was not tried: nobody knows."""
    if not gang.failed:
        return {}
    return {"placeable": gang.placeable, "minMember": gang.min_member}
