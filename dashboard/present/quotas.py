"""One queue's figures for one resource: amounts, the words for them, and the spans of its bar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from dashboard.present.amounts import short_name, shown, with_unit
from dashboard.present.bars import (
    BAR_WIDTH,
    FIGURES,
    Span,
    bar_html,
    figures_text,
    rectangles,
    scaled,
)
from scheduler.selectors.queues.listing import QueueFiguresRow

CLUSTER = "the cluster"

_THIN = 6
_THICK = 14


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that a queue may use of a resource.

    `source` says whose limit it is: "" for its own, else an ancestor's name or "the cluster".
    """

    amount: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Quota:
    """Amounts in base units. None is unset or not known yet, and is never shown as 0.

    `allocated` is what pods hold on nodes, `leaving` the part of it that is on its way out.
    `promised` is kept for pods that wait, and is no part of it.
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
        """What is in use and what is promised.

        Promised room may be what others are leaving: then no more than the limit is taken.
        """
        used = self.allocated or 0
        both = used + self.promised
        if self.limit.amount is None:
            return both
        return max(used, min(both, self.limit.amount))

    @property
    def reach(self) -> int:
        """The amount that the whole bar stands for.

        Without a limit the largest figure fills nine tenths: the end stays visibly open.
        """
        if self.limit.amount is not None:
            return self.limit.amount
        asked = self.taken + (self.pending or 0)
        known = (self.allocated, self.deserved, self.guarantee, asked)
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
    """A quota as pages, API and sockets show it.

    `scale` is for columns where all bars are drawn to one scale, the longest being `largest`. It
    says how many of the bar's units fill the column.
    """
    resource = quota.resource
    return {
        "allocated": _or_unknown(resource, quota.allocated),
        "promised": shown(resource, quota.promised),
        "deserved": _or_unset(resource, quota.deserved),
        "guarantee": _or_unset(resource, quota.guarantee),
        "pending": _or_unknown(resource, quota.pending),
        "limit": _or_unlimited(resource, quota.limit.amount),
        "limitFrom": quota.limit.source,
        "text": bar_text(quota),
        "note": bar_note(quota),
        "label": bar_sentence(quota),
        "figures": bar_figures(quota),
        "bar": rectangles(bar_spans(quota)),
        "scale": _scale(quota, largest),
    }


def quota_bar(quota: Mapping[str, Any], *, absolute: bool = False) -> SafeString:
    """The bar of a presented quota.

    An `absolute` one is as long as its limit, compared with all others; else it fills the width.
    """
    styles = []
    length = BAR_WIDTH
    if absolute:
        styles.append("absolute")
        length = quota["scale"]
    if quota["limitFrom"]:
        styles.append("inherited")
    return bar_html(
        quota["bar"],
        label=quota["label"],
        style=" ".join(styles),
        figures=quota["figures"],
        length=length,
        has_track=absolute,
    )


def _or_unknown(resource: str, amount: int | None) -> str:
    if amount is None:
        return "unknown"
    return shown(resource, amount)


def _or_unset(resource: str, amount: int | None) -> str:
    if amount is None:
        return "unset"
    return shown(resource, amount)


def _or_unlimited(resource: str, amount: int | None) -> str:
    if amount is None:
        return "unlimited"
    return shown(resource, amount)


def _scale(quota: Quota, largest: int) -> int:
    if not quota.reach:
        return BAR_WIDTH
    return max(BAR_WIDTH, largest * BAR_WIDTH // quota.reach)


def bar_text(quota: Quota) -> str:
    """ "22 of 32 GPU": the figure with its denominator and unit."""
    if quota.allocated is None:
        return "not evaluated yet"
    if quota.limit.amount is None:
        return f"{with_unit(quota.resource, quota.allocated)}, no capability set"
    allocated = shown(quota.resource, quota.allocated)
    return f"{allocated} of {with_unit(quota.resource, quota.limit.amount)}"


def bar_note(quota: Quota) -> str:
    """What is remarkable about it, in a few words."""
    notes = [_share_note(quota), _promised_note(quota), _leaving_note(quota)]
    return ", ".join(note for note in notes if note)


def _promised_note(quota: Quota) -> str:
    if quota.promised:
        return f"{shown(quota.resource, quota.promised)} promised"
    return ""


def _leaving_note(quota: Quota) -> str:
    if quota.leaving:
        return f"{shown(quota.resource, quota.leaving)} leaving"
    return ""


def _share_note(quota: Quota) -> str:
    if quota.over_limit:
        return f"{shown(quota.resource, quota.over_limit)} over its capability"
    if quota.borrowed:
        return f"{shown(quota.resource, quota.borrowed)} borrowed"
    if quota.lent:
        return f"{shown(quota.resource, quota.lent)} lent"
    return ""


def bar_sentence(quota: Quota) -> str:
    """The whole bar in words, figure by figure, for those who do not see it."""
    pairs = zip(FIGURES, _figures(quota), strict=True)
    parts = [f"{name} {text}" for name, text in pairs if text]
    if quota.allocated is None:
        parts.insert(0, _NOT_EVALUATED)
    return f"{short_name(quota.resource)}: {', '.join(parts + _remarks(quota))}."


def bar_figures(quota: Quota) -> str:
    """The same as data, for the small table beside the pointer."""
    remarks = _remarks(quota)
    if quota.allocated is None:
        remarks.insert(0, _NOT_EVALUATED)
    return figures_text(short_name(quota.resource), _figures(quota), remarks)


_NOT_EVALUATED = "not evaluated yet by a session"


def _figures(quota: Quota) -> tuple[str, ...]:
    """A text for each of `FIGURES`; "" where there is nothing to say."""
    resource = quota.resource
    allocated = ""
    if quota.allocated is not None:
        allocated = bar_text(quota)
    promised = ""
    if quota.promised:
        promised = shown(resource, quota.promised)
    pending = ""
    if quota.pending is not None:
        pending = shown(resource, quota.pending)
    return (
        allocated,
        promised,
        _or_unset(resource, quota.deserved),
        _or_unset(resource, quota.guarantee),
        _limit_words(quota),
        pending,
    )


def _remarks(quota: Quota) -> list[str]:
    remarks: list[str] = []
    for note in (_share_note(quota), _leaving_note(quota)):
        if note:
            remarks.append(note)
    return remarks


def _limit_words(quota: Quota) -> str:
    limit = quota.limit
    if limit.amount is None:
        return "none"
    words = shown(quota.resource, limit.amount)
    if not limit.source:
        return words
    if limit.source == CLUSTER:
        return f"{words}: all that the cluster has"
    return f"{words} inherited from {limit.source}"


def bar_spans(quota: Quota) -> list[Span]:
    """In the order in which they are painted.

    What is promised follows what is allocated; where others have to leave first, it covers their
    part.
    """
    whole = quota.reach
    allocated = scaled(quota.allocated or 0, whole)
    deserved = scaled(quota.deserved or 0, whole)
    solid = allocated
    if quota.deserved is not None:
        solid = min(allocated, deserved)
    taken = scaled(quota.taken, whole)
    promised = min(taken, scaled(quota.promised, whole))
    asked = scaled(quota.taken + (quota.pending or 0), whole)
    lent = scaled(quota.taken + quota.lent, whole)
    spans = [
        Span("ask", taken, asked - taken),
        Span("use", 0, solid),
        Span("borrow", solid, allocated - solid),
        Span("promise", taken - promised, promised),
        Span("lend", taken, lent - taken),
    ]
    if quota.over_limit:
        spans.append(Span("over", BAR_WIDTH - 2 * _THICK, 2 * _THICK))
    if quota.guarantee:
        spans.append(_tick("guarantee", scaled(quota.guarantee, whole), _THIN))
    if quota.deserved:
        spans.append(_tick("deserved", deserved, _THICK))
    return spans


def _tick(kind: str, at: int, width: int) -> Span:
    """A mark around this place, inside the bar."""
    return Span(kind, min(max(0, at - width // 2), BAR_WIDTH - width), width)
