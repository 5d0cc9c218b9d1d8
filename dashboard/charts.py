"""A queue's history in the units that a chart is labelled with: whole cores and devices, Gi."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dashboard.amounts import short_name
from scheduler.domain.resources import is_bytes, units_per_one
from scheduler.selectors.history import QueueHistory

LINES = ("allocated", "deserved", "guarantee", "capability", "pending")


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
        **{line: [_scaled(amount, per_one) for amount in series.get(line, [None] * len(history.times))] for line in LINES},
        "states": [asdict(band) for band in history.states],
        "markers": [asdict(marker) for marker in history.markers],
    }


def _scaled(amount: int | None, per_one: int) -> float | None:
    return None if amount is None else amount / per_one
