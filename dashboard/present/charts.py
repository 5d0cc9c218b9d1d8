"""A queue's history in the units that a chart is labelled with, whole cores and devices, Gi; and as a table."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from dashboard.present.amounts import short_name
from scheduler.domain.resources import format_quantity, is_bytes, units_per_one
from scheduler.selectors.records.history import QueueHistory

LINES = ("allocated", "promised", "deserved", "guarantee", "capability", "pending")
HISTORY_COLUMNS = ("at", "state", "resource", *LINES)


def chart(history: QueueHistory, resource: str) -> dict[str, Any]:
    per_one = 2**30 if is_bytes(resource) else units_per_one(resource)
    series = history.series.get(resource, {})
    return {
        "resource": resource,
        "unit": "Gi" if is_bytes(resource) else short_name(resource),
        "start": history.start,
        "end": history.end,
        "since": history.since,
        "times": history.times,
        **{
            line: [
                _scaled(amount, per_one) for amount in series.get(line, [None] * len(history.times))
            ]
            for line in LINES
        },
        "states": [asdict(band) for band in history.states],
        "markers": [asdict(marker) for marker in history.markers],
    }


def table(history: QueueHistory) -> list[dict[str, str]]:
    """The same as rows for a spreadsheet: one a moment and resource, exact quantities as manifests write them, empty where not known."""
    return [
        {
            "at": datetime.fromtimestamp(at, tz=UTC).isoformat(),
            "state": next(
                (band.state for band in history.states if band.start <= at < band.end), ""
            ),
            "resource": resource,
            **{line: _exact(resource, series[line][place]) for line in LINES},
        }
        for place, at in enumerate(history.times)
        for resource, series in history.series.items()
    ]


def _exact(resource: str, amount: int | None) -> str:
    return "" if amount is None else format_quantity(resource, amount)


def _scaled(amount: int | None, per_one: int) -> float | None:
    return None if amount is None else amount / per_one
