"""Plots as HTML: lines over time and bars, for several policies side by side.

The curves stretch with the page. Labels are text beside them, so that they stay readable on a
narrow screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

COLOURS: Final = ("#3b6fd4", "#c2571a", "#2e8b57", "#8a4fbf", "#b8860b", "#c23b6b")
DASHES: Final = ("", "7 3", "4 2", "9 3 2 3", "5 5", "2 4")
"""Lines differ by more than their colour."""
_WIDTH: Final = 1000
_HEIGHT: Final = 200
_TIME_UNITS: Final = (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0))


@dataclass(frozen=True, slots=True)
class Curve:
    """One policy's values over time: (seconds, value)."""

    policy: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Bars:
    """One policy's values by name."""

    policy: str
    values: Mapping[str, float]


def as_plain_number(value: float) -> str:
    if abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}"


def legend(policies: Sequence[str]) -> str:
    items = []
    for number, policy in enumerate(policies):
        line = f'<svg viewBox="0 0 30 8" aria-hidden="true"><path d="M0 4H30" {_stroke(number)}/>'
        items.append(f"<li>{line}</svg>{escape(policy)}</li>")
    return f'<ul class="legend">{"".join(items)}</ul>'


def _stroke(number: int) -> str:
    colour = _colour(number)
    dash = DASHES[number % len(DASHES)]
    return f'fill="none" stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"'


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


# Lines over time


def line_plot(
    title: str,
    curves: Sequence[Curve],
    written: Callable[[float], str] = as_plain_number,
    most: float | None = None,
) -> str:
    """`written` puts a value into words; `most` is the top of the scale, if it is known."""
    highest = most or _highest(value for curve in curves for _, value in curve.points)
    longest = _highest(at for curve in curves for at, _ in curve.points)
    drawn = "".join(
        _polyline(number, curve, highest, longest) for number, curve in _numbered(curves)
    )
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<div class="plot">{_value_axis(highest, written)}'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(title)}">{_grid()}{drawn}</svg>'
        f"{_time_axis(longest)}</div></figure>"
    )


def _numbered(curves: Sequence[Curve]) -> Iterable[tuple[int, Curve]]:
    """The last is drawn first, so that the first policy lies on top."""
    return reversed(list(enumerate(curves)))


def _highest(values: Iterable[float]) -> float:
    return max(values, default=0.0) or 1.0


def _polyline(number: int, curve: Curve, highest: float, longest: float) -> str:
    points = []
    for at, value in curve.points:
        x = at / longest * _WIDTH
        y = (1 - min(1.0, value / highest)) * _HEIGHT
        points.append(f"{x:.1f},{y:.1f}")
    return f'<polyline {_stroke(number)} points="{" ".join(points)}"/>'


def _grid() -> str:
    lines = []
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        height = part * _HEIGHT
        lines.append(f'<path class="grid" d="M0 {height:g}H{_WIDTH}"/>')
    return "".join(lines)


def _value_axis(highest: float, written: Callable[[float], str]) -> str:
    labels = "".join(f"<span>{escape(written(highest * part))}</span>" for part in (1.0, 0.5, 0.0))
    return f'<div class="values">{labels}</div>'


def _time_axis(longest: float) -> str:
    unit, seconds = _time_unit(longest)
    labels = "".join(
        f"<span>{as_plain_number(longest * part / seconds)}</span>" for part in (0.0, 0.5)
    )
    last = f"<span>{as_plain_number(longest / seconds)} {unit}</span>"
    return f'<div class="times">{labels}{last}</div>'


def _time_unit(longest: float) -> tuple[str, float]:
    for unit, seconds in _TIME_UNITS:
        if longest >= 2 * seconds:
            return unit, seconds
    return "seconds", 1.0


# Bars


def bar_chart(
    title: str, groups: Sequence[Bars], written: Callable[[float], str] = as_plain_number
) -> str:
    """For each name the bars of all policies, one below the other."""
    names = dict.fromkeys(name for group in groups for name in group.values)
    highest = _highest(value for group in groups for value in group.values.values())
    rows = []
    for name in names:
        bars = "".join(
            _bar(number, group, name, highest, written) for number, group in enumerate(groups)
        )
        rows.append(f"<tr><th>{escape(name)}</th><td>{bars}</td></tr>")
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<table class="bars">{"".join(rows)}</table></figure>'
    )


def _bar(
    number: int, group: Bars, name: str, highest: float, written: Callable[[float], str]
) -> str:
    value = group.values.get(name)
    if value is None:
        width = 0.0
        text = "none"
    else:
        width = 100 * value / highest
        text = written(value)
    style = f"width:{width:.1f}%;background:{_colour(number)}"
    return (
        f'<div class="bar"><div><i style="{style}"></i></div>'
        f"<b>{escape(text)} <small>{escape(group.policy)}</small></b></div>"
    )
