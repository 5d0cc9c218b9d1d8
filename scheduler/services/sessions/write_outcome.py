"""A session's outcome into the database: one transaction, a fixed number of statements, however
many decisions there are.

Every statement checks each row as it is now: a pod that is no longer Pending, a queue that was
closed or suspended, a node that was lost since the snapshot are left alone, and all are once
scheduling is paused. A gang that loses one member in this way loses all of this session's
placements; the next session tries again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from scheduler.domain.evictions import event_words
from scheduler.engine.decisions import (
    Bind,
    Outcome,
)
from scheduler.models.bulk import (
    as_parameter,
    columns_table,
    execute,
    fetch,
    values_table,
)
from scheduler.selectors.sessions.snapshot_rows import ids_parameter, one_of_ids
from scheduler.selectors.sessions.snapshots import ResidentSnapshot
from scheduler.services.notices.gangs import say_session
from scheduler.services.records.events import record_events
from scheduler.services.sessions.write_decisions import write_decisions, write_victims
from scheduler.services.sessions.write_events import event_notes
from scheduler.services.sessions.write_podgroups import write_podgroups
from scheduler.services.sessions.written import Written

_SCHEDULED_STATES = "('Open', 'Closing')"


_NOT_PAUSED = "NOT EXISTS (SELECT 1 FROM scheduler_clusterstate c WHERE c.paused)"


def write_outcome(
    resident: ResidentSnapshot,
    outcome: Outcome,
    *,
    session_id: int,
    number: int,
    now: datetime,
) -> Written:
    """Write everything but the session's own row.

    To be called inside the transaction that holds the lease.
    """
    written = Written()
    _write_binds(resident, outcome, now, written)
    _write_evictions(resident, outcome, written)
    _write_reservations(resident, outcome, written)
    write_podgroups(resident, outcome, number, now, written)
    write_decisions(resident, written, session_id, now)
    write_victims(written, session_id, number, now)
    record_events(event_notes(resident, outcome, written), now)
    say_session(written.started, written.ended, _evicted_gangs(resident, written), number)
    return written


def _write_binds(
    resident: ResidentSnapshot,
    outcome: Outcome,
    now: datetime,
    written: Written,
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
    resident: ResidentSnapshot,
    outcome: Outcome,
    by_id: Mapping[int, Bind],
) -> list[tuple[int, int, bool]]:
    """Pod, node and whether the room is borrowed, of each placement whose gang may still start and
    whose node still takes pods.
    """
    groups = _startable_groups(resident, outcome)
    nodes = _usable_nodes(resident, outcome)
    places = []
    for pk, bind in by_id.items():
        node = resident.node_ids[bind.node]
        if bind.podgroup in groups and node in nodes:
            places.append((pk, node, bind.borrowed))
    return places


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
    keys = resident.snapshot.groups.key
    pods = [bind.row for bind in outcome.binds]
    rows = np.unique(resident.snapshot.pods.group[pods]).tolist()
    by_id = {resident.group_ids[row]: keys[row] for row in rows}
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
    _count_evictions(resident, written)


def _count_evictions(resident: ResidentSnapshot, written: Written) -> None:
    """Once for each gang, however many pods it loses in this session."""
    group_of = resident.snapshot.pods.group
    gangs = {resident.group_ids[group_of[evict.row]] for evict in written.evicted}
    if not gangs:
        return
    execute(
        f"UPDATE scheduler_podgroup SET evictions = evictions + 1 WHERE {one_of_ids('id')}",
        [ids_parameter(gangs)],
    )


def _evicted_gangs(resident: ResidentSnapshot, written: Written) -> dict[int, str]:
    """By the key of each gang that lost pods: why it lost the first of them."""
    group_of = resident.snapshot.pods.group
    reasons: dict[int, str] = {}
    for evict in written.evicted:
        gang = resident.group_ids[group_of[evict.row]]
        if gang not in reasons:
            grounds = evict.grounds.as_dict() if evict.grounds else {}
            reasons[gang] = event_words(evict.action, grounds)
    return reasons


def _write_reservations(resident: ResidentSnapshot, outcome: Outcome, written: Written) -> None:
    """Only what differs from what the pods have: new places, and those that were given up."""
    pods = resident.snapshot.pods
    nodes = resident.snapshot.nodes.names
    bound = {bind.row for bind in written.bound}
    wanted = {item.row: (item.node, item.expires) for item in outcome.reservations}
    had = {}
    for row in np.flatnonzero(pods.reserved_node >= 0).tolist():
        had[row] = (nodes[pods.reserved_node[row]], int(pods.reserved_until[row]))
    rows = []
    for row in sorted((wanted.keys() | had.keys()) - bound):
        if wanted.get(row) != had.get(row):
            rows.append(_reservation_row(resident, row, wanted.get(row)))
    if not rows:
        return
    execute(
        "UPDATE scheduler_pod SET reserved_node_id = d.node_id, reserved_until = d.until "
        f"FROM {values_table('d', {'id': 'bigint', 'node_id': 'bigint', 'until': 'bigint'})} WHERE "
        "scheduler_pod.id = d.id "
        "AND (d.node_id IS NULL OR EXISTS (SELECT 1 FROM scheduler_node n WHERE n.id = d.node_id))",
        [as_parameter(rows)],
    )


def _reservation_row(
    resident: ResidentSnapshot,
    row: int,
    place: tuple[str, int] | None,
) -> dict[str, Any]:
    node, until = place if place else (None, None)
    return {
        "id": resident.pod_ids[row],
        "node_id": resident.node_ids[node] if node else None,
        "until": until,
    }
