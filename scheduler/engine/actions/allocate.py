"""Allocate: give idle room to jobs that are admitted, best queue and best job first, all of a gang or none of it."""

from __future__ import annotations

from scheduler.engine.eviction.claims import is_within_due, missing_runs
from scheduler.engine.ordering import JobLines, QueueLine
from scheduler.engine.placement import Placement, TaskLine
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Job
from scheduler.engine.state.nodes import fits
from scheduler.engine.statement import Statement


def allocate(session: Session) -> None:
    if not session.has_action("enqueue"):
        session.admit_all()
    Allocation(session).run()


class Allocation:
    """A job that has its gang goes back into the line for its other pods, one at a time, behind jobs still short of theirs."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.lines: dict[int, TaskLine] = {}
        jobs = [
            job
            for job in session.active_jobs()
            if session.refuse_job(job) is None and self._has_demand(job)
        ]
        self.promised = sorted((job for job in jobs if job.held), key=session.job_key)
        self.jobs = JobLines(session, (job for job in jobs if not job.held))
        self.queues = QueueLine(session, self.jobs.queues())

    def _has_demand(self, job: Job) -> bool:
        """Pods that ask for nothing are left to backfill, unless a gang needs them."""
        line = TaskLine(
            self.session, self.session.asking_for_something(self.session.pending_pods(job))
        )
        self.lines[job.row] = line
        return bool(line)

    def run(self) -> None:
        """First those that earlier sessions kept a place for, then queue by queue."""
        for promised in self.promised:
            self._turn(promised)
            self.queues.enter(promised.queue)
        while (queue := self.queues.best()) >= 0:
            job = None if self._is_full(queue) else self.jobs.pop(queue)
            if job is None:
                self.queues.leave(queue)
            elif self._turn(job):
                self.queues.enter(queue)
            elif not self.session.is_strict(queue):
                set_aside(self.session, job)
                self.queues.enter(queue)
            else:
                set_aside(self.session, job)
                self.session.stop_line(self.jobs.rest(queue))
                self.queues.leave(queue)

    def _is_full(self, queue: int) -> bool:
        """A queue that has all it deserves is out for the session, with all its jobs."""
        if not self.session.overused(queue):
            return False
        for job in self.jobs.rest(queue):
            job.failed = job.failed or "quota"
        return True

    def _turn(self, job: Job) -> bool:
        """One try; answers whether the job got anything, or has all it needs."""
        session, line = self.session, self.lines[job.row]
        if self._is_hopeless(job, line):
            return False
        with session.statement() as statement:
            if job.held:
                line = self.lines[job.row] = self._take_promised(job, statement)
            if not job.held or not session.job_ready(job):
                Placement(session, statement, job, line, session.allocatable).run()
            self._add_best_effort(job, statement)
            if session.job_ready(job):
                statement.commit()
                if line:
                    self.jobs.push(job)
                return True
            if session.job_pipelined(job):
                statement.keep()
                return True
            job.placeable = job.ready + job.waiting
        return False

    def _take_promised(self, job: Job, statement: Statement) -> TaskLine:
        """Each pod with a promise goes to its node, now or as soon as it is free; the others are left for the usual way."""
        session, promises = (
            self.session,
            sorted(job.held.items(), key=lambda promise: self.session.pod_key(promise[0])),
        )
        statement.unhold(job)
        for pod, node in promises:
            kind = int(session.kinds[pod])
            if not session.allocatable(job.queue, kind):
                continue
            if fits(session.floor.free([node]), session.request[kind])[0]:
                statement.allocate(job, kind, [pod], [node])
            elif fits(session.floor.future([node]), session.request[kind])[0]:
                statement.pipeline(job, kind, [pod], [node])
        return TaskLine(session, session.asking_for_something(session.unplaced_pods(job)))

    def _is_hopeless(self, job: Job, line: TaskLine) -> bool:
        """A gang of alike pods for which all nodes together have too little room is not even tried."""
        needed = job.min_member - job.ready
        if not self.session.gang_decides or needed <= 1 or len(line.runs) != 1 or job.held:
            return False
        kind, pods = line.peek()
        room = self.session.board_for(job, kind).total_copies()
        if room >= needed or len(pods) < needed:
            return False
        job.failed, job.placeable = "room", job.ready + room
        return True

    def _add_best_effort(self, job: Job, statement: Statement) -> None:
        """A member that asks for nothing counts for its gang only if it is placed together with it."""
        session = self.session
        if (
            not session.gang_decides
            or session.job_ready(job)
            or job.ready + job.waiting + job.pending < job.min_member
        ):
            return
        members = [pod for pod in session.pending_pods(job) if session.asks_for_nothing(pod)]
        if members:
            Placement(
                session, statement, job, TaskLine(session, members), session.allocatable
            ).run()


def set_aside(session: Session, job: Job) -> None:
    """A gang that is within its queue's due, and found no room now, gets a place in the future."""
    if session.asides.is_open_to(job) and job.failed == "room" and is_within_due(session, job):
        session.asides.add(job, missing_runs(session, job))
