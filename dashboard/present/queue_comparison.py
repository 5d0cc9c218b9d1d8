"""Up to four queues side by side: figures and bars on one scale, waits, limits, history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from dashboard.present.amounts import short_name, with_unit
from dashboard.present.bars import BAR_WIDTH
from dashboard.present.charts import scaled_amount, unit_of_chart
from dashboard.present.queue_sorting import FIGURES
from dashboard.present.quotas import quota_bar
from scheduler.selectors.queues.listing import QueueBoard
from scheduler.selectors.queues.page import waiting_by_reason, waits
from scheduler.selectors.records.history import QueueHistory

MOST: Final = 4
_TABLE_ROWS: Final = 24
Context = dict[str, Any]
Row = Mapping[str, Any]


def compared_queues(
    board: QueueBoard, rows: Mapping[str, Row], names: Sequence[str]
) -> list[Context]:
    """Each with its row, what waits in it and below it, and how long."""
    compared = []
    for name in names:
        below = queues_below(board, name)
        row = rows[name]
        entry = {
            "row": row,
            "running": row["subtree"]["running"],
            "waiting": row["subtree"]["pending"] + row["subtree"]["inqueue"],
            "waits": waits(below),
            "reasons": waiting_by_reason(below),
        }
        compared.append(entry)
    return compared


def queues_below(board: QueueBoard, name: str) -> set[str]:
    """The queue itself too."""
    inside = {name}
    for row in board.rows:
        if row.parent in inside:
            inside.add(row.name)
    return inside


def compared_resources(rows: Sequence[Row], resources: Sequence[str]) -> list[Context]:
    """For each resource the figures of each queue, and bars: the longest fills its place."""
    lines = []
    for resource in resources:
        quotas = [row["resources"][resource] for row in rows]
        smallest = min(quota["scale"] for quota in quotas)
        cells = []
        for row, quota in zip(rows, quotas, strict=True):
            scale = quota["scale"] * BAR_WIDTH // smallest
            bar = quota_bar({**quota, "scale": scale}, absolute=True)
            figures = [(figure, quota[figure]) for figure in FIGURES]
            cells.append({**quota, "queue": row["name"], "bar": bar, "figures": figures})
        lines.append({"resource": resource, "title": short_name(resource), "cells": cells})
    return lines


def comparison_chart(histories: Sequence[QueueHistory], resource: str) -> Context:
    """What each queue had allocated over time: one line a queue, all on one scale."""
    unit, per_one = unit_of_chart(resource)
    first = histories[0]
    lines = []
    for history in histories:
        amounts = history.series.get(resource, {}).get("allocated", [None] * len(history.times))
        values = [scaled_amount(amount, per_one) for amount in amounts]
        lines.append({"queue": history.queue, "values": values[: len(first.times)]})
    return {
        "unit": unit,
        "start": first.start,
        "end": first.end,
        "times": first.times,
        "lines": lines,
    }


def comparison_table(histories: Sequence[QueueHistory], resource: str) -> list[Context]:
    """The same as a table, newest first, with every so many of its points."""
    times = histories[0].times
    step = max(1, len(times) // _TABLE_ROWS)
    rows = []
    for place in range(len(times) - 1, -1, -step):
        cells = []
        for history in histories:
            amounts = history.series.get(resource, {}).get("allocated", ())
            cells.append(_amount_words(resource, amounts, place))
        rows.append({"at": datetime.fromtimestamp(times[place], tz=UTC), "cells": cells})
    return rows


def _amount_words(resource: str, amounts: Sequence[int | None], place: int) -> str:
    if place >= len(amounts):
        return "–"
    amount = amounts[place]
    if amount is None:
        return "–"
    return with_unit(resource, amount)
