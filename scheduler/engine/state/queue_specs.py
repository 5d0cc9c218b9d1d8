"""What the specs of all queues say, as tables: queues by resources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.queues import DequeueStrategy
from scheduler.domain.resources import Resources
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.tables import Times
from scheduler.engine.state.queue_tree import SessionQueueTree

NO_LIMIT: Final = 2**62
_BASE: Final = ("cpu", "memory")


class QueueSpecs:
    """Read from the queues alone, so that it serves every session until they change; nobody may
    write into these tables.
    """

    def __init__(self, queue_tree: SessionQueueTree, resources: Sequence[str]) -> None:
        self._queue_tree = queue_tree
        self._resources = resources
        self._specs = [queue.spec for queue in queue_tree.queues]

    @classmethod
    def of(cls, snapshot: Snapshot, queue_tree: SessionQueueTree) -> QueueSpecs:
        """Those of the last session, if the queues are still the same."""
        kept = snapshot.found_of_queues
        if ("specs", queue_tree.hierarchical) not in kept:
            kept["specs", queue_tree.hierarchical] = cls(queue_tree, snapshot.resources)
        found: QueueSpecs = kept["specs", queue_tree.hierarchical]
        return found

    @cached_property
    def guarantee(self) -> Amounts:
        return _fixed(spec_matrix([spec.guarantee for spec in self._specs], self._resources))

    @cached_property
    def deserved(self) -> Amounts:
        return _fixed(spec_matrix([spec.deserved for spec in self._specs], self._resources))

    @cached_property
    def capability(self) -> Amounts:
        return _fixed(capability_matrix([spec.capability for spec in self._specs], self._resources))

    @cached_property
    def owns(self) -> Mask:
        """Where deserved or guarantee says something."""
        return owned_matrix([spec.deserved for spec in self._specs], self._resources) | (
            self.guarantee > 0
        )

    @cached_property
    def weights(self) -> Amounts:
        return _fixed(np.array([max(0, spec.weight) for spec in self._specs], dtype=np.int64))

    @cached_property
    def min_run_seconds(self) -> Times:
        """The minimum running time that each queue names, or else the nearest queue above it; NaN
        where none of them does.
        """
        seconds = np.full(len(self._specs), np.nan)
        for row in self._queue_tree.top_down:
            parent = self._queue_tree.parent[row]
            named = self._specs[row].min_run_seconds
            if named is not None:
                seconds[row] = named
            elif parent >= 0:
                seconds[row] = seconds[parent]
        return seconds

    @cached_property
    def dims(self) -> Mask:
        """The resources that queues are about: all but `pods`, which limits nodes; unless a queue
        names it.
        """
        dims = np.ones(len(self._resources), dtype=np.bool_)
        amounts = (
            amounts
            for spec in self._specs
            for amounts in (spec.capability, spec.deserved, spec.guarantee)
        )
        dims[self._resources.index("pods")] = any("pods" in named for named in amounts)
        return dims

    @cached_property
    def held(self) -> Mask:
        """Queues that are suspended; the last entry stands for "no queue"."""
        return np.array(
            [*(queue.is_held for queue in self._queue_tree.queues), False], dtype=np.bool_
        )

    @cached_property
    def schedules(self) -> Mask:
        """Leaves whose state lets gangs start; the last entry stands for "no queue"."""
        leaves = (
            queue.schedules and self._queue_tree.is_leaf(row)
            for row, queue in enumerate(self._queue_tree.queues)
        )
        return np.array([*leaves, False], dtype=np.bool_)

    @cached_property
    def strict(self) -> Mask:
        """Queues that are first in, first out; the last entry stands for "no queue"."""
        strict = (spec.dequeue_strategy is DequeueStrategy.FIFO for spec in self._specs)
        return np.array([*strict, False], dtype=np.bool_)

    @cached_property
    def reclaimable_leaves(self) -> Mask:
        """Leaves that do not keep what they have from others."""
        return np.array(
            [
                spec.reclaimable and self._queue_tree.is_leaf(row)
                for row, spec in enumerate(self._specs)
            ],
            dtype=np.bool_,
        )


def _fixed(table: Amounts) -> Amounts:
    table.flags.writeable = False
    return table


def spec_matrix(amounts: Sequence[Resources], resources: Sequence[str]) -> Amounts:
    """What the specs name; 0 where they are silent. Cut where sums would overflow."""
    matrix = np.zeros((len(amounts), len(resources)), dtype=np.int64)
    for row, dim, _, value in _named(amounts, resources):
        matrix[row, dim] = min(max(value, 0), NO_LIMIT)
    return matrix


def capability_matrix(amounts: Sequence[Resources], resources: Sequence[str]) -> Amounts:
    """What the specs allow; NO_LIMIT where they are silent, and where cpu or memory is 0."""
    matrix = np.full((len(amounts), len(resources)), NO_LIMIT, dtype=np.int64)
    for row, dim, name, value in _named(amounts, resources):
        if name not in _BASE or value > 0:
            matrix[row, dim] = min(max(value, 0), NO_LIMIT)
    return matrix


def owned_matrix(amounts: Sequence[Resources], resources: Sequence[str]) -> Mask:
    """Where deserved says something: cpu and memory if above 0, any other resource if it is named
    at all.
    """
    matrix = np.zeros((len(amounts), len(resources)), dtype=np.bool_)
    for row, dim, name, value in _named(amounts, resources):
        matrix[row, dim] = name not in _BASE or value > 0
    return matrix


def _named(
    amounts: Sequence[Resources], resources: Sequence[str]
) -> Iterator[tuple[int, int, str, int]]:
    """Row, column, name and value of everything that is named: most specs name little."""
    columns = {name: dim for dim, name in enumerate(resources)}
    for row, named in enumerate(amounts):
        if named:
            yield from (
                (row, columns[name], name, value)
                for name, value in named.items()
                if name in columns
            )
