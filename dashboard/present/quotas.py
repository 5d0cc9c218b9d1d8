"""One queue's figures for one resource: the amounts, the words for them, and the places in its bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dashboard.present.amounts import short_name, shown, with_unit
from scheduler.selectors.queues.listing import QueueFiguresRow

BAR_WIDTH = 1000  # the bar's own units; how wide it is on the screen is the style sheet's business
_THIN, _THICK = 6, 14
CLUSTER = "the cluster"


@dataclass(frozen=True, slots=True)
class Limit:
    """The most a queue may use of a resource, and whose limit it is: "" its own, else an ancestor's name or "the cluster"."""

    amount: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Quota:
    """One queue's figures for one resource, in base units; None is unset or not yet known, which is never shown as 0.

    `allocated` is what pods hold on nodes, `leaving` the part of it that is on its way out; `promised` is kept for pods that wait and is
    no part of it.
    """

    resource: str
    allocated: int | None
    deserved: int | None
    guarantee: int | None
    pending: int | None
    limit: Limit
    lent: int = 0  # of what it deserves and does not use, the part that a sibling uses
    promised: int = 0
    leaving: int = 0

    @property
    def borrowed(self) -> int:
        if self.allocated is None or self.deserved is None:
            return 0
        return max(0, self.allocated - self.deserved)

    @property
    def over_limit(self) -> int:
        if self.allocated is None or self.limit.amount is None:
            return 0
        return max(0, self.allocated - self.leaving - self.limit.amount)

    @property
    def taken(self) -> int:
        """What is in use and what is promised. Promised room may be what others are leaving: no more than the limit is taken then."""
        both = (self.allocated or 0) + self.promised
        return (
            both
            if self.limit.amount is None
            else max(self.allocated or 0, min(both, self.limit.amount))
        )

    @property
    def reach(self) -> int:
        """The amount that the whole bar stands for. Without a limit the largest figure fills nine tenths: the end stays visibly open."""
        if self.limit.amount is not None:
            return self.limit.amount
        known = (self.allocated, self.deserved, self.guarantee, self.taken + (self.pending or 0))
        return max(figure or 0 for figure in known) * 10 // 9


def quota_of(
    now: QueueFiguresRow | None,
    resource: str,
    limit: Limit,
    *,
    deserved: int | None = None,
    guarantee: int | None = None,
    lent: int = 0,
) -> Quota:
    """From what the last session found."""
    if now is None:
        return Quota(resource, None, deserved, guarantee, None, limit, lent)
    return Quota(
        resource=resource,
        allocated=now.allocated.amount(resource),
        deserved=deserved,
        guarantee=guarantee,
        pending=now.asked.amount(resource),
        limit=limit,
        lent=lent,
        promised=now.promised.amount(resource),
        leaving=now.leaving.amount(resource),
    )


