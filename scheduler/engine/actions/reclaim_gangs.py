"""Reclaim with `wholeGangs`: only who is short may take, only of what they are short, only from who has too much of it.

Why it comes to rest: the taker stays within its due and every loser stays at or above theirs, of each resource that is taken. So what the
queues have less than their due falls with every eviction, and nothing else in a session raises it. A resource that comes before the
taken ones (devices, then cpu, then memory) is not taken below a queue's due either; so no second queue becomes short by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.arguments import number
from scheduler.engine.eviction.claims import claimed, missing_amounts, missing_runs
from scheduler.engine.eviction.protection import Protection
from scheduler.engine.eviction.whole_gangs import Candidates, Search, Victim, carry_out, lay_out
from scheduler.engine.ordering import JobLines, QueueLine
from scheduler.engine.plugins.scarcity import COMMON
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Job

_STATUSES = (int(PodStatus.RUNNING),)


class GangReclamation:
    """Configuration: `patienceSeconds`, `minRunSeconds`, `suspendedVictims`."""

    def __init__(self, session: Session, starving: list[Job]) -> None:
        self.session = session
        settings = session.policy.configurations.get("reclaim", {})
        self.patience = number(settings, "patienceSeconds", 0)
        self.protection = Protection(session, number(settings, "minRunSeconds", 0))
        self.jobs = JobLines(session, starving)
        self.queues = QueueLine(session, self.jobs.queues())

    def run(self) -> None:
        while (queue := self.queues.best()) >= 0:
            job = self.jobs.pop(queue)
            if job is None:
                self.queues.leave(queue)
            elif self._reclaim_for(job) or not self.session.is_strict(queue):
                self.queues.enter(queue)
            else:
                self.queues.leave(queue)

    def _reclaim_for(self, job: Job) -> bool:
        session = self.session
        claim = Claim(session, job)
        if not claim.may_take_anything or self._has_a_place_soon(job, claim):
            return False
        victims = self._victims(job, claim)
        if not victims:
            return False
        plan = Search(session, job, victims, claim.may_lose).find()
        if plan is None:
            return False
        with session.statement() as statement:
            carry_out(session, statement, job, plan, "reclaim")
            if not session.job_pipelined(job) or not self._is_within_limits(job):
                return False
            statement.commit()
        return True

    def _has_a_place_soon(self, job: Job, claim: Claim) -> bool:
        """As long as a gang of the queue will have room anyway, by pods that end, none of it makes anybody go; unless it is guaranteed."""
        aside = self.session.asides.of(job.queue)
        if aside is None or claim.is_guaranteed:
            return False
        return aside.at <= self.session.snapshot.taken_at + self.patience

    def _victims(self, job: Job, claim: Claim) -> list[Victim]:
        session = self.session
        queue = session.snapshot.groups.queue
        candidates = self._candidates(claim.is_guaranteed)
        losing = claim.losing_queues
        groups = [
            row
            for row in candidates.groups.tolist()
            if row != job.row and queue[row] >= 0 and losing[queue[row]]
        ]
        return [
            victim
            for victim in candidates.of(groups)
            if claim.may_lose([victim]) and self._agreed(job, victim)
        ]

    def _agreed(self, job: Job, victim: Victim) -> bool:
        """Other plugins, such as conformance, may keep a pod."""
        asks = self.session.reclaim_vetoes(without="gang")
        kinds = {int(self.session.kinds[pod]) for pod in victim.pods.tolist()}
        own = int(self.session.kinds[self.session.unplaced_pods(job)[0]])
        return all(ask(job, own, victim.job, kind) for ask in asks for kind in kinds)

    def _candidates(self, is_guaranteed: bool) -> Candidates:
        if is_guaranteed:
            return Candidates(self.session, _STATUSES, self.protection.of_nobody)
        return Candidates(self.session, _STATUSES, self.protection.of)

    def _is_within_limits(self, job: Job) -> bool:
        """No level above is beyond its capability, with the gang in and the victims gone."""
        session, quotas = self.session, self.session.quotas
        if quotas is None:
            return True
        path = session.forest.path(job.queue)
        asked = (
            session.request[session.kinds[session.pods_of(job.row)]].sum(axis=0) > 0
        ) & session.book.dims
        return bool((session.book.allocated[path] <= quotas.real_capability[path])[:, asked].all())


class Claim:
    """What one gang may take from whom."""

    def __init__(self, session: Session, job: Job) -> None:
        self.session, self.job = session, job
        self.wanted = missing_amounts(session, job)
        self._claimed: dict[int, Mask] = {}

    @cached_property
    def short(self) -> Mask:
        """The resources of which there is not room enough on nodes, one by one; all that it asks for if each alone would do."""
        room, runs = self.session.floor.future(), missing_runs(self.session, self.job)
        found = np.zeros(len(self.wanted), dtype=np.bool_)
        for dim in np.flatnonzero(self.asked).tolist():
            alone = np.full_like(room, 2**62)
            alone[dim] = room[dim]
            found[dim] = lay_out(self.session, alone, runs) is None
        return found if found.any() else self.asked

    @cached_property
    def asked(self) -> Mask:
        asked: Mask = (self.wanted > 0) & self.session.book.dims
        return asked

    @cached_property
    def may_take_anything(self) -> bool:
        """Its own queue stays within its due of all that is short: without that nobody has to be looked at."""
        return bool(self.asked.any()) and bool(
            claimed(self.session, self.job, [self.job.queue])[self.short].all()
        )

    @cached_property
    def is_guaranteed(self) -> bool:
        """Its queue stays within its guarantee of all that is short: nobody is protected from that."""
        return bool(
            claimed(self.session, self.job, [self.job.queue], guaranteed=True)[self.short].all()
        )

    @cached_property
    def losing_queues(self) -> Mask:
        """Leaves that reclaim may take something from, for this gang; at every level that is crossed the taker must be within its due."""
        losing = self.session.losing_leaves.copy()
        losing[self.job.queue] = False
        for queue in np.flatnonzero(losing).tolist():
            losing[queue] = bool(self._claims_from(queue)[self.short].all())
        return losing

    def _claims_from(self, queue: int) -> Mask:
        forest = self.session.forest
        common = forest.common(self.job.queue, queue)
        if common not in self._claimed:
            self._claimed[common] = claimed(
                self.session, self.job, _below(forest.path_list(self.job.queue), common)
            )
        return self._claimed[common]

    def may_lose(self, victims: Sequence[Victim]) -> bool:
        """With all of them gone each queue that loses is still at its due of what is taken, at every level that is crossed."""
        session, quotas = self.session, self.session.quotas
        if quotas is None:
            return False
        lost: dict[int, Amounts] = {}
        for victim in victims:
            if not victim.amounts[self.short].any():
                return False
            common = session.forest.common(self.job.queue, victim.job.queue)
            for row in _below(session.forest.path_list(victim.job.queue), common):
                lost[row] = lost.get(row, 0) + victim.amounts
        return all(self._keeps_its_due(row, amounts) for row, amounts in lost.items())

    def _keeps_its_due(self, row: int, amounts: Amounts) -> bool:
        session, quotas = self.session, self.session.quotas
        assert quotas is not None  # asked by may_lose
        after = session.book.allocated[row] - amounts
        looked_at = (amounts > 0) & (self._taken if session.forest.is_leaf(row) else self.short)
        return bool((after >= quotas.deserved[row])[looked_at].all())

    @cached_property
    def _taken(self) -> Mask:
        """What is short, and every resource before it in the order devices, cpu, memory."""
        ranks = _ranks(self.session.snapshot.resources)
        taken: Mask = (self.short | (ranks < ranks[self.short].min())) & self.session.book.dims
        return taken


def _below(path: Sequence[int], common: int) -> list[int]:
    """The part of a path to root that is below this queue; all of it where there is none above both."""
    return list(path[: path.index(common)]) if common in path else list(path)


def _ranks(resources: Sequence[str]) -> Rows:
    common = {"cpu": 1, "memory": 2}
    return np.array(
        [common.get(name, 3) if name in COMMON else 0 for name in resources], dtype=np.intp
    )
