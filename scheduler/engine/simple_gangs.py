"""Gangs that start with all their pods, which are alike: most of those that wait.

They need no statement that could be undone: either there is room for all pods, and they are placed,
or nothing happens and the gang is tried in the usual way. Where one queue is alone in the line,
gangs that ask for the same are placed together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.alike_gangs import are_comparable
from scheduler.engine.state.gang import Gang
from scheduler.engine.statement import Operation, OperationType, count_for_gang

if TYPE_CHECKING:
    from scheduler.engine.session import Session

_ALLOCATED: Final = int(PodStatus.ALLOCATED)
_NOT_SIMPLE: Final = -1


class SimpleGangs:
    """Which podgroups are simple, and their placement."""

    def __init__(self, session: Session, rows: Rows, waiting_classes: Rows) -> None:
        self._session = session
        self._classes: Rows = np.full(len(session.snapshot.groups), _NOT_SIMPLE, dtype=np.intp)
        if session.only_gangs_decide_starts and session.pod_rules is None:
            simple = rows[_are_simple(session, rows, waiting_classes)]
            self._classes[simple] = waiting_classes[simple]

    def place(self, row: int) -> bool:
        """All pods of this podgroup, each on its best node; False if it must be tried in the usual
        way.
        """
        pod_class = int(self._classes[row])
        if pod_class == _NOT_SIMPLE:
            return False
        session = self._session
        gang = session.gang(row)
        count = gang.pending
        if session.allocatable(gang.queue, pod_class, count) < count:
            return False
        nodes = session.node_scores_for(gang, pod_class).nodes_for(count)
        if len(nodes) < count:
            return False
        self._start([gang], pod_class, nodes)
        return True

    def place_first(self, rows: Rows) -> int:
        """As many as possible of the first of these podgroups of one queue that ask for the same.

        Answers how many. Nobody else may have a turn in between.
        """
        alike = self._first_alike(rows)
        if len(alike) < 2 or not self._may_place_many():
            return int(self.place(int(rows[0])))
        session = self._session
        pod_class = int(self._classes[alike[0]])
        queue = int(session.snapshot.groups.queue[alike[0]])
        pods = np.cumsum(session.pending_counts[alike])
        allowed = session.allocatable(queue, pod_class, int(pods[-1]))
        nodes: list[int] = []
        if allowed > 0:
            nodes = session.node_scores(pod_class).nodes_for(allowed)
        started = int(np.searchsorted(pods, len(nodes), side="right"))
        if started:
            gangs = session.gangs(alike[:started])
            self._start(gangs, pod_class, nodes[: int(pods[started - 1])])
        return started

    def _first_alike(self, rows: Rows) -> Rows:
        """The first of these that ask for the same; at most one if that is not simple."""
        pod_class = self._classes[rows[0]]
        if pod_class == _NOT_SIMPLE:
            return rows[:1]
        is_alike = self._classes[rows] == pod_class
        if is_alike.all():
            return rows
        return rows[: int(is_alike.argmin())]

    def _may_place_many(self) -> bool:
        """Whether nothing but the sums of queues and the room on nodes counts for the next gang."""
        session = self._session
        if session.may_be_overused or session.future_places.found:
            return False
        quotas = session.quotas
        return quotas is None or quotas.reserved is None or not quotas.reserved.guarantees_anything

    def _start(self, gangs: list[Gang], pod_class: int, nodes: list[int]) -> None:
        """The gangs, all of one queue, take these nodes, pod after pod."""
        session = self._session
        request = session.request[pod_class]
        placed: list[int] = []
        for gang in gangs:
            pods = session.tasks.unplaced_pods(gang)
            places = nodes[len(placed) : len(placed) + len(pods)]
            placed += pods
            session.decide(Operation(OperationType.ALLOCATE, gang, pods, pod_class, places))
            count_for_gang(session, gang, pod_class, len(pods), ready=len(pods), pending=-len(pods))
        session.node_table.use(nodes, request, 1)
        session.queue_usage.allocate(gangs[0].queue, request * len(nodes))
        if len(placed) == 1:
            # One number is several times as fast as a list.
            session.status[placed[0]] = _ALLOCATED
            session.nodes[placed[0]] = nodes[0]
            return
        session.status[placed] = _ALLOCATED
        session.nodes[placed] = nodes


def _are_simple(session: Session, rows: Rows, classes: Rows) -> Mask:
    """All pods of each wait, are of one class, and are needed, or there is only one."""
    groups = session.snapshot.groups
    pending = session.pending_counts[rows]
    minimum = groups.min_member[rows]
    simple: Mask = are_comparable(session, rows, classes) & (pending == session.task_counts[rows])
    simple &= (minimum == pending) | ((pending == 1) & (minimum < 1))
    return simple
