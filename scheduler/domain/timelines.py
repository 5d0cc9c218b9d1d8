"""What a queue had over time.

Points hold until the next one. Averages are over equal steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

FIGURES: Final = ("allocated", "promised", "deserved", "guarantee", "capability", "pending")
LOAN_FIGURES: Final = ("borrowed", "lent", "from", "to")
LIMITS: Final = ("capability",)
"""Where such a figure names no resource there is no limit, which is not the same as 0."""

Data = Mapping[str, Any]
Point = tuple[float, Data]  # from this moment (seconds) on
Times = npt.NDArray[np.float64]


def averages(
    points: Sequence[Point], edges: Sequence[float], figures: Sequence[str] = FIGURES
) -> dict[str, dict[str, list[int | None]]]:
    """By figure and resource, the average between each two edges.

    It is weighted by time, in whole base units.

    `points` are in order; the last one holds for ever. A step that begins before the first point
    counts from there; one that ends before it is None.
    """
    times = np.array([at for at, _ in points], dtype=np.float64)
    steps = np.array(edges, dtype=np.float64)
    if points:
        steps = np.maximum(steps, times[0])
    found: dict[str, dict[str, list[int | None]]] = {}
    for figure in figures:
        by_resource = {}
        for resource in _resource_names(points, figure):
            by_resource[resource] = _averages_per_step(points, times, steps, figure, resource)
        found[figure] = by_resource
    return found


def _resource_names(points: Sequence[Point], figure: str) -> list[str]:
    names: set[str] = set()
    for _, data in points:
        names.update(data.get(figure) or ())
    return sorted(names)


def _averages_per_step(
    points: Sequence[Point],
    times: Times,
    edges: Times,
    figure: str,
    resource: str,
) -> list[int | None]:
    found = []
    for _, data in points:
        found.append((data.get(figure) or {}).get(resource))
    values = np.array([value or 0 for value in found], dtype=np.float64)
    counts = np.ones(len(found))
    if figure in LIMITS:
        counts = np.array([value is not None for value in found], dtype=np.float64)
    least = values[counts > 0].min()
    weight = np.diff(_integral_at(times, counts, edges))
    amount = np.diff(_integral_at(times, (values - least) * counts, edges))
    result: list[int | None] = []
    for known, part in zip(weight, amount, strict=True):
        if known <= 0:
            result.append(None)
        else:
            result.append(int(least + round(part / known)))
    return result


def _integral_at(times: Times, values: Times, edges: Times) -> Times:
    """The area under the steps from the first point up to each edge."""
    ends = np.append(times, max(edges[-1], times[-1]) + 1.0)
    areas = np.concatenate([[0.0], np.cumsum(values * np.diff(ends))])
    found: Times = np.interp(edges, ends, areas)
    return found


def average(
    points: Sequence[Point], start: float, end: float, figures: Sequence[str] = FIGURES
) -> dict[str, dict[str, int]]:
    """The same over one stretch; what has no value in it is left out."""
    series = averages(points, (start, end), figures)
    result: dict[str, dict[str, int]] = {}
    for figure, found in series.items():
        if found:
            result[figure] = {
                resource: value for resource, (value,) in found.items() if value is not None
            }
    return result


def bands(points: Sequence[Point], start: float, end: float) -> list[tuple[float, float, str]]:
    """Stretches of one state each, as (from, to, state).

    They are in order and without gaps, from the first point on.
    """
    found: list[tuple[float, float, str]] = []
    ends = [*(at for at, _ in points), end][1:]
    for (at, data), until in zip(points, ends, strict=True):
        since = max(at, start)
        until = min(until, end)
        state = str(data.get("state") or "")
        if since >= until:
            continue
        if found and found[-1][2] == state:
            since = found.pop()[0]
        found.append((since, until, state))
    return found
