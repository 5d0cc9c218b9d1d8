"""How much the queues above a gang may have: room on nodes alone does not start it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.engine.eviction.claims import missing_amounts
from scheduler.engine.eviction.gang_victims import Victim
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


class QueueLimits:
    """The limits of a gang's queue and of all queues above it, with the whole gang in them."""

    def __init__(self, session: Session, gang: Gang) -> None:
        self._session = session
        self._path = session.queue_tree.path_list(gang.queue)
        self._excess = self._amounts_in_excess(gang)

    def _amounts_in_excess(self, gang: Gang) -> Amounts:
        """By level, from the gang's queue up, what it would have beyond its limit."""
        session = self._session
        quotas = session.quotas
        wanted = missing_amounts(session, gang)
        if quotas is None:
            return np.zeros((len(self._path), len(wanted)), dtype=np.int64)
        limit = quotas.real_capability[self._path]
        if session.lends_idle_room:  # allocate goes no further than deserved
            limit = np.minimum(limit, quotas.deserved[self._path])
        if quotas.reserved is not None and self._path[-1] == session.queue_tree.root:
            reserved = quotas.reserved.beside(gang.queue, wanted)
            limit[-1] = np.minimum(limit[-1], session.total - reserved)
        excess = session.queue_usage.allocated[self._path] + wanted - limit
        asked = (wanted > 0) & session.queue_usage.dims
        return np.where(asked, np.maximum(0, excess), 0)

    def allow(self, victims: Sequence[Victim]) -> bool:
        """Whether no queue has too much once these are gone."""
        if not self._excess.any():
            return True
        left = self._excess.copy()
        for queue, amounts in _freed_by_queue(victims).items():
            left[self._levels_above(queue)] -= amounts
        return not (left > 0).any()

    def are_helped_by(self, victim: Victim) -> bool:
        """Whether it frees something of which a queue would have too much."""
        freed = np.minimum(self._excess[self._levels_above(victim.gang.queue)], victim.amounts)
        return bool((freed > 0).any())

    def _levels_above(self, queue: int) -> slice:
        """The levels that the gang and this queue are both below."""
        common = self._session.queue_tree.common(self._path[0], queue)
        if common not in self._path:
            return slice(0, 0)
        return slice(self._path.index(common), None)


def _freed_by_queue(victims: Sequence[Victim]) -> dict[int, Amounts]:
    freed: dict[int, list[Amounts]] = {}
    for victim in victims:
        freed.setdefault(victim.gang.queue, []).append(victim.amounts)
    return {queue: np.sum(amounts, axis=0) for queue, amounts in freed.items()}
