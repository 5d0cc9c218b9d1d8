"""What one gang may take from whom, so that no queue takes or loses what it should not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from scheduler.domain.evictions import EvictionRule
from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.resources import COMMON
from scheduler.domain.tables import Rows
from scheduler.engine.eviction.claims import (
    claimed,
    is_within_guarantee,
    missing_amounts,
    missing_runs,
)
from scheduler.engine.eviction.gang_victims import Victim
from scheduler.engine.eviction.limits import FreedByVictims
from scheduler.engine.eviction.victim_table import VictimTable
from scheduler.engine.eviction.whole_gangs import lay_out
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

_PLENTY = 2**62


class Claim:
    """What one gang may take from whom."""

    def __init__(self, session: Session, gang: Gang) -> None:
        self.session = session
        self.gang = gang
        self.wanted = missing_amounts(session, gang)
        self._claimed: dict[int, Mask] = {}  # by where the taker meets the loser

    @cached_property
    def short(self) -> Mask:
        """The resources of which there is not room enough on nodes, one by one; all that it asks
        for if each alone would do.
        """
        found = self._short_on_nodes()
        if found.any():
            return found
        return self.asked

    def _short_on_nodes(self) -> Mask:
        session = self.session
        runs = missing_runs(session, self.gang)
        if len(runs) == 1:
            pod_class, count = runs[0]
            few: Mask = session.node_scores(pod_class).copies_by_resource() < count
            return few & self.asked
        room = session.node_table.future_everywhere()
        found = np.zeros(len(self.wanted), dtype=np.bool_)
        for dim in np.flatnonzero(self.asked).tolist():
            alone = np.full_like(room, _PLENTY)
            alone[dim] = room[dim]
            found[dim] = lay_out(session, alone, runs) is None
        return found

    @cached_property
    def asked(self) -> Mask:
        asked: Mask = (self.wanted > 0) & self.session.queue_usage.dims
        return asked

    @cached_property
    def may_take_anything(self) -> bool:
        """Its own queue stays within its due of all that is short: without that nobody has to be
        looked at.
        """
        own = claimed(self.session, self.wanted, [self.gang.queue])
        if not own[self.asked].any():
            return False
        return bool(own[self.short].all())

    @cached_property
    def is_guaranteed(self) -> bool:
        """Its queue stays within its guarantee of what is short. That overrules protection."""
        quotas = self.session.quotas
        if quotas is None or not is_within_guarantee(self.session, self.gang):
            return False
        return bool((quotas.guarantee[self.gang.queue][self.short] > 0).any())

    @property
    def rule(self) -> EvictionRule:
        if self.is_guaranteed:
            return EvictionRule.GUARANTEE
        return EvictionRule.DESERVED

    @cached_property
    def losing_queues(self) -> Mask:
        """Leaves that reclaim may take something from, for this gang; at every level that is
        crossed the taker must be within its due.
        """
        losing = self.session.losing_leaves.copy()
        losing[self.gang.queue] = False
        meetings = self.session.queue_tree.meetings(self.gang.queue)
        for common in set(meetings[losing].tolist()):
            if not self._reaches_up_to(common):
                losing[meetings == common] = False
        return losing

    def reaches(self, queue: int) -> bool:
        """Whether the taker's side stays within its due, up to where it meets this queue."""
        return self._reaches_up_to(self.session.queue_tree.common(self.gang.queue, queue))

    def _reaches_up_to(self, common: int) -> bool:
        if common not in self._claimed:
            levels = self.session.queue_tree.way_up(self.gang.queue, common)
            self._claimed[common] = claimed(self.session, self.wanted, levels)
        return bool(self._claimed[common][self.short].all())

    def may_lose(self, victims: Sequence[Victim]) -> bool:
        """With all of them gone each queue that loses is still at its due of what is taken, at
        every level that is crossed.
        """
        if not all(victim.amounts[self.short].any() for victim in victims):
            return False
        return self.keeps_dues(victims)

    def keeps_dues(self, victims: Sequence[Victim]) -> bool:
        """The same for victims that all free something of what is short."""
        lost: dict[int, Amounts] = {}
        for queue, amounts in FreedByVictims(victims).by_queue().items():
            for row in self._crossed_above(queue):
                lost[row] = lost.get(row, 0) + amounts
        return all(self._can_spare(row, amounts) for row, amounts in lost.items())

    def _can_spare(self, row: int, amounts: Amounts) -> bool:
        return bool(((amounts <= self._to_spare[row]) | (amounts == 0)).all())

    def may_lose_each(self, table: VictimTable) -> Mask:
        """The same for each victim alone, as far as this gang may take from its queue."""
        may_go: Mask = np.zeros(len(table), dtype=np.bool_)
        for dim in np.flatnonzero(self.short).tolist():
            may_go |= table.frees[dim]
        if not self.losing_queues[table.queues].all():
            may_go &= self.losing_queues[table.queue]
        may_go[table.rows_of_group(self.gang.row)] = False
        least = self._least_to_spare[self.losing_queues].min(axis=0, initial=_PLENTY)
        for dim in np.flatnonzero(table.most > least).tolist():  # else each can spare any of them
            spare = self._least_to_spare[table.queue, dim]
            may_go &= (table.amounts[dim] <= spare) | ~table.frees[dim]
        return may_go

    def _crossed_above(self, queue: int) -> list[int]:
        return self.session.queue_tree.crossed(queue, self.gang.queue)

    @cached_property
    def _least_to_spare(self) -> Amounts:
        """By queue, the least that may be lost on its way up to where it meets the taker."""
        least = self._to_spare.copy()
        queue_tree = self.session.queue_tree
        least[queue_tree.path(self.gang.queue)] = _PLENTY
        queue_tree.lower_to_parents(least)
        return least

    @cached_property
    def _to_spare(self) -> Amounts:
        """By queue, how much it may lose to the gang; plenty of what nobody looks at."""
        session = self.session
        quotas = session.quotas
        allocated = session.queue_usage.allocated
        if quotas is None:
            return np.zeros_like(allocated)
        floor = quotas.deserved
        if self.is_guaranteed:
            lowered = self.short & (allocated > floor)
            floor = np.where(lowered, np.minimum(floor, quotas.guarantee), floor)
        is_leaf = session.queue_tree.leaves[:, None]
        looked_at = np.where(is_leaf, self._taken, self.short)
        return np.where(looked_at, allocated - floor, _PLENTY)

    @cached_property
    def _taken(self) -> Mask:
        """What is short, and every resource before it in the order devices, cpu, memory."""
        ranks = _ranks(self.session.snapshot.resources)
        taken: Mask = (
            self.short | (ranks < ranks[self.short].min())
        ) & self.session.queue_usage.dims
        return taken


def _ranks(resources: Sequence[str]) -> Rows:
    common = {"cpu": 1, "memory": 2}
    return np.array(
        [common.get(name, 3) if name in COMMON else 0 for name in resources], dtype=np.intp
    )
