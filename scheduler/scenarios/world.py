"""The world between two sessions of a simulation: bound pods run, pods that must go are gone, and
memories are carried over.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scheduler.domain.snapshot import Snapshot
from scheduler.domain.tables import NO_NODE, GroupTable, PodTable
from scheduler.domain.workloads import PodStatus
from scheduler.engine.decisions import Outcome


def advance(snapshot: Snapshot, outcome: Outcome, seconds: float = 1.0) -> Snapshot:
    """The next snapshot if the cluster does at once what the session decided.

    The given one is left as it was.
    """
    following = _copy_snapshot(snapshot)
    following.session += 1
    following.taken_at += seconds
    _start_and_stop(following, outcome)
    _keep_reservations(following, outcome)
    _remember_outcome(following, outcome)
    return following


def _copy_snapshot(snapshot: Snapshot) -> Snapshot:
    """Pods and podgroups are copied.

    Nodes, queues and classes are shared, as nothing here changes them.
    """
    pods = PodTable(**snapshot.pods.take(np.arange(len(snapshot.pods))))
    groups = GroupTable(**snapshot.groups.take(np.arange(len(snapshot.groups))))
    return replace(snapshot, pods=pods, groups=groups)


def _start_and_stop(snapshot: Snapshot, outcome: Outcome) -> None:
    rows = np.array([bind.row for bind in outcome.binds], dtype=np.intp)
    snapshot.change_pods(
        rows,
        node=np.array([snapshot.nodes.rows[bind.node] for bind in outcome.binds], dtype=np.int32),
        status=int(PodStatus.RUNNING),
        borrowed=np.array([bind.borrowed for bind in outcome.binds], dtype=np.bool_),
    )
    evicted = np.array([eviction.row for eviction in outcome.evictions], dtype=np.intp)
    snapshot.remove_pods(
        np.union1d(evicted, np.flatnonzero(snapshot.pods.status == PodStatus.RELEASING))
    )


def _keep_reservations(snapshot: Snapshot, outcome: Outcome) -> None:
    snapshot.pods.reserved_node[:] = NO_NODE
    snapshot.pods.reserved_until[:] = -1
    for reservation in outcome.reservations:
        snapshot.pods.reserved_node[reservation.row] = snapshot.nodes.rows[reservation.node]
        snapshot.pods.reserved_until[reservation.row] = reservation.expires


def _remember_outcome(snapshot: Snapshot, outcome: Outcome) -> None:
    groups = snapshot.groups
    for change in outcome.phase_changes:
        groups.phase[change.row] = change.new
    for row, since in outcome.starving.items():
        groups.starving_since[row] = since
    for said in outcome.said:
        groups.said[said.row] = said.fingerprint
