"""How much the queues above a gang may have: room on nodes alone does not start it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.engine.eviction.claims import missing_amounts
from scheduler.engine.eviction.gang_victims import Victim
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


class Freed(Protocol):
    """What victims free together, by queue and by podgroup."""

    def by_queue(self) -> Mapping[int, Amounts]: ...

    def by_group(self) -> Mapping[int, Amounts]: ...


class QueueLimits:
    """The limits of a gang's queue and of all queues above it, with the whole gang in them."""

    def __init__(self, session: Session, gang: Gang) -> None:
        self._session = session
        self._path = session.queue_tree.path_list(gang.queue)
        self._wanted = missing_amounts(session, gang)
        self._nothing: Mask = np.zeros(len(self._wanted), dtype=np.bool_)
        self._excess = self._amounts_in_excess()
        self._has_excess = bool(self._excess.any())

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
        return self.allow_after(FreedByVictims(victims))

    def allow_after(self, freed: Freed) -> bool:
        """Whether no queue has too much once this is free."""
        if self._has_excess:
            left = self._excess.copy()
            for queue, amounts in freed.by_queue().items():
                left[self._levels_above(queue)] -= amounts
            if (left > 0).any():
                return False
        return not self._lacking_for_guarantees(freed).any()

    def _lacking_for_guarantees(self, freed: Freed) -> Mask:
        """The resources of which too little would be left for what others are guaranteed."""
        session = self._session
        quotas = session.quotas
        if quotas is None or quotas.reserved is None or self._path[-1] != session.queue_tree.root:
            return self._nothing
        if not quotas.reserved.guarantees_anything:
            return self._nothing
        gone = freed.by_group()
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
        return bool(victim.amounts[self._lacking_for_guarantees(FreedByVictims(()))].any())

    def _levels_above(self, queue: int) -> slice:
        """The levels that the gang and this queue are both below."""
        common = self._session.queue_tree.common(self._path[0], queue)
        if common not in self._path:
            return slice(0, 0)
        return slice(self._path.index(common), None)


class FreedByVictims:
    """What these victims free together."""

    def __init__(self, victims: Sequence[Victim]) -> None:
        self._victims = victims

    def by_group(self) -> dict[int, Amounts]:
        freed: dict[int, Amounts] = {}
        for victim in self._victims:
            freed[victim.gang.row] = freed.get(victim.gang.row, 0) + victim.amounts
        return freed

    def by_queue(self) -> dict[int, Amounts]:
        freed: dict[int, Amounts] = {}
        for victim in self._victims:
            freed[victim.gang.queue] = freed.get(victim.gang.queue, 0) + victim.amounts
        return freed
