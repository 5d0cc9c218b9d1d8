"""The sums of each queue and of all its ancestors, current at every step of a session."""

from __future__ import annotations

from itertools import count

import numpy as np

from scheduler.domain.codes import PhaseCode, StatusCode
from scheduler.domain.nodes import Amounts
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.tables import IS_ALLOCATED, Rows, sums_by
from scheduler.engine.state.queue_specs import QueueSpecs
from scheduler.engine.state.queue_tree import SessionQueueTree


class QueueUsage:
    """`allocated`, `request`, `held`, `inqueue` and `elastic`, queues by resources.

    `dims` marks the resources that queues are about.

    `request` is what has a place and what may get one; what waits in suspended queues is `held`:
    nobody could use a share parked there.
    """

    def __init__(self, snapshot: Snapshot, queue_tree: SessionQueueTree, specs: QueueSpecs) -> None:
        self.queue_tree = queue_tree
        self.dims = specs.dims
        self.state = 0  # names what all queues use: as long as it is the same, nothing has changed
        self.version = [0] * len(queue_tree)  # the same for each queue alone
        self._names = count(1)
        groups = snapshot.groups
        sums = snapshot.aggregates
        rows = np.flatnonzero(groups.alive & (groups.queue >= 0))
        queues = groups.queue[rows]
        self.gangs = np.bincount(queues, minlength=len(queue_tree))
        allocated = sums_by(queues, sums.group_allocated[rows], len(queue_tree))
        waiting, held = _pending_amounts(snapshot, rows, specs)
        parts = (
            allocated,
            allocated + waiting,
            held,
            sums_by(queues, inqueue_amounts(snapshot, rows), len(queue_tree)),
            sums_by(queues, elastic_amounts(snapshot, rows), len(queue_tree)),
        )
        # All of them at once: side by side in one table, summed up the tree.
        table = np.concatenate(parts, axis=1)
        queue_tree.add_up(table)
        self.allocated, self.request, self.held, self.inqueue, self.elastic = (
            np.ascontiguousarray(part) for part in np.split(table, len(parts), axis=1)
        )

    def allocate(self, queue: int, amount: Amounts) -> None:
        """`amount` (may be negative) is used by the queue from now on."""
        name = next(self._names)
        self.state = name
        for row in self.queue_tree.path_list(queue):  # a path is short
            self.allocated[row] += amount
            self.version[row] = name

    def names(self, queue: int) -> list[int]:
        """The names of the present state, of all queues and of each on the path: for `go_back`."""
        return [self.state, *(self.version[row] for row in self.queue_tree.path_list(queue))]

    def go_back(self, queue: int, names: list[int]) -> None:
        """A change was undone and everything is as it was when it had these names: what was found
        out then holds again.
        """
        self._name(queue, names)

    def _name(self, queue: int, names: list[int]) -> None:
        self.state = names[0]
        for row, name in zip(self.queue_tree.path_list(queue), names[1:], strict=True):
            self.version[row] = name

    def enqueue(self, queue: int, amount: Amounts) -> None:
        self.inqueue[self.queue_tree.path(queue)] += amount


def _pending_amounts(snapshot: Snapshot, rows: Rows, specs: QueueSpecs) -> tuple[Amounts, Amounts]:
    """What pods that wait ask for, by queue: in queues that may have it, and in suspended ones.

    Few podgroups have pods that wait.
    """
    sums = snapshot.aggregates
    waiting = rows[sums.group_counts[rows, StatusCode.PENDING] > 0]
    queues = snapshot.groups.queue[waiting]
    pending = sums.group_pending[waiting]
    is_held = specs.held[queues]
    length = len(specs.held) - 1
    return (
        sums_by(queues[~is_held], pending[~is_held], length),
        sums_by(queues[is_held], pending[is_held], length),
    )


def inqueue_amounts(snapshot: Snapshot, rows: Rows) -> Amounts:
    """What these podgroups may still take of their minResources, if they are admitted: all Inqueue
    ones, and Running ones that have their gang.
    """
    groups = snapshot.groups
    sums = snapshot.aggregates
    placed = sums.group_counts[rows][:, IS_ALLOCATED].sum(axis=1)
    phase = groups.phase[rows]
    counts = (phase == PhaseCode.INQUEUE) | (
        (phase == PhaseCode.RUNNING) & (placed >= groups.min_member[rows])
    )
    counts &= groups.has_min_resources[rows]
    amounts: Amounts = np.zeros((len(rows), len(snapshot.resources)), dtype=np.int64)
    counted = rows[counts]
    missing = groups.min_resources[counted] - sums.group_allocated[counted]
    amounts[counts] = np.maximum(0, missing)
    return amounts


def elastic_amounts(snapshot: Snapshot, rows: Rows) -> Amounts:
    """What these podgroups use beyond their minResources; all of it where none are set."""
    allocated = snapshot.aggregates.group_allocated[rows]
    elastic: Amounts = np.maximum(0, allocated - snapshot.groups.min_resources[rows])
    return elastic
