"""Phases, conditions and reasons of podgroups, as a session found them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from scheduler.domain.pod_conditions import packed
from scheduler.domain.workloads import Phase, PodStatus
from scheduler.engine.decisions import (
    Condition,
    Outcome,
    PhaseChange,
    Reason,
    Said,
)
from scheduler.models.bulk import (
    as_parameter,
    fetch,
    json_column,
    values_table,
)
from scheduler.models.workload import FINISHED_JOB_PHASES
from scheduler.selectors.sessions.snapshots import ResidentSnapshot
from scheduler.services.sessions.written import Written

_GROUP_COLUMNS = {
    "id": "bigint",
    "old_phase": "text",
    "phase": "text",
    "conditions": "text",
    "pod_conditions": "text",
    "reason_code": "text",
    "reason_message": "text",
    "reason_figures": "text",
    "reason_checks": "text",
    "starving_since": "bigint",
}


_WAITING = (Phase.PENDING.label, Phase.INQUEUE.label)


def write_podgroups(
    resident: ResidentSnapshot,
    outcome: Outcome,
    number: int,
    now: datetime,
    written: Written,
) -> None:
    rows = _group_rows(resident, outcome, now, number, written.broken)
    if not rows:
        return
    parameters = [number, now, now, now, as_parameter(rows.values())]
    taken = {pk for (pk,) in fetch(_group_statement(), parameters)}
    keys = resident.snapshot.groups.key
    for group, row in rows.items():
        if row["id"] not in taken:
            continue
        written.podgroups.add(keys[group])
        if row.get("phase") == Phase.COMPLETED.label:
            written.completed = True
            written.ended.append(row["id"])
        if row.get("phase") == Phase.RUNNING.label and row["old_phase"] in _WAITING:
            written.started.append(row["id"])
        if row.get("phase") == Phase.UNKNOWN.label:
            written.unknown.append(row["id"])


_HAS_A_LIVE_JOB = (
    "EXISTS (SELECT 1 FROM scheduler_job j WHERE j.id = scheduler_podgroup.job_id "
    f"AND j.phase NOT IN ({', '.join(repr(phase) for phase in FINISHED_JOB_PHASES)}))"
)
"""Its job says when it is completed: tasks that wait for others have no pods yet."""


def _group_statement() -> str:
    def kept(column: str) -> str:
        return f"{column} = coalesce(d.{column}, scheduler_podgroup.{column})"

    def kept_json(column: str) -> str:
        return f"{column} = coalesce({json_column(f'd.{column}')}, scheduler_podgroup.{column})"

    def first_time(column: str, phase: str) -> str:
        return (
            f"{column} = CASE WHEN d.phase = '{phase}' THEN coalesce(scheduler_podgroup.{column}, "
            f"%s) ELSE scheduler_podgroup.{column} END"
        )

    return (
        f"UPDATE scheduler_podgroup SET {kept('phase')}, {kept_json('conditions')}, "
        f"{kept_json('pod_conditions')}, "
        f"{kept('reason_code')}, {kept('reason_message')}, "
        f"{kept_json('reason_figures')}, {kept_json('reason_checks')}, "
        "reason_session = CASE WHEN d.reason_code IS NULL THEN scheduler_podgroup.reason_session "
        "ELSE %s END, "
        "starving_since = CASE WHEN d.starving_since IS NULL "
        "THEN scheduler_podgroup.starving_since "
        "WHEN d.starving_since < 0 THEN NULL ELSE d.starving_since END, "
        f"{first_time('enqueued_at', 'Inqueue')}, {first_time('started_at', 'Running')}, "
        f"{first_time('finished_at', 'Completed')} "
        f"FROM {values_table('d', _GROUP_COLUMNS)} "
        "WHERE scheduler_podgroup.id = d.id AND scheduler_podgroup.phase = d.old_phase "
        f"AND (d.phase IS NULL OR d.phase <> '{Phase.COMPLETED.label}' OR NOT {_HAS_A_LIVE_JOB}) "
        "RETURNING scheduler_podgroup.id"
    )


def _group_rows(
    resident: ResidentSnapshot,
    outcome: Outcome,
    now: datetime,
    number: int,
    broken: Collection[str],
) -> dict[int, dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}

    def row(number: int) -> dict[str, Any]:
        if number not in rows:
            phase = Phase(int(resident.snapshot.groups.phase[number])).label
            rows[number] = {"id": resident.group_ids[number], "old_phase": phase}
        return rows[number]

    for change in outcome.phase_changes:
        phase = _new_phase(resident, change)
        if phase is not change.old:
            row(change.row)["phase"] = phase.label
    for condition in outcome.conditions:
        row(condition.row)["conditions"] = json.dumps([_condition_columns(condition, now, number)])
    pod_conditions = _pod_conditions(resident, outcome, now)
    for said in outcome.said:
        row(said.row).update(
            _reason_columns(said), pod_conditions=json.dumps(pod_conditions.get(said.row, []))
        )
    for group, since in outcome.starving.items():
        row(group)["starving_since"] = since
    keys = resident.snapshot.groups.key
    return {number: values for number, values in rows.items() if keys[number] not in broken}


def _pod_conditions(
    resident: ResidentSnapshot,
    outcome: Outcome,
    now: datetime,
) -> dict[int, list[dict[str, Any]]]:
    """By podgroup, packed: a gang of ten thousand pods that wait for the same has one entry."""
    by_group: dict[int, list[tuple[int, str, str, str]]] = {}
    for condition in outcome.pod_conditions:
        group = int(resident.snapshot.pods.group[condition.row])
        by_group.setdefault(group, []).append(
            (resident.pod_ids[condition.row], condition.pod, condition.reason, condition.message)
        )
    return {group: packed(of_pods, now.isoformat()) for group, of_pods in by_group.items()}


def _new_phase(resident: ResidentSnapshot, change: PhaseChange) -> Phase:
    """A gang whose first members are done while others wait, run, or leave to come back is not
    completed: nobody would look at it again.
    """
    of_group = resident.snapshot.aggregates.group_counts[change.row]
    ended = of_group[PodStatus.SUCCEEDED] + of_group[PodStatus.FAILED]
    more_to_run = of_group[PodStatus.PENDING :].sum() > ended
    if change.new is Phase.COMPLETED and more_to_run:
        return Phase.RUNNING
    return change.new


def _condition_columns(condition: Condition, now: datetime, number: int) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": "True",
        "reason": condition.reason,
        "message": condition.message,
        "transitionID": str(number),
        "lastTransitionTime": now.isoformat(),
    }


def _reason_columns(said: Said) -> dict[str, Any]:
    reason = said.reason
    if reason is None:
        return {
            "reason_code": "",
            "reason_message": "",
            "reason_figures": "{}",
            "reason_checks": "[]",
        }
    return {
        "reason_code": str(reason.code),
        "reason_message": reason.message,
        "reason_figures": json.dumps(dict(reason.figures), default=_plain_value),
        "reason_checks": json.dumps(_check_rows(reason)),
    }


def _check_rows(reason: Reason) -> list[dict[str, Any]]:
    return [check.as_dict() for check in reason.checks]


def _plain_value(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