def present_quota(quota: Quota, largest: int = 0) -> dict[str, Any]:
    """`scale` is how many of the bar's units fill the column where all bars are drawn to one scale, the longest being `largest`."""
    resource = quota.resource
    return {
        "allocated": _or_unknown(resource, quota.allocated),
        "promised": shown(resource, quota.promised),
        "deserved": _or_unset(resource, quota.deserved),
        "guarantee": _or_unset(resource, quota.guarantee),
        "pending": _or_unknown(resource, quota.pending),
        "limit": "unlimited" if quota.limit.amount is None else shown(resource, quota.limit.amount),
        "limitFrom": quota.limit.source,
        "text": bar_text(quota),
        "note": bar_note(quota),
        "label": bar_sentence(quota),
        "bar": bar_geometry(quota),
        "scale": max(BAR_WIDTH, largest * BAR_WIDTH // quota.reach) if quota.reach else BAR_WIDTH,
    }


def _or_unknown(resource: str, amount: int | None) -> str:
    return "unknown" if amount is None else shown(resource, amount)


def _or_unset(resource: str, amount: int | None) -> str:
    return "unset" if amount is None else shown(resource, amount)


def bar_text(quota: Quota) -> str:
    """ "22 of 32 GPU": the figure with its denominator and unit."""
    if quota.allocated is None:
        return "not evaluated yet"
    if quota.limit.amount is None:
        return f"{with_unit(quota.resource, quota.allocated)}, no capability set"
    return f"{shown(quota.resource, quota.allocated)} of {with_unit(quota.resource, quota.limit.amount)}"


def bar_note(quota: Quota) -> str:
    """What is remarkable about it, in a few words."""
    notes = [_share_note(quota)]
    notes += [f"{shown(quota.resource, quota.promised)} promised"] if quota.promised else []
    notes.append(_leaving_note(quota))
    return ", ".join(note for note in notes if note)


def _leaving_note(quota: Quota) -> str:
    return f"{shown(quota.resource, quota.leaving)} leaving" if quota.leaving else ""


def _share_note(quota: Quota) -> str:
    if quota.over_limit:
        return f"{shown(quota.resource, quota.over_limit)} over its capability"
    if quota.borrowed:
        return f"{shown(quota.resource, quota.borrowed)} borrowed"
    return f"{shown(quota.resource, quota.lent)} lent" if quota.lent else ""


def bar_sentence(quota: Quota) -> str:
    """The whole bar in words, figure by figure: for those who do not see it, and for the small table beside the pointer."""
    name, resource = short_name(quota.resource), quota.resource
    parts = [
        f"allocated {bar_text(quota)}"
        if quota.allocated is not None
        else "not evaluated yet by a session"
    ]
    parts += [f"promised {shown(resource, quota.promised)}"] if quota.promised else []
    parts.append(f"deserved {_or_unset(resource, quota.deserved)}")
    parts.append(f"guarantee {_or_unset(resource, quota.guarantee)}")
    parts.append(_limit_words(quota))
    if quota.pending is not None:
        parts.append(f"pending {shown(resource, quota.pending)}")
    parts += [note for note in (_share_note(quota), _leaving_note(quota)) if note]
    return f"{name}: {', '.join(parts)}."


def _limit_words(quota: Quota) -> str:
    if quota.limit.amount is None:
        return "capability none"
    words = f"capability {shown(quota.resource, quota.limit.amount)}"
    if not quota.limit.source:
        return words
    return (
        f"{words}: all that the cluster has"
        if quota.limit.source == CLUSTER
        else f"{words} inherited from {quota.limit.source}"
    )


def bar_geometry(quota: Quota) -> list[int]:
    """Start and width of: asked for, allocated, borrowed, promised, lent, over the capability, the guarantee's tick, the deserved tick.

    What is promised follows what is allocated; where others have to leave first, it lies over their part.
    """
    scale = _scale(quota)
    allocated = scale(quota.allocated)
    deserved = scale(quota.deserved)
    solid = allocated if quota.deserved is None else min(allocated, deserved)
    taken = scale(quota.taken)
    promised = scale(quota.promised)
    asked = scale(quota.taken + (quota.pending or 0))
    spans = [
        (taken, asked - taken),
        (0, solid),
        (solid, allocated - solid),
        (taken - min(promised, taken), min(promised, taken)),
        (taken, scale(quota.taken + quota.lent) - taken),
        (BAR_WIDTH - 2 * _THICK, 2 * _THICK if quota.over_limit else 0),
        _tick(scale(quota.guarantee), _THIN if quota.guarantee else 0),
        _tick(deserved, _THICK if quota.deserved else 0),
    ]
    return [number for span in spans for number in span]


def _tick(at: int, width: int) -> tuple[int, int]:
    return min(max(0, at - width // 2), BAR_WIDTH - width), width


def _scale(quota: Quota) -> Callable[[int | None], int]:
    """From amounts to the bar's units."""
    whole = quota.reach

    def place(amount: int | None) -> int:
        return min(BAR_WIDTH, amount * BAR_WIDTH // whole) if amount and whole else 0

    return place
