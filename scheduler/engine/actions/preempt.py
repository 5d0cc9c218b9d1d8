"""Preempt: inside one queue, jobs that starve take the place of lower ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.eviction.candidates import RunningPods
from scheduler.engine.eviction.victims import (
    NOBODY,
    RELEASING,
    PoolMemory,
    Source,
    VictimPool,
    fell_apart,
)
from scheduler.engine.ordering import JobLines, QueueLine
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Job
from scheduler.engine.state.nodes import fits
from scheduler.engine.statement import Kind, Statement

_STATUSES = (PodStatus.BOUND, PodStatus.RUNNING)


def preempt(session: Session) -> None:
    """Volcano's meaning: never beyond the queue. Between jobs first, then inside each job that starved, by the priority of pods."""
    starving = session.starving_jobs()
    if starving:
        Preemption(session, starving).run()


class Preemption:
    def __init__(self, session: Session, starving: list[Job]) -> None:
        self.session = session
        self.running = RunningPods(session, _STATUSES)
        self.memory = PoolMemory(session)
        self.jobs = JobLines(session, starving)
        self.queues = QueueLine(session, self.jobs.queues())

    def run(self) -> None:
        while (queue := self.queues.best()) >= 0:
            tried: list[Job] = []
            while (job := self.jobs.pop(queue)) is not None:
                tried.append(job)
                if not self._between_jobs(job) and self.session.is_strict(queue):
                    break
            for job in tried:
                self._inside(job)
            self.queues.leave(queue)

    def _between_jobs(self, job: Job) -> bool:
        session = self.session
        pods = session.unplaced_pods(job)
        key = (
            job.queue,
            job.priority,
            job.ready,
            job.min_member - job.ready - job.waiting,
            *session.kinds[pods].tolist(),
        )
        if self.memory.knows(key):
            return False
        with session.statement() as statement:
            pools: dict[int, PreemptPool] = {}
            fallen: set[int] = set()
            for left, pod in zip(range(len(pods) - 1, -1, -1), pods, strict=True):
                if not session.job_starving(job):
                    break
                mark = statement.mark
                if not self._place(statement, job, pod, pools) and session.is_out_of_reach(
                    job, left
                ):
                    break
                if any(
                    fell_apart(operation.job, fallen)
                    for operation in statement.operations[mark:]
                    if operation.kind is Kind.EVICT
                ):
                    pools.clear()  # a job that lost its gang has another place in the order
            if session.job_pipelined(job) and statement.waits_for_room:
                statement.commit()
                return True
        self.memory.remember(key)
        return False

    def _inside(self, job: Job) -> None:
        """Pods of the job itself, as long as each finds a place."""
        session = self.session
        for pod in session.unplaced_pods(job) if job.ready else ():
            with session.statement() as statement:
                if not self._make_room(
                    statement,
                    job,
                    pod,
                    self._pool(job, int(session.kinds[pod]), self.running.of_job),
                ):
                    return
                statement.commit()

    def _place(
        self, statement: Statement, job: Job, pod: int, pools: dict[int, PreemptPool]
    ) -> bool:
        """Without any eviction if there is room; else on the first node where lower pods make room."""
        session, kind = self.session, int(self.session.kinds[pod])
        node = session.room_for(kind) if session.allocatable(job.queue, kind) else -1
        if node >= 0:
            statement.pipeline(job, kind, [pod], [node])
            return True
        if kind not in pools:
            pools[kind] = self._pool(job, kind, partial(self._others, kind=kind))
        return self._make_room(statement, job, pod, pools[kind])

    def _pool(self, job: Job, kind: int, line: Callable[[Job], Rows]) -> PreemptPool:
        source = Source(
            job.queue,
            self.running.kinds_of(job.queue),
            lambda kinds: np.ones(len(kinds), dtype=np.bool_),
            partial(line, job),
        )
        return PreemptPool(
            self.session,
            [source],
            lambda victim, victim_kind: self.session.may_preempt(job, kind, victim, victim_kind),
        )

    def _make_room(self, statement: Statement, job: Job, pod: int, pool: PreemptPool) -> bool:
        kind = int(self.session.kinds[pod])
        if (
            not self.session.snapshot.classes.preempts[kind]
            or not self.session.board(kind).fits_an_empty_node
        ):
            return False
        self.session.preemption_attempts += 1
        node = pool.make_room(statement, job, kind, "preempt")
        if node < 0:
            return False
        statement.pipeline(job, kind, [pod], [node])
        return True

    def _others(self, job: Job, kind: int) -> Rows:
        """Pods of other jobs in the queue that priority and gang, where they have a say, would not turn down as a whole.

        One that asks for nothing may only displace its like.
        """
        session, vetoers = self.session, self.session.preempt_vetoers
        pods = self.running.last_first(job.queue, sparing="gang" in vetoers)
        group = session.snapshot.pods.group[pods]
        worth = group != job.row
        if "priority" in vetoers:
            worth &= session.snapshot.groups.priority[group] < job.priority
        if session.best_effort[kind]:
            worth &= session.snapshot.classes.best_effort[session.kinds[pods]]
        others: Rows = pods[worth]
        return others


class PreemptPool(VictimPool):
    """Room is made when the pod fits on the node and the queue may have it; on the best node for it where enough may go, as in Volcano."""

    def make_room(self, statement: Statement, job: Job, kind: int, action: str) -> int:
        if self._last >= 0 and self._try(statement, job, kind, self._last, action):
            return self._last
        self._gather_all(kind)
        self._last = next(
            (
                node
                for node in self._best_first(kind)
                if self._try(statement, job, kind, node, action)
            ),
            -1,
        )
        return self._last

    def _gather_all(self, kind: int) -> None:
        """Whoever may go when they are first looked for; each job is asked once for a class."""
        found = np.concatenate([NOBODY, *self._pieces])
        found = found[self._is_suitable(found, kind)]
        pairs = (
            self.session.snapshot.pods.group[found].astype(np.int64) * len(self.session.request)
            + self.session.kinds[found]
        )
        _, first, pair = np.unique(pairs, return_index=True, return_inverse=True)
        may_go = np.array(
            [self._may_go(self._job(pod), pod) for pod in found[first].tolist()], dtype=np.bool_
        )
        self._gathered = np.concatenate(
            [self._gathered, found[may_go[pair]] if len(found) else found]
        )

    def _best_first(self, kind: int) -> list[int]:
        """Nodes with enough by score; among equals the one whose last victim comes first in the order, and before all one with room."""
        left = self._gathered[self.session.status[self._gathered] != RELEASING]
        positions = self._makes_room(left, NOBODY, kind)
        nodes, first = np.unique(self.session.nodes[left[positions]], return_index=True)
        turns = dict.fromkeys(self._with_room(kind), -1)
        turns = {**dict(zip(nodes.tolist(), positions[first].tolist(), strict=True)), **turns}
        scores = dict(zip(turns, self.session.board(kind).worth(list(turns)).tolist(), strict=True))
        return sorted(turns, key=lambda node: (-scores[node], turns[node], node))

    def _with_room(self, kind: int) -> list[int]:
        """Nodes where nobody has to go any more."""
        nodes = np.unique(self.session.nodes[self._gathered]).astype(np.intp)
        room: list[int] = nodes[
            fits(self.session.floor.future(nodes), self.session.request[kind])
        ].tolist()
        return room

    def _is_settled(self, job: Job, kind: int, node: int) -> bool:
        return self.fits_there(kind, node) and self.session.allocatable(job.queue, kind) > 0

    _looks_for_help = False
