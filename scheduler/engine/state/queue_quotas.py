"""What each queue deserves and how far it may go: the figures that a queue plugin computes when a
session opens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.engine.fair_share import int_sum
from scheduler.engine.state.queue_tree import SessionQueueTree
from scheduler.engine.state.queue_usage import QueueUsage
from scheduler.engine.state.reserved_guarantees import ReservedGuarantees


@dataclass(eq=False)
class Quotas:
    """Queues by resources.

    `owns` marks where deserved says something; `unset_share` is the share of a queue that deserves
    nothing. `reserved` is there where queues leave free what others are guaranteed.
    """

    queue_usage: QueueUsage
    deserved: Amounts
    owns: Mask
    guarantee: Amounts
    real_capability: Amounts
    total: Amounts
    unset_share: float
    reserved: ReservedGuarantees | None = None
    _shares: dict[int, tuple[int, float]] = field(default_factory=dict)
    _parts: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    _guaranteed: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def share(self, row: int) -> float:
        """The largest part of its deserved that the queue uses."""
        version = self.queue_usage.version[row]
        cached = self._shares.get(row)
        if cached is None or cached[0] != version:
            cached = self._shares[row] = (version, self._share(row))
        return cached[1]

    def _share(self, row: int) -> float:
        return self.share_of(row, self.queue_usage.allocated[row].tolist())

    def share_of(self, row: int, allocated: list[int]) -> float:
        """The share of the queue if it used this."""
        parts = self._deserving(row)
        if parts:
            return max([allocated[dim] / amount for dim, amount in parts])
        return self.unset_share

    def has_all(self, row: int, allocated: list[int]) -> bool:
        """Whether this is at least what the queue deserves, of every resource."""
        deserved = self.deserved_rows[row]
        return all(
            amount >= deserved[dim]
            for dim, amount in enumerate(allocated)
            if self.queue_usage.dims[dim]
        )

    def _deserving(self, row: int) -> list[tuple[int, int]]:
        """Column and amount of what the queue deserves."""
        found = self._parts.get(row)
        if found is None:
            pairs = enumerate(self.deserved_rows[row])
            found = self._parts[row] = [
                (dim, amount) for dim, amount in pairs if amount > 0 and self.queue_usage.dims[dim]
            ]
        return found

    @cached_property
    def nominal(self) -> Amounts:
        """The nominal share of each queue: those of the last session, if tree and cluster are the
        same.
        """
        queue_tree = self.queue_usage.queue_tree
        kept = queue_tree.nominal_shares
        if kept is None or (kept[0] != self.total).any():
            kept = (self.total.copy(), nominal_shares(queue_tree, self.total))
            queue_tree.nominal_shares = kept
        return kept[1]

    @cached_property
    def deserved_rows(self) -> list[list[int]]:
        rows: list[list[int]] = self.deserved.tolist()
        return rows

    @cached_property
    def limit_rows(self) -> list[list[int]]:
        """Real capability, as plain numbers."""
        rows: list[list[int]] = self.real_capability.tolist()
        return rows

    @cached_property
    def owned_rows(self) -> list[list[bool]]:
        rows: list[list[bool]] = self.owns.tolist()
        return rows

    def guaranteed(self, row: int) -> list[tuple[int, int]]:
        """Column and amount of what the queue is guaranteed."""
        found = self._guaranteed.get(row)
        if found is None:
            pairs = enumerate(self.guarantee[row].tolist())
            found = self._guaranteed[row] = [
                (dim, amount) for dim, amount in pairs if amount != 0 and self.queue_usage.dims[dim]
            ]
        return found

    def deserves_something(self, row: int) -> bool:
        return bool(self._deserving(row))

    def copies_within(
        self,
        limits: list[list[int]],
        path: Sequence[int],
        asked: Sequence[tuple[int, int]],
        wanted: int,
    ) -> int:
        """How many pods that ask for this (column and amount) fit below the limit in all these
        queues.

        Plain numbers: a path is short, and asked for every pod that is placed on its own.
        """
        for row in path:
            allocated = self.queue_usage.allocated[row].tolist()
            limit = limits[row]
            for dim, amount in asked:
                wanted = min(wanted, (limit[dim] - allocated[dim]) // amount)
        return max(0, wanted)


def beyond_guarantees(available: Amounts, guarantees: Amounts) -> Amounts:
    """What is left when every guarantee is set aside, at least 0."""
    if not guarantees.any():
        return available.copy()
    reserved = [int_sum(guarantees[:, dim]) for dim in range(guarantees.shape[1])]
    return np.array(
        [max(0, int(have) - taken) for have, taken in zip(available, reserved, strict=True)],
        dtype=np.int64,
    )


def nominal_shares(queue_tree: SessionQueueTree, total: Amounts) -> Amounts:
    """Volcano's first rule: weight / total weight x total, among siblings; a flat set is divided
    among all queues.
    """
    nominal = np.zeros((len(queue_tree), len(total)), dtype=np.int64)
    if not queue_tree.hierarchical:
        _divide(nominal, list(range(len(queue_tree))), queue_tree, total)
        return nominal
    nominal[queue_tree.root] = total
    for row in queue_tree.top_down:
        _divide(nominal, queue_tree.children[row], queue_tree, nominal[row])
    return nominal


def _divide(
    nominal: Amounts, rows: list[int], queue_tree: SessionQueueTree, amount: Amounts
) -> None:
    weights = [max(0, queue_tree.queues[row].spec.weight) for row in rows]
    whole = sum(weights)
    if whole:
        have = amount.tolist()  # plain numbers: their products may be larger than 64 bits
        nominal[rows] = [[part * weight // whole for part in have] for weight in weights]
