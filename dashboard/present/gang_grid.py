"""A gang as squares, one for each member: those with a place first, the elastic part apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from scheduler.domain.reasons import reason_entry
from scheduler.models import PodGroup
from scheduler.selectors.jobs.page import Member

MOST_DRAWN = 2000
_MOST_READ_OUT = 200  # more squares than that are told in sums, not one by one

_PLACED_FIRST = {
    "Succeeded": 0,
    "Running": 1,
    "Bound": 2,
    "Binding": 3,
    "Releasing": 4,
    "Unknown": 5,
    "Failed": 6,
    "Pending": 7,
}


def gang_grid(members: Sequence[Member], needed: int) -> dict[str, Any]:
    """Lists of squares as HTML; a template loop over a thousand of them takes ten times as long."""
    ordered = sorted(members, key=_placed_first)
    drawn = ordered[:MOST_DRAWN]
    missing = max(0, min(needed, MOST_DRAWN) - len(ordered))
    more = max(0, len(ordered) - needed)
    elastic = ""
    if more:
        label = f"Elastic: {more} more that may run or not"
        elastic = squares(drawn[needed:], label, "members elastic")
    return {
        "gang": squares(drawn[:needed], f"The {needed} that are needed to start", missing=missing),
        "elastic": elastic,
        "elastic_count": more,
        "undrawn": len(ordered) - len(drawn),
    }


def _placed_first(member: Member) -> tuple[int, str, int]:
    return _PLACED_FIRST.get(member.phase, 9), member.task, member.index


def squares(
    members: Sequence[Member],
    label: str,
    css: str = "members",
    missing: int = 0,
) -> SafeString:
    read_out = len(members) <= _MOST_READ_OUT
    attributes = f'aria-label="{escape(label)}"'
    if not read_out:
        words = f"{label}: {_phase_sums(members)}"
        attributes = f'role="img" aria-label="{escape(words)}"'
    if len(members) + missing > _MOST_READ_OUT:
        css += " small"
    cells = "".join(_square(member, read_out) for member in members) + _MISSING * missing
    # Every value is escaped.
    return mark_safe(f'<ul class="{css}" {attributes}>{cells}</ul>')  # noqa: S308


_MISSING = (
    '<li data-phase="Missing" title="Not created yet">'
    '<span class="visually-hidden">not created yet</span></li>'
)


def _square(member: Member, read_out: bool) -> str:
    name = escape(member.name)
    phase = escape(member.phase)
    on_node = ""
    if member.node:
        on_node = f" on {escape(member.node)}"
    hidden = ""
    if read_out:
        hidden = f'<span class="visually-hidden">{name} {phase}</span>'
    return f'<li data-phase="{phase}" title="{name}: {phase}{on_node}">{hidden}</li>'


def _phase_sums(members: Iterable[Member]) -> str:
    counts: dict[str, int] = {}
    for member in members:
        counts[member.phase] = counts.get(member.phase, 0) + 1
    return ", ".join(f"{number} {phase}" for phase, number in counts.items())


# In words


def gang_sentence(gang: PodGroup, placed: int, is_waiting: bool) -> str:
    """ "0 of 8 needed have a place, 5 fit now, 3 blocked by nvidia.com/gpu".

    Only as far as a session has tried.
    """
    needed = gang.min_member
    start = f"{min(placed, needed)} of {needed} needed have a place"
    if not is_waiting or placed >= needed:
        return start
    if not reason_entry(gang.reason_code).can_pass:
        return f"{start}; it cannot start as it is"
    if "placeable" not in gang.reason_figures:
        return start
    fitting = min(needed, int(gang.reason_figures["placeable"])) - placed
    if fitting < 0:
        return start
    blocked = needed - placed - fitting
    fit = "fit"
    if fitting == 1:
        fit = "fits"
    words = f"{start}, {fitting} {fit} now"
    if blocked:
        by = gang.reason_figures.get("resource", "lack of room")
        words += f", {blocked} blocked by {by}"
    return words
