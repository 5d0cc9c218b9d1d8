"""What queues had over time: a sample of each queue whenever something about it changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from scheduler.domain.snapshot import Queue
from scheduler.engine.decisions import QueueFigures
from scheduler.models import QueueSample
from scheduler.models.bulk import as_parameter, execute, json_column, values_table
from scheduler.selectors.sessions.snapshots import ResidentSnapshot


def sample(resident: ResidentSnapshot, figures: Mapping[str, QueueFigures], now: datetime) -> None:
    """A raw sample of each queue whose figures changed, in one statement."""
    queues = {queue.name: queue for queue in resident.snapshot.queues}
    rows = []
    for name, item in figures.items():
        if name in queues:
            rows.append({"name": name, "data": json.dumps(_packed_figures(item, queues[name]))})
    if not rows:
        return
    execute(
        "INSERT INTO scheduler_queuesample (queue_name, seconds, at, data) "
        f"SELECT d.name, {QueueSample.RAW}, %s, {json_column('d.data')} FROM "
        f"{values_table('d', {'name': 'text', 'data': 'text'})} "
        "WHERE true ON CONFLICT (queue_name, seconds, at) DO NOTHING",
        [now, as_parameter(rows)],
    )


def _packed_figures(figures: QueueFigures, queue: Queue) -> dict[str, object]:
    """Without what says nothing: a missing amount reads as 0, a missing capability as no limit."""
    amounts = {
        "allocated": figures.in_use,
        "promised": figures.promised,
        "deserved": figures.deserved,
        "guarantee": queue.spec.guarantee,
        "pending": figures.asked,
    }
    packed = {}
    for name, given in amounts.items():
        packed[name] = {resource: amount for resource, amount in given.items() if amount}
    return {
        **{name: found for name, found in packed.items() if found},
        "capability": dict(queue.spec.capability),
        "state": str(queue.state),
    }
