"""A queue's history in the units of a chart (whole cores and devices, Gi), and as a table."""

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
    unit, per_one = unit_of_chart(resource)
    series = history.series.get(resource, {})
    unknown = [None] * len(history.times)
    data: dict[str, Any] = {
        "resource": resource,
        "unit": unit,
        "start": history.start,
        "end": history.end,
        "since": history.since,
        "times": history.times,
        "states": [asdict(band) for band in history.states],
        "markers": [asdict(marker) for marker in history.markers],
    }
    for line in LINES:
        data[line] = [scaled_amount(amount, per_one) for amount in series.get(line, unknown)]
    return data


def unit_of_chart(resource: str) -> tuple[str, int]:
    """Its name, and how many base units it is."""
    if is_bytes(resource):
        return "Gi", 2**30
    return short_name(resource), units_per_one(resource)


def table(history: QueueHistory) -> list[dict[str, str]]:
    """The same as rows for a spreadsheet: one for each moment and resource.

    Quantities are exact, as in manifests; unknown ones are empty.
    """
    rows = []
    for place, at in enumerate(history.times):
        moment = datetime.fromtimestamp(at, tz=UTC).isoformat()
        state = _state_at(history, at)
        for resource, series in history.series.items():
            row = {"at": moment, "state": state, "resource": resource}
            for line in LINES:
                row[line] = _exact_quantity(resource, series[line][place])
            rows.append(row)
    return rows


def _state_at(history: QueueHistory, at: float) -> str:
    for band in history.states:
        if band.start <= at < band.end:
            return band.state
    return ""


def _exact_quantity(resource: str, amount: int | None) -> str:
    if amount is None:
        return ""
    return format_quantity(resource, amount)


def scaled_amount(amount: int | None, per_one: int) -> float | None:
    if amount is None:
        return None
    return amount / per_one
