"""What a queue would have beside its siblings, below its parent."""

from __future__ import annotations

from typing import Any

from django.utils.safestring import SafeString

from dashboard.forms.queue import QUOTA_TITLES, QueueForm
from dashboard.present.amounts import in_page_order, short_name
from dashboard.present.bars import BAR_WIDTH, Span, bar_html, rectangles, scaled
from scheduler.domain.queues import ROOT, QueueTree
from scheduler.domain.resources import Resources, format_quantity

_TICK = 6  # the width of the mark in a bar, in its own units


def family(
    form: QueueForm,
    tree: QueueTree,
    total: Resources | None = None,
) -> list[dict[str, Any]]:
    """Per resource, what the parent has and how its children divide it with this queue among them.

    For the panel beside the form.

    Root sets nothing itself: its children divide the cluster, of which `total` is known.
    """
    if form.parent not in tree:
        return []
    parent = tree[form.parent]
    siblings = []
    for child in tree.children(form.parent):
        if child.name != form.name:
            siblings.append(child)
    lines = []
    for resource in in_page_order(form.amounts):
        for quota in ("deserved", "guarantee"):
            mine = _amount(resource, form.amounts[resource].get(quota, ""))
            if mine is None:
                continue
            whose = parent.name
            has = getattr(parent, quota)
            if form.parent == ROOT and total is not None:
                whose = "the cluster"
                has = total
            others = {}
            for child in siblings:
                others[child.name] = getattr(child, quota).amount(resource)
            lines.append(_line(resource, quota, whose, has, others, mine))
    return lines


def _amount(resource: str, text: str) -> int | None:
    """None where nothing is typed, or no amount."""
    if not text:
        return None
    try:
        return Resources.parse({resource: text})[resource]
    except ValueError:
        return None


def _line(
    resource: str,
    quota: str,
    parent: str,
    has: Resources,
    others: dict[str, int],
    mine: int,
) -> dict[str, Any]:
    together = sum(others.values()) + mine
    limit = has.get(resource)
    limit_words = ""
    over = ""
    if limit is not None:
        limit_words = format_quantity(resource, limit)
        if together > limit:
            over = format_quantity(resource, together - limit)
    parts = []
    for name, amount in others.items():
        if amount:
            parts.append(f"{name} {format_quantity(resource, amount)}")
    return {
        "title": f"{QUOTA_TITLES[quota]} {short_name(resource)}",
        "together": format_quantity(resource, together),
        "parent": parent,
        "has": limit_words,
        "over": over,
        "others": ", ".join(parts),
        "mine": format_quantity(resource, mine),
        "bar": _family_bar(sum(others.values()), mine, limit),
    }


def _family_bar(others: int, mine: int, limit: int | None) -> SafeString:
    """The siblings, this queue, and a tick where the parent's own figure is."""
    whole = max(others + mine, limit or 0)
    is_over = limit is not None and others + mine > limit
    siblings = scaled(others, whole)
    own_style = "use"
    if is_over:
        own_style = "over"
    tick_at = min(BAR_WIDTH - _TICK, scaled(limit or 0, whole))
    spans = [
        Span("ask-solid", 0, siblings),
        Span(own_style, siblings, scaled(mine, whole)),
        Span("deserved", tick_at, _TICK),
    ]
    return bar_html(rectangles(spans))
