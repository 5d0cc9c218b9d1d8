"""One page with the plots of a comparison: it needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from scheduler.domain.mixes import GPU
from scheduler.simulation.measures import Line

COLOURS: Final = ("#3b6fd4", "#c2571a", "#2e8b57", "#8a4fbf", "#b8860b", "#c23b6b")
_WIDTH: Final = 860
_HEIGHT: Final = 240
_LEFT: Final = 52
_BOTTOM: Final = 28


class Result:
    """One policy: its name, its figures, and its lines over time."""

    def __init__(self, policy: str, figures: Mapping[str, Any], lines: Sequence[Line]) -> None:
        self.policy = policy
        self.figures = figures
        self.lines = lines


def page(title: str, about: str, results: Sequence[Result]) -> str:
    """The whole document."""
    resource = main_resource(results)
    parts = [
        f"<h1>{escape(title)}</h1><p>{escape(about)}</p>",
        _legend(results),
        _figures_table(results, resource),
        _line_plot(
            f"{resource} held", "share of the cluster", results, lambda line: line.held, most=1.0
        ),
        _line_plot(
            f"{resource} lost to evictions so far",
            "share of the whole run",
            results,
            lambda line: line.lost,
        ),
        _line_plot(f"{resource} waited for", "amount", results, lambda line: line.waiting),
        _bar_chart(
            "Wait at the 95th percentile, by size of the gang", "s", results, _waits_by_size
        ),
        _bar_chart(
            "Share of the time below deserved although it was asked for, by queue",
            "",
            results,
            lambda figures: figures["shortfall"],
        ),
    ]
    return _DOCUMENT.replace("TITLE", escape(title)).replace("BODY", "\n".join(parts))


def main_resource(results: Sequence[Result]) -> str:
    if results and GPU in results[0].figures["held"]:
        return GPU
    return "cpu"


def _waits_by_size(figures: Mapping[str, Any]) -> dict[str, float]:
    return {size: wait["p95"] for size, wait in figures["waits"]["bySize"].items()}


def _legend(results: Sequence[Result]) -> str:
    items = (
        f'<li><span style="background:{colour}"></span>{escape(result.policy)}</li>'
        for result, colour in _with_colours(results)
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _with_colours(results: Sequence[Result]) -> Iterable[tuple[Result, str]]:
    return ((result, COLOURS[number % len(COLOURS)]) for number, result in enumerate(results))


def table_rows(results: Sequence[Result], resource: str) -> list[tuple[str, list[str]]]:
    """The figures side by side: what it is, then one cell for each policy."""
    figures = [result.figures for result in results]
    return [
        ("jobs that came", [str(found["jobs"]) for found in figures]),
        ("jobs that finished", [str(found["finished"]) for found in figures]),
        ("pods placed", [str(found["binds"]) for found in figures]),
        ("pods evicted", [str(found["evictions"]) for found in figures]),
        ("evictions per placement", [f"{found['evictionsPerBind']:.3f}" for found in figures]),
        ("most evictions of one gang", [str(found["mostEvicted"]) for found in figures]),
        (f"{resource} held", [_as_percent(found["held"][resource]) for found in figures]),
        (f"{resource} useful", [_as_percent(found["useful"][resource]) for found in figures]),
        (
            f"{resource} lost to evictions",
            [_as_percent(found["lost"][resource]) for found in figures],
        ),
        ("median wait", [_as_seconds(found["waits"]["all"]["p50"]) for found in figures]),
        (
            "95th percentile of waits",
            [_as_seconds(found["waits"]["all"]["p95"]) for found in figures],
        ),
        (
            "the same, largest tenth of gangs",
            [_as_seconds(found["waits"]["largestTenth"]["p95"]) for found in figures],
        ),
        ("sessions", [str(found["sessions"]) for found in figures]),
        ("CPU time", [f"{found['cpuSeconds']:.1f} s" for found in figures]),
    ]


def _as_percent(share: float) -> str:
    return f"{share:.1%}"


def _as_seconds(seconds: float) -> str:
    return f"{seconds:,.0f} s"


def _figures_table(results: Sequence[Result], resource: str) -> str:
    head = "".join(f"<th>{escape(result.policy)}</th>" for result in results)
    rows = (
        f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for name, cells in table_rows(results, resource)
    )
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _line_plot(
    title: str, unit: str, results: Sequence[Result], value: Any, most: float | None = None
) -> str:
    highest = (
        most
        or max((value(line) for result in results for line in result.lines), default=0.0)
        or 1.0
    )
    longest = max((line.at for result in results for line in result.lines), default=0.0) or 1.0
    curves = "".join(
        f'<polyline fill="none" stroke="{colour}" stroke-width="1.6" '
        f'points="{_polyline_points(result.lines, value, highest, longest)}"/>'
        for result, colour in _with_colours(results)
    )
    return _figure_html(title, f"{_axis_labels(highest, unit)}{_time_axis(longest)}{curves}")


def _polyline_points(lines: Sequence[Line], value: Any, highest: float, longest: float) -> str:
    return " ".join(
        f"{_x_at(line.at / longest):.1f},{_y_at(value(line) / highest):.1f}" for line in lines
    )


def _x_at(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - 8)


def _y_at(share: float) -> float:
    return (_HEIGHT - _BOTTOM) - min(1.0, share) * (_HEIGHT - _BOTTOM - 10)


def _axis_labels(highest: float, unit: str) -> str:
    marks = []
    for part in (0.0, 0.5, 1.0):
        height = _y_at(part)
        marks.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{height:.1f}" '
            f'y2="{height:.1f}"/>'
        )
        marks.append(
            f'<text x="{_LEFT - 6}" y="{height + 4:.1f}" '
            f'text-anchor="end">{_short_number(highest * part)}</text>'
        )
    return "".join(marks) + f"<title>{escape(unit)}</title>"


def _time_axis(longest: float) -> str:
    unit, seconds = next(
        (
            entry
            for entry in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0))
            if longest >= 2 * entry[1]
        ),
        ("s", 1.0),
    )
    texts = []
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        label = f"{_short_number(longest * part / seconds)}{f' {unit}' if part == 1.0 else ''}"
        if part == 1.0:
            anchor = "end"
        else:
            anchor = "middle"
        texts.append(
            f'<text x="{_x_at(part):.1f}" y="{_HEIGHT - 8}" text-anchor="{anchor}">{label}</text>'
        )
    return "".join(texts)


def _short_number(value: float) -> str:
    if abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}"


def _bar_chart(title: str, unit: str, results: Sequence[Result], values: Any) -> str:
    found = [(values(result.figures), colour) for result, colour in _with_colours(results)]
    names = list(dict.fromkeys(name for entry, _ in found for name in entry))
    highest = max((amount for entry, _ in found for amount in entry.values()), default=0.0) or 1.0
    rows = "".join(_bar_row(name, found, highest, unit) for name in names)
    return (
        f"<figure><figcaption>{escape(title)}</figcaption><table "
        f"class='bars'>{rows}</table></figure>"
    )


def _bar_row(
    name: str, found: Sequence[tuple[Mapping[str, float], str]], highest: float, unit: str
) -> str:
    bars = "".join(
        '<div class="bar"><i '
        f'style="width:{100 * entry.get(name, 0.0) / highest:.1f}%;background:{colour}"></i>'
        f"<b>{_short_number(entry[name]) + ' ' + unit if name in entry else '-'}</b></div>"
        for entry, colour in found
    )
    return f"<tr><th>{escape(name)}</th><td>{bars}</td></tr>"


def _figure_html(title: str, drawing: str) -> str:
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">{drawing}</svg></figure>'
    )


_DOCUMENT: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>TITLE</title>
<style>
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 920px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--line); font-weight: normal; vertical-align: top; }
thead th { font-weight: 600; }
figure { margin: 2rem 0; }
figcaption { font-weight: 600; margin-bottom: .4rem; }
svg { width: 100%; height: auto; }
svg text { font-size: 11px; fill: currentColor; }
.grid { stroke: var(--line); }
.legend { display: flex; gap: 1.2rem; flex-wrap: wrap; padding: 0; list-style: none; }
.legend span { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px; margin-right: .4rem; }
.bars th { width: 11rem; }
.bar { display: flex; align-items: center; gap: .5rem; height: 1.1rem; }
.bar i { display: block; height: .6rem; min-width: 1px; max-width: 80%; }
.bar b { font-weight: normal; font-size: .8rem; white-space: nowrap; }
</style></head>
<body>
BODY
</body></html>
"""
