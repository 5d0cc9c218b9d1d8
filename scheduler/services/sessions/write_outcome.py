"""A session's outcome into the database: one transaction, a fixed number of statements, however
many decisions there are.

Every statement checks each row as it is now: a pod that is no longer Pending, a queue that was
closed or suspended, a node that was lost since the snapshot are left alone, and all are once
scheduling is paused. A gang that loses one member in this way loses all of this session's
placements; the next session tries again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from django.db import connection

from scheduler.domain.pod_conditions import general, packed
from scheduler.domain.resources import Resources
from scheduler.domain.workloads import Phase, PodStatus
from scheduler.engine.decisions import (
    Bind,
    Condition,
    Event,
    Evict,
    Outcome,
    PhaseChange,
    QueueFigures,
    Reason,
    Said,
)
from scheduler.models.bulk import (
    as_parameter,
    columns_table,
    execute,
    fetch,
    json_column,
    values_table,
)
from scheduler.models.workload import FINISHED_JOB_PHASES
from scheduler.selectors.sessions.snapshot_rows import ids_parameter, one_of_ids
from scheduler.selectors.sessions.snapshots import ResidentSnapshot
from scheduler.services.records.events import EventNote, record_events

_SCHEDULED_STATES = "('Open', 'Closing')"
_NOT_PAUSED = "NOT EXISTS (SELECT 1 FROM scheduler_clusterstate c WHERE c.paused)"


@dataclass(slots=True)
class Written:
    """What was really written."""

    bound: list[Bind] = field(default_factory=list)
    evicted: list[Evict] = field(default_factory=list)
    lost: int = 0  # placements that something else had overtaken
    # podgroups that lost theirs: nothing else is said about them either
    broken: set[str] = field(default_factory=set)
    # podgroups of which some pods run while the others cannot
    unknown: list[int] = field(default_factory=list)
    podgroups: set[str] = field(default_factory=set)
    queues: set[str] = field(default_factory=set)
    completed: bool = False  # some podgroup was completed: a closing queue may be closed now


def write_outcome(
    resident: ResidentSnapshot, outcome: Outcome, *, session_id: int, number: int, now: datetime
) -> Written:
    """Write everything but the session's own row.

    To be called inside the transaction that holds the lease.
    """
    written = Written()
    _write_binds(resident, outcome, now, written)
    _write_evictions(resident, outcome, written)
    _write_reservations(resident, outcome, written)
    _write_podgroups(resident, outcome, number, now, written)
    _write_decisions(resident, written, session_id, now)
    _write_victims(written, session_id, number, now)
    record_events(_event_notes(resident, outcome, written), now)
    return written


# Pods


def _write_binds(
    resident: ResidentSnapshot, outcome: Outcome, now: datetime, written: Written
) -> None:
    if not outcome.binds:
        return
    by_id = {resident.pod_ids[bind.row]: bind for bind in outcome.binds}
    taken = _bind_pods(_still_possible(resident, outcome, by_id), now)
    if len(taken) < len(by_id):
        written.broken = {bind.podgroup for pk, bind in by_id.items() if pk not in taken}
        _undo_binds([pk for pk in taken if by_id[pk].podgroup in written.broken])
    written.bound = [bind for bind in outcome.binds if bind.podgroup not in written.broken]
    written.lost = len(by_id) - len(written.bound)


def _still_possible(
    resident: ResidentSnapshot, outcome: Outcome, by_id: Mapping[int, Bind]
) -> list[tuple[int, int, bool]]:
    """Pod, node and whether the room is borrowed, of each placement whose gang may still start and
    whose node still takes pods.
    """
    groups = _startable_groups(resident, outcome)
    nodes = _usable_nodes(resident, outcome)
    places = ((pk, resident.node_ids[bind.node], bind) for pk, bind in by_id.items())
    return [
        (pk, node, bind.borrowed)
        for pk, node, bind in places
        if bind.podgroup in groups and node in nodes
    ]


def _bind_pods(places: Sequence[tuple[int, int, bool]], now: datetime) -> set[int]:
    """The ids of the pods that were still waiting and have their place now."""
    if not places:
        return set()
    columns = {"id": "bigint", "node_id": "bigint", "borrowed": "boolean"}
    table, parameters = columns_table("d", columns, list(zip(*places, strict=True)))
    sql = (
        "UPDATE scheduler_pod SET phase = 'Binding', node_id = d.node_id, borrowed = d.borrowed, "
        "bound_at = %s, "
        f"reserved_node_id = NULL, reserved_until = NULL FROM {table} "
        "WHERE scheduler_pod.id = d.id AND scheduler_pod.phase = 'Pending' RETURNING "
        "scheduler_pod.id"
    )
    return {pk for (pk,) in fetch(sql, [now, *parameters])}


def _startable_groups(resident: ResidentSnapshot, outcome: Outcome) -> set[str]:
    """Podgroups that may still start: they and their queues are as they must be."""
    groups = resident.snapshot.groups
    rows = {
        int(row)
        for row in np.unique(resident.snapshot.pods.group[[bind.row for bind in outcome.binds]])
    }
    by_id = {resident.group_ids[row]: groups.key[row] for row in rows}
    sql = (
        "SELECT g.id FROM scheduler_podgroup g JOIN scheduler_queue q ON q.id = g.queue_id "
        f"WHERE {one_of_ids('g.id')} AND g.phase <> 'Completed' AND NOT g.stopping "
        f"AND q.held_by = '' AND q.state IN {_SCHEDULED_STATES} AND {_NOT_PAUSED}"
    )
    return {by_id[pk] for (pk,) in fetch(sql, [ids_parameter(by_id)])}


def _usable_nodes(resident: ResidentSnapshot, outcome: Outcome) -> set[int]:
    """Nodes that still take pods."""
    wanted = {resident.node_ids[bind.node] for bind in outcome.binds}
    sql = (
        f"SELECT n.id FROM scheduler_node n WHERE {one_of_ids('n.id')} AND n.ready AND NOT "
        "n.unschedulable"
    )
    return {pk for (pk,) in fetch(sql, [ids_parameter(wanted)])}


def _undo_binds(ids: Collection[int]) -> None:
    if not ids:
        return
    execute(
        "UPDATE scheduler_pod SET phase = 'Pending', node_id = NULL, borrowed = false, bound_at = "
        "NULL "
        f"FROM {values_table('d', {'id': 'bigint'})} WHERE scheduler_pod.id = d.id",
        [as_parameter({"id": pk} for pk in ids)],
    )


def _write_evictions(resident: ResidentSnapshot, outcome: Outcome, written: Written) -> None:
    if not outcome.evictions:
        return
    by_id = {resident.pod_ids[evict.row]: evict for evict in outcome.evictions}
    # A queue that was suspended meanwhile keeps its pods; one that was held already was taken from
    # knowingly.
    held = {queue.name for queue in resident.snapshot.queues if queue.is_held}
    sql = (
        "UPDATE scheduler_pod SET phase = 'Releasing' FROM "
        f"{values_table('d', {'id': 'bigint', 'was_held': 'boolean'})} "
        f"WHERE {_NOT_PAUSED} AND scheduler_pod.id = d.id AND scheduler_pod.phase IN ('Binding', "
        "'Bound', 'Running') "
        "AND (d.was_held OR EXISTS "
        "(SELECT 1 FROM scheduler_podgroup g JOIN scheduler_queue q ON q.id = g.queue_id "
        "WHERE g.id = scheduler_pod.podgroup_id AND q.held_by = '')) RETURNING scheduler_pod.id"
    )
    rows = [{"id": pk, "was_held": evict.queue in held} for pk, evict in by_id.items()]
    taken = {pk for (pk,) in fetch(sql, [as_parameter(rows)])}
    written.evicted = [evict for pk, evict in by_id.items() if pk in taken]


def _write_reservations(resident: ResidentSnapshot, outcome: Outcome, written: Written) -> None:
    """Only what differs from what the pods have: new places, and those that were given up."""
    pods = resident.snapshot.pods
    nodes = resident.snapshot.nodes.names
    bound = {bind.row for bind in written.bound}
    wanted = {item.row: (item.node, item.expires) for item in outcome.reservations}
    had = {
        int(row): (nodes[pods.reserved_node[row]], int(pods.reserved_until[row]))
        for row in np.flatnonzero(pods.reserved_node >= 0)
    }
    changed = [
        row
        for row in wanted.keys() | had.keys()
        if wanted.get(row) != had.get(row) and row not in bound
    ]
    if not changed:
        return
    rows = [_reservation_row(resident, row, wanted.get(row)) for row in sorted(changed)]
    execute(
        "UPDATE scheduler_pod SET reserved_node_id = d.node_id, reserved_until = d.until "
        f"FROM {values_table('d', {'id': 'bigint', 'node_id': 'bigint', 'until': 'bigint'})} WHERE "
        "scheduler_pod.id = d.id "
        "AND (d.node_id IS NULL OR EXISTS (SELECT 1 FROM scheduler_node n WHERE n.id = d.node_id))",
        [as_parameter(rows)],
    )


def _reservation_row(
    resident: ResidentSnapshot, row: int, place: tuple[str, int] | None
) -> dict[str, Any]:
    node, until = place if place else (None, None)
    return {
        "id": resident.pod_ids[row],
        "node_id": resident.node_ids[node] if node else None,
        "until": until,
    }


# Podgroups

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


def _write_podgroups(
    resident: ResidentSnapshot, outcome: Outcome, number: int, now: datetime, written: Written
) -> None:
    rows = _group_rows(resident, outcome, now, number, written.broken)
    if not rows:
        return
    taken = {
        pk
        for (pk,) in fetch(_group_statement(), [number, now, now, now, as_parameter(rows.values())])
    }
    keys = resident.snapshot.groups.key
    written.podgroups = {keys[row] for row in rows if rows[row]["id"] in taken}
    written.completed = any(
        row.get("phase") == Phase.COMPLETED.label and row["id"] in taken for row in rows.values()
    )
    written.unknown = [
        row["id"]
        for row in rows.values()
        if row.get("phase") == Phase.UNKNOWN.label and row["id"] in taken
    ]


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
    told = _pod_conditions(resident, outcome, now)
    for said in outcome.said:
        row(said.row).update(
            _reason_columns(said), pod_conditions=json.dumps(told.get(said.row, []))
        )
    for group, since in outcome.starving.items():
        row(group)["starving_since"] = since
    keys = resident.snapshot.groups.key
    return {number: values for number, values in rows.items() if keys[number] not in broken}


def _pod_conditions(
    resident: ResidentSnapshot, outcome: Outcome, now: datetime
) -> dict[int, list[dict[str, Any]]]:
    """By podgroup, packed: a gang of ten thousand pods that wait for the same has one entry."""
    told: dict[int, list[tuple[int, str, str, str]]] = {}
    for condition in outcome.pod_conditions:
        group = int(resident.snapshot.pods.group[condition.row])
        told.setdefault(group, []).append(
            (resident.pod_ids[condition.row], condition.pod, condition.reason, condition.message)
        )
    return {group: packed(of_pods, now.isoformat()) for group, of_pods in told.items()}


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


# Records

_DECISION_COLUMNS = {
    "kind": "text",
    "pod_id": "bigint",
    "pod_name": "text",
    "podgroup_name": "text",
    "queue_name": "text",
    "node_name": "text",
    "action": "text",
}


def _write_decisions(
    resident: ResidentSnapshot, written: Written, session_id: int, now: datetime
) -> None:
    rows = [
        _decision_row("Bind", bind, "backfill" if bind.borrowed else "allocate", resident)
        for bind in written.bound
    ]
    rows += [_decision_row("Evict", evict, evict.action, resident) for evict in written.evicted]
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
    kind: str, decision: Bind | Evict, action: str, resident: ResidentSnapshot
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
}
_JSON_COLUMNS = ("before", "after")


def _write_victims(written: Written, session_id: int, number: int, now: datetime) -> None:
    if not written.evicted:
        return
    names = ", ".join(f'"{name}"' for name in _VICTIM_COLUMNS)
    values = ", ".join(
        json_column(f'"{name}"') if name in _JSON_COLUMNS else f'"{name}"'
        for name in _VICTIM_COLUMNS
    )
    execute(
        f"INSERT INTO scheduler_eviction (session_id, session_number, created_at, {names}) "
        f"SELECT %s, %s, %s, {values} FROM {values_table('d', _VICTIM_COLUMNS)}",
        [
            session_id,
            number,
            now,
            as_parameter(_victim_columns(evict) for evict in written.evicted),
        ],
    )


def _victim_columns(evict: Evict) -> dict[str, Any]:
    limits = {"deserved": dict(evict.deserved), "guarantee": dict(evict.guarantee)}
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
    }


_EVENT_KINDS = {"podgroup": "PodGroup", "pod": "Pod", "queue": "Queue"}


def _event_notes(resident: ResidentSnapshot, outcome: Outcome, written: Written) -> list[EventNote]:
    queues = _queues_told_of(resident, outcome)
    notes = []
    for event in _told_once_a_gang(resident, outcome):
        if event.name in written.broken:
            continue
        namespace, _, name = event.name.rpartition("/")
        notes.append(
            EventNote(
                kind=_EVENT_KINDS.get(event.object, event.object),
                name=name,
                namespace=namespace,
                reason=event.reason,
                message=event.message,
                queue=queues.get(event.name, event.name if event.object == "queue" else ""),
                warning=event.type == "Warning",
                code=event.code,
            )
        )
    return notes


def _queues_told_of(resident: ResidentSnapshot, outcome: Outcome) -> dict[str, str]:
    """Where the podgroups and pods are of which something is said: who may see the queue may see
    the event.
    """
    group_of = resident.snapshot.pods.group
    rows = {said.podgroup: said.row for said in outcome.said}
    rows |= {condition.podgroup: condition.row for condition in outcome.conditions}
    rows |= {item.pod: int(group_of[item.row]) for item in outcome.pod_conditions}
    evicted = {
        name: evict.queue for evict in outcome.evictions for name in (evict.pod, evict.podgroup)
    }
    return {name: _queue_name(resident, row) for name, row in rows.items()} | evicted


def _told_once_a_gang(resident: ResidentSnapshot, outcome: Outcome) -> Iterator[Event]:
    """What is said of every waiting pod of a gang in the same words is kept for the first of them:
    thousands may wait.
    """
    gangs = {
        condition.pod: int(resident.snapshot.pods.group[condition.row])
        for condition in outcome.pod_conditions
    }
    told: set[tuple[int | None, str, str]] = set()
    for event in outcome.events:
        if event.object == "pod" and event.reason == "FailedScheduling":
            gang = gangs.get(event.name)
        else:
            gang = None
        words = (gang, event.reason, general(event.message, event.name))
        if gang is None or words not in told:
            yield event
        told.add(words)


def _queue_name(resident: ResidentSnapshot, group_row: int) -> str:
    row = int(resident.snapshot.groups.queue[group_row])
    if row >= 0:
        return resident.snapshot.queues[row].name
    return ""


# Queues

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
