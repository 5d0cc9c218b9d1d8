"""Preempt: inside one queue, jobs that starve take the place of lower ones."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.workloads import PodStatus
from scheduler.engine.job import Job
from scheduler.engine.lines import JobLines, QueueLine
from scheduler.engine.session import Session
from scheduler.engine.statement import Kind, Statement
from scheduler.engine.victims import PoolMemory, RunningPods, VictimPool, covers, fell_apart

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
        key = (job.queue, job.priority, job.ready, job.min_member - job.ready - job.waiting, *session.kinds[pods].tolist())
        if self.memory.knows(key):
            return False
        with session.statement() as statement:
            pools: dict[int, PreemptPool] = {}
            fallen: set[int] = set()
            for pod in pods:
                if not session.job_starving(job):
                    break
                mark = statement.mark
                self._place(statement, job, pod, pools)
                if any(fell_apart(operation.job, fallen) for operation in statement.operations[mark:] if operation.kind is Kind.EVICT):
                    pools.clear()  # a job that lost its gang has another place in the order
            if session.job_pipelined(job) and statement.waits_for_room:
                statement.commit()
                return True
        self.memory.remember(key)
        return False

    def _inside(self, job: Job) -> None:
        """Pods of the job itself, as long as each finds a place."""
        session = self.session
        for pod in session.unplaced_pods(job):
            with session.statement() as statement:
                if not self._make_room(statement, job, pod, self._pool(job, int(session.kinds[pod]), self._members(job))):
                    return
                statement.commit()

    def _place(self, statement: Statement, job: Job, pod: int, pools: dict[int, PreemptPool]) -> bool:
        """Without any eviction if there is room; else on the first node where lower pods make room."""
        session, kind = self.session, int(self.session.kinds[pod])
        node = session.room_for(kind) if session.allocatable(job.queue, kind) else -1
        if node >= 0:
            statement.pipeline(job, kind, [pod], [node])
            return True
        if kind not in pools:
            pools[kind] = self._pool(job, kind, self._others(job, kind))
        return self._make_room(statement, job, pod, pools[kind])

    def _pool(self, job: Job, kind: int, stream: Iterator[tuple[Job, list[int]]]) -> PreemptPool:
        return PreemptPool(self.session, stream, lambda victim, victim_kind: self.session.may_preempt(job, kind, victim, victim_kind))

    def _make_room(self, statement: Statement, job: Job, pod: int, pool: PreemptPool) -> bool:
        kind = int(self.session.kinds[pod])
        if not self.session.snapshot.classes.preempts[kind]:
            return False
        node = pool.make_room(statement, job, kind, "preempt")
        if node < 0:
            return False
        statement.pipeline(job, kind, [pod], [node])
        return True

    def _others(self, job: Job, kind: int) -> Iterator[tuple[Job, list[int]]]:
        """Pods of other jobs in the queue; one that asks for nothing may only displace its like."""
        session = self.session
        members = self.running.jobs(job.queue, self._worth_asking(job))
        members.pop(job.row, None)
        if session.best_effort[kind]:
            members = {group: [pod for pod in pods if session.asks_for_nothing(pod)] for group, pods in members.items()}
        yield from self.running.last_first({group: pods for group, pods in members.items() if pods})

    def _worth_asking(self, job: Job) -> Mask:
        """Podgroups that priority and gang, where they have a say, would not turn down as a whole."""
        groups, vetoers = self.session.snapshot.groups, self.session.preempt_vetoers
        worth: Mask = groups.priority < job.priority if "priority" in vetoers else groups.alive.copy()
        return worth & self.running.with_surplus() if "gang" in vetoers else worth

    def _members(self, job: Job) -> Iterator[tuple[Job, list[int]]]:
        own = self.running.jobs(job.queue).get(job.row, [])
        yield from self.running.last_first({job.row: own} if own else {})


class PreemptPool(VictimPool):
    """Room is made when the pod fits on the node and the queue may have it; on the best node for it where enough may go, as in Volcano."""

    def make_room(self, statement: Statement, job: Job, kind: int, action: str) -> int:
        if self._last >= 0 and self._try(statement, job, kind, self._last, action):
            return self._last
        self._gather_all(kind)
        self._last = next((node for node in self._best_first(kind) if self._try(statement, job, kind, node, action)), -1)
        return self._last

    def _gather_all(self, kind: int) -> None:
        suitable = self.session.board(kind).suitable
        for victim, pod in self._candidates():
            node = int(self.session.nodes[pod])
            if node >= 0 and suitable[node]:
                self._gathered.setdefault(node, []).append((victim, pod))
                self._turns[pod] = len(self._turns)

    def _best_first(self, kind: int) -> list[int]:
        """Nodes by score; among equals the one whose last victim comes first in the order."""
        nodes = sorted(self._gathered)
        scores, room = self.session.board(kind).worth(nodes).tolist(), self.session.floor.future(nodes)
        ranked = [
            (-score, self._turn(node, kind, room[:, place]), node) for place, (score, node) in enumerate(zip(scores, nodes, strict=True))
        ]
        return [node for _, _, node in sorted(ranked)]

    def _turn(self, node: int, kind: int, room: Amounts) -> int:
        """The turn of the pod that would be the last to go there."""
        request, turn = self.session.request, -1
        for _, pod in self._still_there(node):
            if covers(room, request[kind]):
                break
            room, turn = room + request[self.session.kinds[pod]], self._turns[pod]
        return turn

    def _is_settled(self, job: Job, kind: int, node: int) -> bool:
        return self.fits_there(kind, node) and self.session.allocatable(job.queue, kind) > 0

    _looks_for_help = False
