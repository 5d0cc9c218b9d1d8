"""The sums of each queue and of all its ancestors, current at every step of a session."""

from __future__ import annotations

from itertools import count

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.tables import IS_ALLOCATED
from scheduler.domain.workloads import Phase
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
        known = groups.alive & (groups.queue >= 0)
        self.gangs = np.bincount(groups.queue[known], minlength=len(queue_tree))
        allocated = sums.group_allocated
        self.allocated = self._by_queue(snapshot, allocated, known)
        pending = sums.group_pending
        is_held = specs.held[groups.queue][:, None]
        self.request = self._by_queue(snapshot, allocated + np.where(is_held, 0, pending), known)
        self.held = self._by_queue(snapshot, np.where(is_held, pending, 0), known)
        self.inqueue = self._by_queue(snapshot, inqueue_amounts(snapshot), known)
        self.elastic = self._by_queue(snapshot, elastic_amounts(snapshot), known)

    def _by_queue(self, snapshot: Snapshot, amounts: Amounts, known: Mask) -> Amounts:
        """Podgroups' amounts summed into their queues and up the tree."""
        sums = np.zeros((len(self.queue_tree), len(snapshot.resources)), dtype=np.int64)
        rows = np.flatnonzero(known & amounts.any(axis=1))
        np.add.at(sums, snapshot.groups.queue[rows], amounts[rows])
        self.queue_tree.add_up(sums)
        return sums

    def allocate(self, queue: int, amount: Amounts) -> None:
        """`amount` (may be negative) is used by the queue from now on."""
        self.allocated[self.queue_tree.path(queue)] += amount
        self._name(queue, [next(self._names)] * (len(self.queue_tree.path_list(queue)) + 1))

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


def inqueue_amounts(snapshot: Snapshot) -> Amounts:
    """What admitted podgroups may still take of their minResources: all Inqueue ones, and Running
    ones that have their gang.
    """
    groups = snapshot.groups
    sums = snapshot.aggregates
    placed = sums.group_counts[:, IS_ALLOCATED].sum(axis=1)
    counts = (groups.phase == Phase.INQUEUE) | (
        (groups.phase == Phase.RUNNING) & (placed >= groups.min_member)
    )
    missing = np.maximum(0, groups.min_resources - sums.group_allocated)
    return np.where((counts & groups.has_min_resources)[:, None], missing, 0)


def elastic_amounts(snapshot: Snapshot) -> Amounts:
    """What podgroups use beyond their minResources; all of it where none are set."""
    elastic: Amounts = np.maximum(
        0, snapshot.aggregates.group_allocated - snapshot.groups.min_resources
    )
    return elastic
