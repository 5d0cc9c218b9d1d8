"""How much the queues above a gang may have: room on nodes alone does not start it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.engine.eviction.claims import missing_amounts
from scheduler.engine.eviction.gang_victims import Victim
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


class QueueLimits:
    """The limits of a gang's queue and of all queues above it, with the whole gang in them."""

    def __init__(self, session: Session, gang: Gang) -> None:
        self._session = session
        self._path = session.queue_tree.path_list(gang.queue)
        self._wanted = missing_amounts(session, gang)
        self._excess = self._amounts_in_excess()

    def _amounts_in_excess(self) -> Amounts:
        """By level, from the gang's queue up, what it would have beyond its limit."""
        session = self._session
        quotas = session.quotas
        wanted = self._wanted
        if quotas is None:
            return np.zeros((len(self._path), len(wanted)), dtype=np.int64)
        limit = quotas.real_capability[self._path]
        if session.lends_idle_room:  # allocate goes no further than deserved
            limit = np.minimum(limit, quotas.deserved[self._path])
        excess = session.queue_usage.allocated[self._path] + wanted - limit
        asked = (wanted > 0) & session.queue_usage.dims
        return np.where(asked, np.maximum(0, excess), 0)

    def allow(self, victims: Sequence[Victim]) -> bool:
        """Whether no queue has too much once these are gone."""
        if self._excess.any():
            left = self._excess.copy()
            for queue, amounts in _freed_by_queue(victims).items():
                left[self._levels_above(queue)] -= amounts
            if (left > 0).any():
                return False
        return not self._lacking_for_guarantees(victims).any()

    def _lacking_for_guarantees(self, victims: Sequence[Victim]) -> Mask:
        """The resources of which too little would be left for what others are guaranteed."""
        session = self._session
        quotas = session.quotas
        if quotas is None or quotas.reserved is None or self._path[-1] != session.queue_tree.root:
            return np.zeros(len(self._wanted), dtype=np.bool_)
        gone = _freed_by_group(victims)
        reserved = quotas.reserved.beside(self._path[0], self._wanted, gone)
        if not reserved.any():
            return reserved > 0
        used = session.queue_usage.allocated[self._path[-1]] + self._wanted
        for amounts in gone.values():
            used = used - amounts
        lacking: Mask = (self._wanted > 0) & (reserved > 0) & (used + reserved > session.total)
        return lacking

    def are_helped_by(self, victim: Victim) -> bool:
        """Whether it frees something of which a queue would have too much."""
        freed = np.minimum(self._excess[self._levels_above(victim.gang.queue)], victim.amounts)
        if (freed > 0).any():
            return True
        return bool(victim.amounts[self._lacking_for_guarantees(())].any())

    def _levels_above(self, queue: int) -> slice:
        """The levels that the gang and this queue are both below."""
        common = self._session.queue_tree.common(self._path[0], queue)
        if common not in self._path:
            return slice(0, 0)
        return slice(self._path.index(common), None)


def _freed_by_group(victims: Sequence[Victim]) -> dict[int, Amounts]:
    freed: dict[int, Amounts] = {}
    for victim in victims:
        freed[victim.gang.row] = freed.get(victim.gang.row, 0) + victim.amounts
    return freed


def _freed_by_queue(victims: Sequence[Victim]) -> dict[int, Amounts]:
    freed: dict[int, list[Amounts]] = {}
    for victim in victims:
        freed.setdefault(victim.gang.queue, []).append(victim.amounts)
    return {queue: np.sum(amounts, axis=0) for queue, amounts in freed.items()}
