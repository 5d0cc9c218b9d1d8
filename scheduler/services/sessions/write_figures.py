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
    **{
        name: name
        for name in (
            "leaving",
            "promised",
            "asked",
            "lacking",
            "deserved",
            "nominal_share",
            "request",
            "held",
            "inqueue",
            "elastic",
            "real_capability",
        )
    },
}


def write_figures(
    figures: Mapping[str, QueueFigures], queue_ids: Mapping[str, int], number: int
) -> None:
    """One row a queue, only those given: whoever calls leaves out what did not change."""
    rows = [
        _figure_row(item, queue_ids[name]) for name, item in figures.items() if name in queue_ids
    ]
    if not rows:
        return
    columns = {
        "queue_id": "bigint",
        **dict.fromkeys(_FIGURE_COLUMNS, "text"),
        "share": "float8",
        "overused": "boolean",
        "warnings": "text",
    }
    json_names = {*_FIGURE_COLUMNS, "warnings"}
    values = ", ".join(
        json_column(f"d.{name}") if name in json_names else f"d.{name}" for name in columns
    )
    updates = ", ".join(
        f"{name} = excluded.{name}" for name in (*columns, "session") if name != "queue_id"
    )
    execute(
        f"INSERT INTO scheduler_queuefigures ({', '.join(columns)}, session) "
        f"SELECT {values}, %s FROM {values_table('d', columns)} JOIN scheduler_queue q ON q.id = "
        "d.queue_id WHERE q.deleted_at IS NULL "
        f"{_keep_queues()} ON CONFLICT (queue_id) DO UPDATE SET {updates}",
        [number, as_parameter(rows)],
    )


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
