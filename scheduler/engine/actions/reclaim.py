"""Reclaim: across queues, a queue takes back what is its own from those that have more than theirs, nearest in the tree first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.workloads import PodStatus
from scheduler.engine.arguments import boolean
from scheduler.engine.job import Job
from scheduler.engine.lines import JobLines, QueueLine, VictimOrder
from scheduler.engine.session import Session
from scheduler.engine.statement import Kind, Statement
from scheduler.engine.victims import PoolMemory, Remembered, RunningPods, Veto, VictimPool, fell_apart

_STATUSES = (PodStatus.RUNNING,)


def reclaim(session: Session) -> None:
    """Nothing is evicted unless the whole gang that asks gets its place."""
    starving = session.starving_jobs()
    if starving and session.names_victims:
        Reclamation(session, starving).run()


class Reclamation:
    """Configuration: `breakGangs` true, `strictDeserved` false, `suspendedVictims` protect."""

    def __init__(self, session: Session, starving: list[Job]) -> None:
        self.session = session
        settings = session.policy.configurations.get("reclaim", {})
        self.breaks_gangs = boolean(settings, "breakGangs", True)
        self.strict = boolean(settings, "strictDeserved", False)
        self.running = RunningPods(session, _STATUSES)
        self.memory = PoolMemory(session)
        self.jobs = JobLines(session, starving)
        self.queues = QueueLine(session, self.jobs.queues())

    def run(self) -> None:
        while (queue := self.queues.best()) >= 0:
            while not self.session.overused(queue) and (job := self.jobs.pop(queue)) is not None:
                if not self._reclaim_for(job) and self.session.is_strict(queue):
                    break
            self.queues.leave(queue)

    def _reclaim_for(self, job: Job) -> bool:
        """Pass A takes only what gangs can spare; pass B, if that is not enough, breaks as few gangs as it can."""
        session = self.session
        pods = session.unplaced_pods(job)
        key = (job.queue, job.min_member - job.ready - job.waiting, *(int(session.kinds[pod]) for pod in pods))
        if self.memory.knows(key):
            return False
        done = self._pass(job, pods, breaking=False) or (self.breaks_gangs and self._pass(job, pods, breaking=True))
        if not done:
            self.memory.remember(key)
        return done

    def _pass(self, job: Job, pods: list[int], *, breaking: bool) -> bool:
        with self.session.statement() as statement:
            search = Search(self, job, breaking)
            for pod in pods:
                if not self.session.job_starving(job):
                    break
                search.place(statement, pod)
            if not self.session.job_pipelined(job) or (search.is_left_to_allocate and not statement.waits_for_room):
                return False
            for operation in statement.operations:
                operation.job.broken |= breaking and operation.job.ready < operation.job.min_member and operation.job is not job
            statement.commit()
        return True

    def candidate_nodes(self, own: int) -> Mask:
        """Nodes on which pods run that this queue could ever reclaim."""
        mask = np.zeros(len(self.session.floor.names) + 1, dtype=np.bool_)  # the last entry is for pods without a node
        for queue in range(len(self.session.forest)):
            if queue != own and self.session.may_lose(queue):
                pods = self.running.of_queue(queue)
                mask[self.session.nodes[pods[self.session.status[pods] == PodStatus.RUNNING]]] = True
        return mask[:-1]


class QueueVetoes:
    """What queues may lose to this one. A "no" holds as long as the queue does not get back what an attempt took from it."""

    def __init__(self, session: Session, queue: int, kind: int, *, undershoot: bool) -> None:
        self.session, self.queue, self.kind, self.undershoot = session, queue, kind, undershoot
        self.kinds: dict[int, set[int]] = {}  # classes of pods that run in a queue
        self._spared: dict[tuple[int, int], Amounts] = {}  # queue and class of a "no" -> what the queue had then

    def may_lose(self, queue: int, kind: int) -> bool:
        if self._is_spared(queue, kind):
            return False
        keeps = self.undershoot or self.session.keeps_deserved(queue, kind, self.kind)
        if keeps and self.session.may_take_from(self.queue, self.kind, queue, kind):
            return True
        self._spared[queue, kind] = self.session.book.allocated[queue].copy()
        return False

    def _is_spared(self, queue: int, kind: int) -> bool:
        then = self._spared.get((queue, kind))
        return then is not None and bool((self.session.book.allocated[queue] <= then).all())

    def are_final(self, queue: int) -> bool:
        """Whether no class of pods of the queue may go any more."""
        return all(self._is_spared(queue, kind) for kind in self.kinds[queue])


class Search:
    """Victims for the pods of one job. Preferred are those that leave their queue at or above its deserved."""

    def __init__(self, reclamation: Reclamation, job: Job, breaking: bool) -> None:
        self.reclamation, self.session, self.job, self.breaking = reclamation, reclamation.session, job, breaking
        self.is_left_to_allocate = False  # it found idle room where nobody could be reclaimed: nothing of reclaim's
        self._pools: dict[tuple[int, bool], VictimPool] = {}
        self._fallen: set[int] = set()
        self._surplus_of: dict[int, Remembered] = {}
        self._order: VictimOrder | None = None

    def place(self, statement: Statement, pod: int) -> bool:
        """Without any eviction if there is room; else on the first node where enough may go."""
        session, queue, kind, mark = self.session, self.job.queue, int(self.session.kinds[pod]), statement.mark
        if not session.snapshot.classes.preempts[kind] or not session.preemptive(queue, kind):
            return False
        node = -1 if session.full_levels(queue, kind) else self._room(kind)
        for undershoot in (False,) if self.reclamation.strict else (False, True):
            if node < 0:
                node = self._pool(kind, undershoot).make_room(statement, self.job, kind, "reclaim")
        if node < 0:
            return False
        self._look_again(statement, mark)
        statement.pipeline(self.job, kind, [pod], [node])
        return True

    def _room(self, kind: int) -> int:
        """Room as it is, on a node where it could reclaim, as in Volcano; any other node will do too, but is for allocate to give."""
        node = self.session.room_for(kind)
        if node < 0:
            return -1
        candidates = self.reclamation.candidate_nodes(self.job.queue)
        if candidates[node]:
            return node
        other = self.session.board(kind).best_among(candidates)
        self.is_left_to_allocate |= other < 0
        return node if other < 0 else other

    def _look_again(self, statement: Statement, mark: int) -> None:
        """Each pod's victims come in the order of its time: where those of the last one changed it, the next begins anew."""
        victims = [operation.job for operation in statement.operations[mark:] if operation.kind is Kind.EVICT]
        fallen = [victim for victim in victims if fell_apart(victim, self._fallen)]
        if fallen:
            self._surplus_of.clear()
        if fallen or not all(self.order.holds_without(victim.queue) for victim in victims):
            self._pools.clear()
            self._order = None

    def _pool(self, kind: int, undershoot: bool) -> VictimPool:
        key = (kind, undershoot)
        if key not in self._pools:
            vetoes = QueueVetoes(self.session, self.job.queue, kind, undershoot=undershoot)
            veto = self._veto(kind, vetoes)
            self._pools[key] = VictimPool(self.session, self._stream(vetoes), veto, sparing=self.breaking)
        return self._pools[key]

    def _veto(self, kind: int, queues: QueueVetoes) -> Veto:
        job, asks = self.job, self.session.reclaim_vetoes(without="gang" if self.breaking else "")

        def may_go(victim: Job, victim_kind: int) -> bool:
            return queues.may_lose(victim.queue, victim_kind) and all(ask(job, kind, victim, victim_kind) for ask in asks)

        return may_go

    def _stream(self, vetoes: QueueVetoes) -> Iterator[tuple[Job, list[int]]]:
        """Surplus of gangs first; when gangs may be broken, then whole jobs, starving ones and small ones first."""
        queues, seen = self.order.queues, set[int]()
        for queue in queues:
            for job, pods in self._surplus(queue) if self._may_lose(queue, vetoes) else ():
                if vetoes.are_final(queue):
                    break
                seen.update(pods)
                yield job, pods
        for queue in queues if self.breaking else ():
            for job, pods in self._whole_jobs(queue) if self._may_lose(queue, vetoes) else ():
                if vetoes.are_final(queue):
                    break
                yield job, [pod for pod in pods if pod not in seen]

    @property
    def order(self) -> VictimOrder:
        if self._order is None:
            self._order = VictimOrder(self.session, self.job.queue, self._losing)
        return self._order

    @cached_property
    def _losing(self) -> list[int]:
        """Other queues that have something to lose."""
        session, own = self.session, self.job.queue
        candidates = (queue for queue in range(len(session.forest)) if queue != own and len(self.reclamation.running.of_queue(queue)))
        return [queue for queue in candidates if session.may_lose(queue) and session.has_too_much(queue)]

    def _may_lose(self, queue: int, vetoes: QueueVetoes) -> bool:
        """Whether any class of pod that runs in the queue could go."""
        vetoes.kinds[queue] = set(self.session.kinds[self.reclamation.running.of_queue(queue)].tolist())
        verdicts = {vetoes.may_lose(queue, kind) for kind in vetoes.kinds[queue]}
        return True in verdicts

    def _surplus(self, queue: int) -> Remembered:
        if queue not in self._surplus_of:
            self._surplus_of[queue] = Remembered(self._list_surplus(queue, self._with_surplus))
        return self._surplus_of[queue]

    @cached_property
    def _with_surplus(self) -> Mask | None:
        """Podgroups that can spare anything; None where gangs do not count."""
        counts = self.breaking or self.session.gangs_are_spared
        return self.reclamation.running.with_surplus() if counts else None

    def _list_surplus(self, queue: int, among: Mask | None) -> Iterator[tuple[Job, list[int]]]:
        """Borrowed pods first. When gangs may be broken, only as many as each job can spare: the others come with their whole job."""
        running, borrowed = self.reclamation.running, self.session.borrowed
        members, spare = running.jobs(queue, among), dict[int, int]()
        for only_borrowed in (True, False) if borrowed else (False,):
            chosen = {group: [pod for pod in pods if (pod in borrowed) is only_borrowed] for group, pods in members.items()}
            for job, pods in running.last_first({group: pods for group, pods in chosen.items() if pods}):
                left = spare.setdefault(job.row, job.ready - job.min_member if self.breaking else len(members[job.row]))
                spare[job.row] = left - len(pods)
                yield job, pods[: max(0, left)]

    def _whole_jobs(self, queue: int) -> Iterator[tuple[Job, list[int]]]:
        session, members = self.session, self.reclamation.running.jobs(queue)
        jobs = sorted(
            (session.job(group) for group in members), key=lambda job: (not session.job_starving(job), session.size(job), job.key)
        )
        for job in jobs:
            yield job, sorted(members[job.row], key=session.pod_key, reverse=True)
