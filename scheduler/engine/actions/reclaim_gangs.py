"""Reclaim with `wholeGangs`: only who is short may take, only of what they are short, only from who
has too much of it.

Why it comes to rest: the taker stays within its due and every loser stays at or above theirs, of
each resource that is taken. So what the queues have less than their due falls with every eviction,
and nothing else in a session raises it. A resource that comes before the taken ones (devices, then
cpu, then memory) is not taken below a queue's due either; so no second queue becomes short by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from scheduler.domain.evictions import EvictionRule
from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.arguments import number
from scheduler.engine.eviction.claims import claimed, missing_amounts, missing_runs
from scheduler.engine.eviction.gang_victims import GangCandidates, Victim
from scheduler.engine.eviction.protection import Protection
from scheduler.engine.eviction.whole_gangs import VictimSearch, carry_out, lay_out
from scheduler.engine.ordering import GangLines, QueueLine
from scheduler.engine.plugins.scarcity import COMMON
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

_STATUSES = (int(PodStatus.RUNNING),)


class GangReclamation:
    """Configuration: `patienceSeconds`, `minRunSeconds`, `suspendedVictims`."""

    def __init__(self, session: Session, starving: list[Gang]) -> None:
        self.session = session
        settings = session.policy.configurations.get("reclaim", {})
        self.patience = number(settings, "patienceSeconds", 0)
        self.protection = Protection(session, number(settings, "minRunSeconds", 0))
        self.gangs = GangLines(session, starving)
        self.queues = QueueLine(session, self.gangs.queues())

    def run(self) -> None:
        while (queue := self.queues.best()) >= 0:
            gang = self.gangs.pop(queue)
            if gang is None:
                self.queues.leave(queue)
            elif self._reclaim_for(gang) or not self.session.is_strict(queue):
                self.queues.enter(queue)
            else:
                self.queues.leave(queue)

    def _reclaim_for(self, gang: Gang) -> bool:
        session = self.session
        claim = Claim(session, gang)
        if not claim.may_take_anything or self._has_a_place_soon(gang, claim):
            return False
        victims = self._victims(gang, claim)
        if not victims:
            return False
        plan = VictimSearch(session, gang, victims, claim.may_lose).find()
        if plan is None:
            return False
        with session.statement() as statement:
            carry_out(session, statement, gang, plan, "reclaim", claim.rule, claim.short)
            if not session.job_pipelined(gang):
                return False
            statement.commit()
        return True

    def _has_a_place_soon(self, gang: Gang, claim: Claim) -> bool:
        """As long as a gang of the queue will have room anyway, by pods that end, none of it makes
        anybody go; unless it is guaranteed.
        """
        place = self.session.future_places.of(gang.queue)
        if place is None or claim.is_guaranteed:
            return False
        return place.at <= self.session.snapshot.taken_at + self.patience

    def _victims(self, gang: Gang, claim: Claim) -> list[Victim]:
        session = self.session
        queue = session.snapshot.groups.queue
        candidates = self._candidates(claim.is_guaranteed)
        losing = claim.losing_queues
        groups = [
            row
            for row in candidates.groups.tolist()
            if row != gang.row and queue[row] >= 0 and losing[queue[row]]
        ]
        return [
            victim
            for victim in candidates.victims_of(groups)
            if claim.may_lose([victim]) and self._agreed(gang, victim)
        ]

    def _agreed(self, gang: Gang, victim: Victim) -> bool:
        """Other plugins, such as conformance, may keep a pod."""
        asks = self.session.reclaim_vetoes(without="gang")
        pod_classes = {int(self.session.pod_classes[pod]) for pod in victim.pods.tolist()}
        own = int(self.session.pod_classes[self.session.tasks.unplaced_pods(gang)[0]])
        return all(
            ask(gang, own, victim.gang, pod_class) for ask in asks for pod_class in pod_classes
        )

    def _candidates(self, is_guaranteed: bool) -> GangCandidates:
        if is_guaranteed:
            return GangCandidates(self.session, _STATUSES, self.protection.of_nobody)
        return GangCandidates(self.session, _STATUSES, self.protection.of)


class Claim:
    """What one gang may take from whom."""

    def __init__(self, session: Session, gang: Gang) -> None:
        self.session = session
        self.gang = gang
        self.wanted = missing_amounts(session, gang)
        self._claimed: dict[int, Mask] = {}

    @cached_property
    def short(self) -> Mask:
        """The resources of which there is not room enough on nodes, one by one; all that it asks
        for if each alone would do.
        """
        room = self.session.node_table.future()
        runs = missing_runs(self.session, self.gang)
        found = np.zeros(len(self.wanted), dtype=np.bool_)
        for dim in np.flatnonzero(self.asked).tolist():
            alone = np.full_like(room, 2**62)
            alone[dim] = room[dim]
            found[dim] = lay_out(self.session, alone, runs) is None
        if found.any():
            return found
        return self.asked

    @cached_property
    def asked(self) -> Mask:
        asked: Mask = (self.wanted > 0) & self.session.queue_usage.dims
        return asked

    @cached_property
    def may_take_anything(self) -> bool:
        """Its own queue stays within its due of all that is short: without that nobody has to be
        looked at.
        """
        return bool(self.asked.any()) and bool(
            claimed(self.session, self.gang, [self.gang.queue])[self.short].all()
        )

    @cached_property
    def is_guaranteed(self) -> bool:
        """Its queue stays within its guarantee of all that is short. That overrules protection."""
        return bool(
            claimed(self.session, self.gang, [self.gang.queue], guaranteed=True)[self.short].all()
        )

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
        for queue in np.flatnonzero(losing).tolist():
            losing[queue] = bool(self._claims_from(queue)[self.short].all())
        return losing

    def _claims_from(self, queue: int) -> Mask:
        queue_tree = self.session.queue_tree
        common = queue_tree.common(self.gang.queue, queue)
        if common not in self._claimed:
            self._claimed[common] = claimed(
                self.session, self.gang, _below(queue_tree.path_list(self.gang.queue), common)
            )
        return self._claimed[common]

    def may_lose(self, victims: Sequence[Victim]) -> bool:
        """With all of them gone each queue that loses is still at its due of what is taken, at
        every level that is crossed.
        """
        session = self.session
        quotas = self.session.quotas
        if quotas is None:
            return False
        lost: dict[int, Amounts] = {}
        for victim in victims:
            if not victim.amounts[self.short].any():
                return False
            common = session.queue_tree.common(self.gang.queue, victim.gang.queue)
            for row in _below(session.queue_tree.path_list(victim.gang.queue), common):
                lost[row] = lost.get(row, 0) + victim.amounts
        return all(self._keeps_its_due(row, amounts) for row, amounts in lost.items())

    def _keeps_its_due(self, row: int, amounts: Amounts) -> bool:
        session = self.session
        quotas = self.session.quotas
        assert quotas is not None  # asked by may_lose
        after = session.queue_usage.allocated[row] - amounts
        looked_at = (amounts > 0) & (self._taken if session.queue_tree.is_leaf(row) else self.short)
        return bool((after >= quotas.deserved[row])[looked_at].all())

    @cached_property
    def _taken(self) -> Mask:
        """What is short, and every resource before it in the order devices, cpu, memory."""
        ranks = _ranks(self.session.snapshot.resources)
        taken: Mask = (
            self.short | (ranks < ranks[self.short].min())
        ) & self.session.queue_usage.dims
        return taken


def _below(path: Sequence[int], common: int) -> list[int]:
    """The part of a path to root that is below this queue; all of it where there is none above
    both.
    """
    if common in path:
        return list(path[: path.index(common)])
    return list(path)


def _ranks(resources: Sequence[str]) -> Rows:
    common = {"cpu": 1, "memory": 2}
    return np.array(
        [common.get(name, 3) if name in COMMON else 0 for name in resources], dtype=np.intp
    )
