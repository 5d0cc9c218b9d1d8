"""One page with the figures and plots of a comparison: it needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from scheduler.domain.mixes import GPU
from scheduler.simulation.measures import Line
from scheduler.simulation.plots import Bars, Curve, bar_chart, legend, line_plot

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """One policy: its name, its figures, and its lines over time."""

    policy: str
    figures: Figures
    lines: Sequence[Line]


def page(title: str, about: str, results: Sequence[Result]) -> str:
    """The whole document."""
    resource = main_resource(results)
    parts = [
        f"<h1>{escape(title)}</h1><p>{escape(about)}</p>",
        legend([result.policy for result in results]),
        _html_table(results, table_rows(results, resource)),
        *_plots_over_time(results, resource),
        *_plots_of_waits(results),
        bar_chart(
            "Shortfall by queue: share of the time in which it asked for its deserved and had less",
            _bars(results, lambda figures: figures["shortfall"]),
            _as_percent,
        ),
        "<h2>Time of the processor by part</h2>",
        _html_table(results, part_rows(results)),
    ]
    return _DOCUMENT.replace("TITLE", escape(title)).replace("BODY", "\n".join(parts))


def main_resource(results: Sequence[Result]) -> str:
    """GPUs if the cluster has any, otherwise CPUs."""
    if results and GPU in results[0].figures["held"]:
        return GPU
    return "cpu"


# Plots


def _plots_over_time(results: Sequence[Result], resource: str) -> list[str]:
    return [
        line_plot(
            f"{resource} held: share of the cluster",
            _curves(results, lambda line: line.held),
            _as_percent,
            most=1.0,
        ),
        line_plot(
            f"{resource} time useful so far: of pods that ran to their end, share of the whole run",
            _curves(results, lambda line: line.useful),
            _as_percent,
        ),
        line_plot(
            f"{resource} time lost to evictions so far: share of the whole run",
            _curves(results, lambda line: line.lost),
            _as_percent,
        ),
        line_plot(f"{resource} waited for", _curves(results, lambda line: line.waiting)),
    ]


def _plots_of_waits(results: Sequence[Result]) -> list[str]:
    return [
        bar_chart(
            "Median wait by size of the gang",
            _bars(results, lambda figures: _waits_by_size(figures, "p50")),
            _as_seconds,
        ),
        bar_chart(
            "95th percentile of waits by size of the gang",
            _bars(results, lambda figures: _waits_by_size(figures, "p95")),
            _as_seconds,
        ),
    ]


def _curves(results: Sequence[Result], value: Callable[[Line], float]) -> list[Curve]:
    curves = []
    for result in results:
        points = [(line.at, value(line)) for line in result.lines]
        curves.append(Curve(result.policy, points))
    return curves


def _bars(
    results: Sequence[Result], values: Callable[[Figures], Mapping[str, float]]
) -> list[Bars]:
    return [Bars(result.policy, values(result.figures)) for result in results]


def _waits_by_size(figures: Figures, part: str) -> dict[str, float]:
    return {size: wait[part] for size, wait in figures["waits"]["bySize"].items()}


# Figures


def table_rows(results: Sequence[Result], resource: str) -> list[tuple[str, list[str]]]:
    """The figures side by side: what it is, then one cell for each policy."""
    lines: list[tuple[str, Callable[[Figures], str]]] = [
        ("jobs that came", lambda found: str(found["jobs"])),
        ("jobs that finished", lambda found: str(found["finished"])),
        ("pods placed", lambda found: str(found["binds"])),
        ("pods evicted", lambda found: str(found["evictions"])),
        ("evictions per placement", lambda found: f"{found['evictionsPerBind']:.3f}"),
        ("most evictions of one gang", lambda found: str(found["mostEvicted"])),
        (f"{resource} held", lambda found: _share(found["held"], resource)),
        (f"{resource} useful", lambda found: _share(found["useful"], resource)),
        (f"{resource} lost to evictions", lambda found: _share(found["lost"], resource)),
        ("median wait", lambda found: _as_seconds(found["waits"]["all"]["p50"])),
        ("95th percentile of waits", lambda found: _as_seconds(found["waits"]["all"]["p95"])),
        (
            "the same, largest tenth of gangs",
            lambda found: _as_seconds(found["waits"]["largestTenth"]["p95"]),
        ),
        (
            "largest shortfall of a queue",
            lambda found: _as_percent(max(found["shortfall"].values(), default=0.0)),
        ),
        (
            "longest time a guarantee was unmet",
            lambda found: _as_seconds(max(found["guaranteeUnmetSeconds"].values(), default=0.0)),
        ),
        ("sessions", lambda found: str(found["sessions"])),
        ("CPU time", lambda found: f"{found['cpuSeconds']:.1f} s"),
    ]
    return [(name, [cell(result.figures) for result in results]) for name, cell in lines]


def part_rows(results: Sequence[Result]) -> list[tuple[str, list[str]]]:
    """CPU time of each part of the run, side by side."""
    parts = dict.fromkeys(part for result in results for part in result.figures["cpuSecondsByPart"])
    rows = []
    for part in parts:
        cells = [_part_time(result.figures, part) for result in results]
        rows.append((part, cells))
    return rows


def _part_time(figures: Figures, part: str) -> str:
    seconds = figures["cpuSecondsByPart"].get(part)
    if seconds is None:
        return "-"
    return f"{seconds:.1f} s"


def _share(shares: Mapping[str, float], resource: str) -> str:
    return _as_percent(shares.get(resource, 0.0))


def _as_percent(share: float) -> str:
    return f"{share:.1%}"


def _as_seconds(seconds: float) -> str:
    return f"{seconds:,.0f} s"


def _html_table(results: Sequence[Result], rows: Sequence[tuple[str, list[str]]]) -> str:
    head = "".join(f'<th scope="col">{escape(result.policy)}</th>' for result in results)
    lines = []
    for name, cells in rows:
        values = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{values}</tr>')
    body = "".join(lines)
    return (
        '<div class="wide"><table class="figures">'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


_DOCUMENT: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>TITLE</title>
<style>
:root { color-scheme: light dark; --line: #8886; --quiet: light-dark(#555, #aaa); }
body {
  font: 15px/1.5 system-ui, sans-serif;
  max-width: 1000px; margin: 1.5rem auto; padding: 0 1rem;
  background: Canvas; color: CanvasText; overflow-wrap: anywhere;
}
h1 { font-size: 1.4rem; }
h2 { font-size: 1rem; margin: 2rem 0 .4rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .5rem .2rem 0; border-bottom: 1px solid var(--line); text-align: left; }
th { font-weight: normal; }
thead th { font-weight: 600; }
.wide { overflow-x: auto; }
.figures td, .figures thead th { text-align: right; white-space: nowrap; }
.figures th[scope=row] { min-width: 7.5rem; overflow-wrap: normal; }
figure { margin: 2rem 0; }
figcaption { font-weight: 600; margin-bottom: .5rem; }
.plot { display: grid; grid-template-columns: auto 1fr; gap: .3rem .5rem; }
.plot svg { width: 100%; height: 13rem; overflow: visible; }
.plot path, .plot polyline { vector-effect: non-scaling-stroke; }
.grid { stroke: var(--line); fill: none; }
.values, .times { display: flex; justify-content: space-between; font-size: .8rem; color: var(--quiet); }
.values { flex-direction: column; text-align: right; margin: -.6rem 0; }
.times { grid-column: 2; }
.legend {
  display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; padding: .4rem 0; list-style: none;
  position: sticky; top: 0; background: Canvas;
}
.legend svg { width: 30px; height: 8px; margin-right: .4rem; }
.bars th { width: 8rem; vertical-align: top; }
.bar { display: grid; grid-template-columns: 1fr 11rem; align-items: center; gap: .6rem; }
.bar i { display: block; height: .7rem; min-width: 1px; }
.bar b { font-weight: normal; font-size: .8rem; }
.bar small { color: var(--quiet); }
@media (max-width: 600px) {
  .figures { font-size: .8rem; }
  .figures th[scope=row] { min-width: 6.5rem; }
  .bars th { width: 5rem; }
  .bar { grid-template-columns: 1fr 7rem; }
}
</style>
</head>
<body>
BODY
</body>
</html>
"""
