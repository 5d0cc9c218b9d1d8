"""The decisions of a session and its victims, one row each."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from scheduler.domain.resources import Resources, is_accelerator, units_per_one
from scheduler.engine.decisions import (
    Bind,
    Evict,
)
from scheduler.models.bulk import (
    as_parameter,
    columns_table,
    execute,
    json_column,
    values_table,
)
from scheduler.selectors.sessions.snapshots import ResidentSnapshot
from scheduler.services.sessions.written import Written

_DECISION_COLUMNS = {
    "kind": "text",
    "pod_id": "bigint",
    "pod_name": "text",
    "podgroup_name": "text",
    "queue_name": "text",
    "node_name": "text",
    "action": "text",
}


def write_decisions(
    resident: ResidentSnapshot,
    written: Written,
    session_id: int,
    now: datetime,
) -> None:
    rows = []
    for bind in written.bound:
        action = "backfill" if bind.borrowed else "allocate"
        rows.append(_decision_row("Bind", bind, action, resident))
    for evict in written.evicted:
        rows.append(_decision_row("Evict", evict, evict.action, resident))
    if not rows:
        return
    names = ", ".join(_DECISION_COLUMNS)
    table, parameters = columns_table("d", _DECISION_COLUMNS, list(zip(*rows, strict=True)))
    execute(
        f"INSERT INTO scheduler_decision (session_id, created_at, attempts, error, {names}) SELECT "
        f"%s, %s, 0, '', {names} FROM {table}",
        [session_id, now, *parameters],
    )


def _decision_row(
    kind: str,
    decision: Bind | Evict,
    action: str,
    resident: ResidentSnapshot,
) -> tuple[object, ...]:
    """In the order of the columns."""
    return (
        kind,
        resident.pod_ids[decision.row],
        decision.pod,
        decision.podgroup,
        decision.queue,
        decision.node,
        action,
    )


_VICTIM_COLUMNS = {
    "pod_name": "text",
    "podgroup_name": "text",
    "queue_name": "text",
    "node_name": "text",
    "beneficiary": "text",
    "beneficiary_queue": "text",
    "action": "text",
    "reason": "text",
    "common_ancestor": "text",
    "level": "integer",
    "before": "text",
    "after": "text",
    "rule": "text",
    "grounds": "text",
    "ran_seconds": "double precision",
    "accelerator_seconds": "double precision",
    "core_seconds": "double precision",
}


_JSON_COLUMNS = ("before", "after", "grounds")


def write_victims(written: Written, session_id: int, number: int, now: datetime) -> None:
    if not written.evicted:
        return
    names = ", ".join(f'"{name}"' for name in _VICTIM_COLUMNS)
    values = ", ".join(map(_victim_value, _VICTIM_COLUMNS))
    victims = as_parameter(_victim_columns(evict) for evict in written.evicted)
    execute(
        f"INSERT INTO scheduler_eviction (session_id, session_number, created_at, {names}) "
        f"SELECT %s, %s, %s, {values} FROM {values_table('d', _VICTIM_COLUMNS)}",
        [session_id, number, now, victims],
    )


def _victim_value(column: str) -> str:
    name = f'"{column}"'
    if column in _JSON_COLUMNS:
        return json_column(name)
    return name


def _victim_columns(evict: Evict) -> dict[str, Any]:
    limits = {"deserved": dict(evict.deserved), "guarantee": dict(evict.guarantee)}
    grounds = evict.grounds.as_dict() if evict.grounds else {}
    return {
        "pod_name": evict.pod,
        "podgroup_name": evict.podgroup,
        "queue_name": evict.queue,
        "node_name": evict.node,
        "beneficiary": evict.beneficiary,
        "beneficiary_queue": evict.beneficiary_queue,
        "action": evict.action,
        "reason": evict.reason,
        "common_ancestor": evict.level,
        "level": evict.depth,
        "before": json.dumps({"allocated": dict(evict.allocated_before), **limits}),
        "after": json.dumps({"allocated": dict(evict.allocated_after), **limits}),
        "rule": grounds.get("rule", ""),
        "grounds": json.dumps(grounds),
        "ran_seconds": evict.ran_seconds,
        "accelerator_seconds": evict.ran_seconds * _accelerators(evict.request),
        "core_seconds": evict.ran_seconds * evict.request.amount("cpu") / units_per_one("cpu"),
    }


def _accelerators(request: Resources) -> float:
    """How many a pod has, of all sorts."""
    accelerators = 0.0
    for name, amount in request.items():
        if is_accelerator(name):
            accelerators += amount / units_per_one(name)
    return accelerators
