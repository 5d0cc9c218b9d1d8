"""Every bar of every page is drawn here, for the page and for the socket.

A bar is a row of rectangles, styled by class and placed by attributes: pages allow no inline style.
The page's script puts what is drawn here into its place; it draws nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from django.utils.safestring import SafeString, mark_safe

BAR_WIDTH = 1000  # the bar's own units; the style sheet says how wide it is on the screen

FIGURES = ("allocated", "promised", "deserved", "guarantee", "capability", "pending")
"""What a bar's tooltip lists, in this order; `static/js/tooltip.js` has the same names."""

_TRACK = f'<rect class="track" x="0" width="{BAR_WIDTH}"/>'


class Span(NamedTuple):
    """One rectangle of a bar, in the bar's own units. Where it has no width it is not drawn."""

    kind: str
    start: int
    width: int
    title: str = ""


def rectangles(spans: Iterable[Span]) -> str:
    return "".join([_rectangle(*span) for span in spans if span.width > 0])


def _rectangle(kind: str, start: int, width: int, title: str) -> str:
    placed = f'<rect class="{kind}" x="{start}" width="{width}"'
    if not title:
        return f"{placed}/>"
    return f"{placed}><title>{escape(title)}</title></rect>"


def scaled(amount: int, whole: int) -> int:
    """An amount in the bar's units, if the whole bar stands for `whole`."""
    if not whole:
        return 0
    return min(BAR_WIDTH, amount * BAR_WIDTH // whole)


def figures_text(title: str, figures: Iterable[str] = (), remarks: Iterable[str] = ()) -> str:
    """What the tooltip shows: a title, a text for each of `FIGURES` or "", then remarks."""
    known = tuple(figures) or ("",) * len(FIGURES)
    return "|".join((title, *known, *remarks))


def bar_html(
    drawn: str,
    *,
    label: str = "",
    style: str = "",
    figures: str = "",
    length: int = BAR_WIDTH,
    has_track: bool = False,
) -> SafeString:
    """A bar of these rectangles. Without a label it says nothing that is not written beside it.

    `length` is how many of the bar's units fill its place: more than its own where all bars of a
    column are drawn to one scale. Then it has a track, which ends where the bar does.
    """
    classes = "bar"
    if style:
        classes = f"bar {style}"
    track = ""
    if has_track:
        track = _TRACK
    return mark_safe(  # noqa: S308 - texts are escaped where they are put in
        f'<svg class="{classes}" viewBox="0 0 {length} 16" preserveAspectRatio="none"'
        f" {_meaning(label, figures)}>{track}<g>{drawn}</g></svg>"
    )


def _meaning(label: str, figures: str) -> str:
    if not label:
        return 'aria-hidden="true"'
    named = f'role="img" aria-label="{escape(label)}"'
    if not figures:
        return named
    return f'{named} data-figures="{escape(figures)}"'


LEGEND = bar_html(
    rectangles(
        [
            Span("ask", 700, 160),
            Span("use", 0, 420),
            Span("borrow", 420, 200),
            Span("promise", 620, 80),
            Span("guarantee", 217, 6),
            Span("deserved", 413, 14),
        ]
    )
)
"""The example that the legend explains."""
