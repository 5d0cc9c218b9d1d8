"""The figures of each queue, as the last session found them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.db import connection

from scheduler.domain.resources import Resources
from scheduler.engine.decisions import (
    QueueFigures,
)
from scheduler.models.bulk import (
    as_parameter,
    execute,
    json_column,
    values_table,
)

# A column, and the engine's figure that it holds: to people, allocated is what pods hold on nodes.
_FIGURE_COLUMNS = {
    "allocated": "in_use",
    "leaving": "leaving",
    "promised": "promised",
    "asked": "asked",
    "lacking": "lacking",
    "deserved": "deserved",
    "nominal_share": "nominal_share",
    "request": "request",
    "held": "held",
    "inqueue": "inqueue",
    "elastic": "elastic",
    "real_capability": "real_capability",
}
_COLUMNS = {
    "queue_id": "bigint",
    **dict.fromkeys(_FIGURE_COLUMNS, "text"),
    "share": "float8",
    "overused": "boolean",
    "warnings": "text",
}
_JSON_COLUMNS = frozenset({*_FIGURE_COLUMNS, "warnings"})


def write_figures(
    figures: Mapping[str, QueueFigures],
    queue_ids: Mapping[str, int],
    number: int,
) -> None:
    """One row a queue, only those given: whoever calls leaves out what did not change."""
    rows = []
    for name, item in figures.items():
        if name in queue_ids:
            rows.append(_figure_row(item, queue_ids[name]))
    if not rows:
        return
    values = ", ".join(map(_value, _COLUMNS))
    updated = [name for name in (*_COLUMNS, "session") if name != "queue_id"]
    updates = ", ".join(f"{name} = excluded.{name}" for name in updated)
    execute(
        f"INSERT INTO scheduler_queuefigures ({', '.join(_COLUMNS)}, session) "
        f"SELECT {values}, %s FROM {values_table('d', _COLUMNS)} "
        "JOIN scheduler_queue q ON q.id = d.queue_id WHERE q.deleted_at IS NULL "
        f"{_keep_queues()} ON CONFLICT (queue_id) DO UPDATE SET {updates}",
        [number, as_parameter(rows)],
    )


def _value(column: str) -> str:
    if column in _JSON_COLUMNS:
        return json_column(f"d.{column}")
    return f"d.{column}"


def _keep_queues() -> str:
    """No queue can be deleted between being found and being referred to."""
    if connection.vendor == "postgresql":
        return "FOR KEY SHARE OF q"
    return ""


def _figure_row(figures: QueueFigures, queue_id: int) -> dict[str, Any]:
    amounts: dict[str, Resources] = {
        name: getattr(figures, figure) for name, figure in _FIGURE_COLUMNS.items()
    }
    return {
        "queue_id": queue_id,
        **{name: json.dumps(dict(amount)) for name, amount in amounts.items()},
        "share": figures.share,
        "overused": figures.overused,
        "warnings": json.dumps(list(figures.warnings)),
    }
