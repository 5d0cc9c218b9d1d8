"""Room that queues are guaranteed and do not use: others leave it free, as far as it could not be
had back from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import IS_ALLOCATED, Rows

if TYPE_CHECKING:
    from scheduler.engine.session import Session
    from scheduler.engine.state.queue_quotas import Quotas

Room = list[tuple[int, int]]
"""Column and amount."""
NOBODY: Final[Mapping[int, Amounts]] = {}
_PLENTY = 2**62


class ReservedGuarantees:
    """A gang that starts beyond its queue's due goes first when a guarantee is asked for, so it may
    use such room meanwhile. Nobody else may: it could not be made to leave.
    """

    def __init__(self, session: Session, quotas: Quotas) -> None:
        self._session = session
        self._quotas = quotas
        guaranteed = quotas.guarantee.any(axis=1)
        self._leaves = [
            row for row in np.flatnonzero(guaranteed).tolist() if session.queue_tree.is_leaf(row)
        ]
        self._rooms: dict[int, tuple[int, Room]] = {}
        self._had_back: tuple[int, Amounts] | None = None

    @property
    def guarantees_anything(self) -> bool:
        """Whether any queue has a guarantee."""
        return bool(self._leaves)

    def copies_beside(self, queue: int, asked: Room, wanted: int) -> int:
        """How many pods that ask for this the queue may have without using what others are
        guaranteed.
        """
        if not self._leaves:
            return wanted
        for dim, room in self._room_of(queue):
            for asked_dim, amount in asked:
                if asked_dim == dim:
                    wanted = min(wanted, room // amount)
        return max(0, wanted)

    def _room_of(self, queue: int) -> Room:
        """What the queue may still have of resources that others are guaranteed.

        The same as long as no queue uses more or less.
        """
        state = self._session.queue_usage.state
        found = self._rooms.get(queue)
        if found is None or found[0] != state:
            found = self._rooms[queue] = (state, self._new_room(queue))
        return found[1]

    def _new_room(self, queue: int) -> Room:
        reserved = self._reserved(queue)
        usage = self._session.queue_usage
        free = self._quotas.total - self._allocated() - reserved
        own = self._quotas.guarantee[queue] - usage.allocated[queue]
        room = np.maximum(free, own)
        return [(dim, int(room[dim])) for dim in np.flatnonzero(reserved).tolist()]

    def _allocated(self) -> Amounts:
        allocated: Amounts = self._session.queue_usage.allocated[self._session.queue_tree.root]
        return allocated

    def beside(self, queue: int, wanted: Amounts, gone: Mapping[int, Amounts] = NOBODY) -> Amounts:
        """What a gang of this queue leaves free for others; nothing of what it is guaranteed.

        `gone` is what podgroups have lost for it: that cannot be had back a second time.
        """
        reserved = self._reserved(queue, gone)
        own = self._session.queue_usage.allocated[queue] + wanted <= self._quotas.guarantee[queue]
        return np.where(own, 0, reserved)

    def _reserved(self, queue: int, gone: Mapping[int, Amounts] = NOBODY) -> Amounts:
        usage = self._session.queue_usage
        allocated = usage.allocated - self._freed_by_queue(gone)
        reserved = np.zeros(len(self._quotas.total), dtype=np.int64)
        for leaf in self._leaves:
            unused = np.maximum(0, self._quotas.guarantee[leaf] - allocated[leaf])
            if leaf != queue and unused.any():
                reserved += np.where(self._gives_back(queue, leaf, allocated), 0, unused)
        if not reserved.any():
            return reserved
        left: Amounts = np.maximum(0, reserved - self._to_be_had_back(gone))
        return np.where(usage.dims, left, 0)

    def _freed_by_queue(self, gone: Mapping[int, Amounts]) -> Amounts:
        session = self._session
        freed = np.zeros_like(session.queue_usage.allocated)
        for group, amounts in gone.items():
            freed[session.queue_tree.path(session.snapshot.groups.queue[group])] += amounts
        return freed

    def _gives_back(self, queue: int, leaf: int, allocated: Amounts) -> Mask:
        """The resources of which all that the queue gets from now on is borrowed, at every level
        that reclaim would cross.
        """
        session = self._session
        if not session.losing_leaves[queue]:
            return np.zeros(len(self._quotas.total), dtype=np.bool_)
        crossed = session.queue_tree.crossed(queue, leaf)
        gives: Mask = np.all(allocated[crossed] >= self._quotas.deserved[crossed], axis=0)
        return gives

    def _to_be_had_back(self, gone: Mapping[int, Amounts]) -> Amounts:
        """What runs beyond the due of its queue in parts small enough to be evicted alone."""
        state = self._session.queue_usage.state
        if gone:
            return self._sum_had_back(gone)
        if self._had_back is None or self._had_back[0] != state:
            self._had_back = (state, self._sum_had_back(gone))
        return self._had_back[1]

    def _sum_had_back(self, gone: Mapping[int, Amounts]) -> Amounts:
        session = self._session
        held = session.snapshot.aggregates.group_allocated.copy()
        self._take_evicted(held)
        for group, amounts in gone.items():
            held[group] -= amounts
        beyond = session.queue_usage.allocated - self._freed_by_queue(gone) - self._quotas.deserved
        total = np.zeros_like(self._quotas.total)
        for queue, rows in self._losing_groups.items():
            total += within(_parts_alone(session, rows, held[rows]), beyond[queue])
        return total

    def _take_evicted(self, held: Amounts) -> None:
        """From what podgroups hold, all that they have lost in this session."""
        session = self._session
        pods = [pod for operation in session.evictions for pod in operation.pods]
        requests = session.request[session.pod_classes[pods]]
        np.subtract.at(held, session.snapshot.pods.group[pods], requests)

    @cached_property
    def _losing_groups(self) -> dict[int, Rows]:
        """By queue that may lose something, its podgroups."""
        groups = self._session.snapshot.groups
        found: dict[int, Rows] = {}
        for queue in np.flatnonzero(self._session.losing_leaves).tolist():
            found[queue] = np.flatnonzero(groups.alive & (groups.queue == queue))
        return found


def within(amounts: Amounts, limit: Amounts) -> Amounts:
    """Of each resource, the sum of the smallest amounts that stays within the limit."""
    sums = np.cumsum(np.sort(amounts, axis=0), axis=0)
    within: Amounts = np.where(sums <= limit, sums, 0).max(axis=0, initial=0)
    return within


def _parts_alone(session: Session, rows: Rows, held: Amounts) -> Amounts:
    """What could go alone of these podgroups: each member beyond its gang's minimum, and the rest
    of each gang. `held` is what they have.
    """
    member = _average_members(session, rows)
    beyond = held - member * session.snapshot.groups.min_member[rows][:, None]
    counts = np.where(member > 0, beyond // np.maximum(member, 1), _PLENTY).min(axis=1)
    spare = np.where(counts < _PLENTY, np.maximum(0, counts), 0)
    rest = held - member * spare[:, None]
    return np.concatenate([rest, np.repeat(member, spare, axis=0)])


def _average_members(session: Session, rows: Rows) -> Amounts:
    """What a member of each podgroup has: in most gangs all are alike."""
    aggregates = session.snapshot.aggregates
    counts = aggregates.group_counts[rows][:, IS_ALLOCATED].sum(axis=1)
    members: Amounts = aggregates.group_allocated[rows] // np.maximum(1, counts)[:, None]
    return members
