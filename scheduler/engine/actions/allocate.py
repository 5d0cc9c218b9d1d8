"""Allocate: give idle room to gangs that are admitted, best queue and best gang first, all of a
gang or none of it. `ordering.py` says which queue and which gang is next.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows, Times
from scheduler.engine.alike_gangs import AlikeNeeds, SettledGangs
from scheduler.engine.hopeless_gangs import HopelessGangs
from scheduler.engine.ordering import GangLines, QueueLine, oldest_first
from scheduler.engine.placement import Placement, TaskLine
from scheduler.engine.session import Session
from scheduler.engine.set_aside import (
    LOOKED_AT,
    reserve_for_longest_waiting,
    reserve_future_place,
)
from scheduler.engine.simple_gangs import SimpleGangs
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.nodes import fits
from scheduler.engine.statement import Statement


def allocate(session: Session) -> None:
    if not session.has_action("enqueue"):
        session.admit_all()
    if len(session.active_rows()):
        Allocation(session).run()


class Allocation:
    """A gang that has its minimum goes back into the line for its other pods, one at a time, behind
    gangs still short of theirs.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.lines: dict[int, TaskLine] = {}
        rows = session.active_rows()
        if session.reporting:
            session.active_gangs()  # a report tells of each of them
        promised = self._promised_gangs(rows)
        self.promised = sorted(filter(self._may_be_tried, promised), key=session.job_key)
        self.waiting = rows
        if promised:
            self.waiting = np.setdiff1d(rows, [gang.row for gang in promised])
        self.waiting_classes = session.tasks.waiting_classes()
        needs = AlikeNeeds(session, self.waiting, self.waiting_classes)
        self.hopeless = HopelessGangs(session, needs)

    def _line_up(self) -> None:
        session = self.session
        self.gangs = GangLines(session, self.waiting, self._may_be_tried)
        self.queues = QueueLine(session, self.gangs.queues())
        self.settled = SettledGangs(session, self.waiting, self.waiting_classes)
        self.simple = SimpleGangs(session, self.waiting, self.waiting_classes)
        # Who may run for any time runs longest.
        self._ends: Times = session.snapshot.taken_at + np.nan_to_num(
            session.snapshot.groups.expected_seconds, nan=np.inf
        )
        self._in_the_way: Rows = np.zeros(0, dtype=np.intp)
        self._places_seen = 0

    def _promised_gangs(self, rows: Rows) -> list[Gang]:
        """Those of these podgroups that an earlier session promised a place."""
        active = set(rows.tolist())
        known = self.session.known_gangs()
        return [gang for gang in known if gang.held and gang.row in active]

    def _may_be_tried(self, gang: Gang) -> bool:
        return self.session.refuse_job(gang) is None and self._has_demand(gang)

    def _has_demand(self, gang: Gang) -> bool:
        """Pods that ask for nothing are left to backfill, unless a gang needs them."""
        line = self.lines[gang.row] = TaskLine(self.session, self._wanting(gang))
        return bool(line)

    def _wanting(self, gang: Gang) -> list[int]:
        tasks = self.session.tasks
        return tasks.asking_for_something(tasks.pending_pods(gang))

    def run(self) -> None:
        """First those that earlier sessions kept a place for, then queue by queue."""
        if self._is_nobody_to_be_tried():
            self._put_off_places()
            return
        self._line_up()
        for promised in self.promised:
            if not self._turn(promised):
                drop_promise(self.session, promised)
            self.queues.enter(promised.queue)
        self._put_off_places()
        while (queue := self.queues.best()) >= 0:
            gang = None
            if not self._is_full(queue):
                self._pass_over_hopeless(queue)
                if self._place_simple(queue):
                    self.queues.enter(queue)
                    continue
                gang = self.gangs.pop(queue, self._count_settled)
            if gang is None:
                self.queues.leave(queue)
            elif self._turn(gang):
                self.queues.enter(queue)
            else:
                self._after_failed_turn(gang)

    def _is_nobody_to_be_tried(self) -> bool:
        """A report tells of each gang what it ran into, so then all are tried."""
        if self.session.reporting or self.promised:
            return False
        return self.hopeless.are_all(self.waiting)

    def _put_off_places(self) -> None:
        def give() -> None:
            reserve_for_longest_waiting(self.session, self._longest_waiting(), self.waiting)

        self.session.future_places.put_off(give)

    def _pass_over_hopeless(self, queue: int) -> None:
        if self.session.reporting:
            return
        rows = self.gangs.waiting_for_first_turn(queue)
        if len(rows):
            self.gangs.drop_first(queue, self.hopeless.count_first(queue, rows))

    def _place_simple(self, queue: int) -> int:
        """Gangs at the head of the line that are placed without further ado; answers how many."""
        row = self.gangs.next_row(queue)
        if row < 0 or self.settled.like(row) is not None:
            return 0
        if self.queues.is_alone(queue):
            placed = self.simple.place_first(self.gangs.waiting_for_first_turn(queue))
        else:
            placed = int(self.simple.place(row))
        if placed:
            self.gangs.drop_first(queue, placed)
        return placed

    def _longest_waiting(self) -> list[Gang]:
        """Of the gangs short of their minimum those that have waited longest, as many as count."""
        session = self.session
        groups = session.snapshot.groups
        if not session.future_places.are_given:
            return []
        rows = self.waiting
        rows = rows[session.placed_counts[rows] < groups.min_member[rows]]
        gangs = map(session.gang, oldest_first(groups, rows))
        return list(islice(filter(self._could_be_tried, gangs), LOOKED_AT))

    def _could_be_tried(self, gang: Gang) -> bool:
        """The same as `_may_be_tried`; its line stays as it is."""
        return self.session.refuse_job(gang) is None and bool(self._wanting(gang))

    def _after_failed_turn(self, gang: Gang) -> None:
        reserve_future_place(self.session, gang)
        if self.session.is_strict(gang.queue):
            self.session.stop_line(self.gangs.rest(gang.queue))
            self.queues.leave(gang.queue)
            return
        if self.session.needs_whole_gangs and gang.placeable < gang.min_member:
            self.settled.add(gang)
        self.queues.enter(gang.queue)

    def _count_settled(self, rows: Rows) -> int:
        """How many at the head of a line are like gangs that failed.

        They would fail, too, and are not tried.
        """
        if not self.session.reporting:
            return self.settled.count_first(rows, self._finds_more_room)
        for place, row in enumerate(rows):
            if not self._is_settled(int(row)):
                return place
        return len(rows)

    def _is_settled(self, row: int) -> bool:
        other = self.settled.like(row)
        if other is None or self._finds_more_room(np.array([row]), np.array([other.row]))[0]:
            return False
        return self._shares_the_answer(self.session.gang(row), other)

    def _finds_more_room(self, rows: Rows, others: Rows) -> Mask:
        """Which of these gangs need not leave as much free for places in the future as the other
        beside it: it ends before one of them begins and the other does not, or one is its own.
        """
        places = self.session.future_places
        if not places.found:
            return np.zeros(len(rows), dtype=np.bool_)
        if self._places_seen != len(places.found):
            self._places_seen = len(places.found)
            self._in_the_way = places.count_begun_by(self._ends)
        finds_more: Mask = self._in_the_way[rows] < self._in_the_way[others]
        for row in places.podgroups:
            finds_more |= rows == row
        return finds_more

    def _shares_the_answer(self, gang: Gang, other: Gang) -> bool:
        """Takes over what a report tells of the other, if it must be the same."""
        may_differ = other.missing > 1 and self.session.future_places.found
        if gang.failed or may_differ:
            return False
        gang.failed = other.failed
        gang.placeable = other.placeable
        gang.blocked = other.blocked
        return True

    def _is_full(self, queue: int) -> bool:
        """A queue that has all it deserves is out for the session, with all its gangs."""
        if not self.session.overused(queue):
            return False
        if self.session.reporting:
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
            request = session.request[pod_class]
            if fits(session.node_table.free([node]), request)[0] and session.allows_on(
                pod_class, node
            ):
                statement.allocate(gang, pod_class, [pod], [node])
            elif fits(session.node_table.future([node]), request)[0] and session.allows_on(
                pod_class, node, later=True
            ):
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
