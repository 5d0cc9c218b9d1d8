"""Allocate: give idle room to gangs that are admitted, best queue and best gang first, all of a
gang or none of it. `ordering.py` says which queue and which gang is next.
"""

from __future__ import annotations

from scheduler.engine.ordering import GangLines, QueueLine
from scheduler.engine.placement import Placement, TaskLine
from scheduler.engine.session import Session
from scheduler.engine.set_aside import reserve_for_longest_waiting, reserve_future_place
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.nodes import fits
from scheduler.engine.statement import Statement


def allocate(session: Session) -> None:
    if not session.has_action("enqueue"):
        session.admit_all()
    Allocation(session).run()


class Allocation:
    """A gang that has its minimum goes back into the line for its other pods, one at a time, behind
    gangs still short of theirs.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.lines: dict[int, TaskLine] = {}
        gangs = [
            gang
            for gang in session.active_gangs()
            if session.refuse_job(gang) is None and self._has_demand(gang)
        ]
        self.waiting = [gang for gang in gangs if not gang.held]
        self.promised = sorted((gang for gang in gangs if gang.held), key=session.job_key)
        self.gangs = GangLines(session, self.waiting)
        self.queues = QueueLine(session, self.gangs.queues())

    def _has_demand(self, gang: Gang) -> bool:
        """Pods that ask for nothing are left to backfill, unless a gang needs them."""
        line = TaskLine(
            self.session,
            self.session.tasks.asking_for_something(self.session.tasks.pending_pods(gang)),
        )
        self.lines[gang.row] = line
        return bool(line)

    def run(self) -> None:
        """First those that earlier sessions kept a place for, then queue by queue."""
        for promised in self.promised:
            if not self._turn(promised):
                drop_promise(self.session, promised)
            self.queues.enter(promised.queue)
        reserve_for_longest_waiting(self.session, self.waiting)
        while (queue := self.queues.best()) >= 0:
            gang = None if self._is_full(queue) else self.gangs.pop(queue)
            if gang is None:
                self.queues.leave(queue)
            elif self._turn(gang):
                self.queues.enter(queue)
            elif not self.session.is_strict(queue):
                reserve_future_place(self.session, gang)
                self.queues.enter(queue)
            else:
                reserve_future_place(self.session, gang)
                self.session.stop_line(self.gangs.rest(queue))
                self.queues.leave(queue)

    def _is_full(self, queue: int) -> bool:
        """A queue that has all it deserves is out for the session, with all its gangs."""
        if not self.session.overused(queue):
            return False
        for gang in self.gangs.rest(queue):
            gang.failed = gang.failed or "quota"
        return True

    def _turn(self, gang: Gang) -> bool:
        """One try; answers whether the gang got anything, or has all it needs."""
        session = self.session
        line = self.lines[gang.row]
        if self._is_hopeless(gang, line):
            return False
        with session.statement() as statement:
            if gang.held:
                line = self.lines[gang.row] = self._take_promised(gang, statement)
            if not gang.held or not session.job_ready(gang):
                Placement(session, statement, gang, line, session.allocatable).run()
            self._add_best_effort(gang, statement)
            if session.job_ready(gang):
                statement.commit()
                if line:
                    self.gangs.push(gang)
                return True
            if session.job_pipelined(gang):
                statement.keep()
                return True
            gang.placeable = gang.ready + gang.waiting
        return False

    def _take_promised(self, gang: Gang, statement: Statement) -> TaskLine:
        """Each pod with a promise goes to its node, now or as soon as it is free; the others are
        left for the usual way.
        """
        session = self.session
        promises = sorted(
            gang.held.items(), key=lambda promise: self.session.tasks.pod_key(promise[0])
        )
        statement.unhold(gang)
        for pod, node in promises:
            pod_class = int(session.pod_classes[pod])
            if not session.allocatable(gang.queue, pod_class):
                continue
            if fits(session.node_table.free([node]), session.request[pod_class])[0]:
                statement.allocate(gang, pod_class, [pod], [node])
            elif fits(session.node_table.future([node]), session.request[pod_class])[0]:
                statement.pipeline(gang, pod_class, [pod], [node])
        return TaskLine(
            session, session.tasks.asking_for_something(session.tasks.unplaced_pods(gang))
        )

    def _is_hopeless(self, gang: Gang, line: TaskLine) -> bool:
        """A gang of alike pods that is larger than the room on all nodes is not even tried."""
        needed = gang.min_member - gang.ready
        if not self.session.gang_decides or needed <= 1 or len(line.runs) != 1 or gang.held:
            return False
        pod_class, pods = line.peek()
        room = self.session.node_scores_for(gang, pod_class).total_copies()
        if room >= needed or len(pods) < needed:
            return False
        gang.failed = "room"
        gang.placeable = gang.ready + room
        return True

    def _add_best_effort(self, gang: Gang, statement: Statement) -> None:
        """A pod that asks for nothing counts for its gang only if it is placed with it."""
        session = self.session
        if (
            not session.gang_decides
            or session.job_ready(gang)
            or gang.ready + gang.waiting + gang.pending < gang.min_member
        ):
            return
        members = [
            pod for pod in session.tasks.pending_pods(gang) if session.tasks.asks_for_nothing(pod)
        ]
        if members:
            Placement(
                session, statement, gang, TaskLine(session, members), session.allocatable
            ).run()


def drop_promise(session: Session, gang: Gang) -> None:
    """A gang that cannot start with the room promised to it keeps nobody else out of it."""
    with session.statement() as statement:
        statement.unhold(gang)
        statement.commit()
