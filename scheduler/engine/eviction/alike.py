"""Pods and victims of one size go one for one, many of them at once.

The outcome is the same as pod after pod. Where that cannot be told beforehand, callers go pod after
pod. All plugins must be such that their answers only tighten (`Plugin.only_tightens`): then a yes
to the last pod was a yes to each one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.statement import Statement


class RoomMemory:
    """Whether there is room for a class of pods, now or later, and whether nodes have too little.

    Where pods and victims went one for one, there is as much as before.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        # By class, how many changes of nodes there were when this was found
        self._is_none: dict[int, int] = {}
        self._is_enough: dict[int, int] = {}

    @property
    def changes(self) -> int:
        """How many changes of nodes there were so far."""
        return len(self._session.node_table.touched)

    def is_there_for(self, pod_class: int) -> bool:
        changes = self.changes
        if self._is_none.get(pod_class) == changes:
            return False
        if self._session.room_for(pod_class) >= 0:
            return True
        self._is_none[pod_class] = changes
        return False

    def is_over_full(self, pod_class: int) -> bool:
        """Whether any node will have too little of what a pod of the class asks for."""
        changes = self.changes
        if self._is_enough.get(pod_class) == changes:
            return False
        if self._session.node_table.is_over_full(self._session.request[pod_class] > 0):
            return True
        self._is_enough[pod_class] = changes
        return False

    def is_as_before(self, pod_class: int, since: int) -> None:
        """There was none after so many changes, and since then pods of this class took the places
        of others as large.
        """
        changes = self.changes
        self._is_none[pod_class] = changes
        if self._is_enough.get(pod_class) == since:
            self._is_enough[pod_class] = changes


def alike_pods(session: Session, gang: Gang, pods: list[int]) -> list[int]:
    """The first of these pods that are of one class, as many as the gang still needs."""
    if not session.only_gangs_starve or not session.answers_only_tighten:
        return pods[:1]
    needed = pods[: gang.missing]
    classes = session.pod_classes[needed]
    return needed[: _length_of_start(classes == classes[0])]


def alike_victims(session: Session, pod_class: int, pods: Rows) -> Rows:
    """The first of these pods that are of one gang's queue and one class, as large as the newcomer.

    None if they are smaller or larger.
    """
    if not len(pods):
        return pods
    classes = session.pod_classes[pods]
    if not is_as_large(session, int(classes[0]), pod_class):
        return pods[:0]
    queue = session.snapshot.groups.queue[session.snapshot.pods.group[pods]]
    return pods[: _length_of_start((classes == classes[0]) & (queue == queue[0]))]


def is_as_large(session: Session, victim_class: int, pod_class: int) -> bool:
    """Whether a pod of the one class frees exactly what one of the other asks for."""
    if victim_class == pod_class:
        return True
    request = session.request[pod_class]
    return bool((session.request[victim_class] == request)[request > 0].all())


def is_at_least_as_large(session: Session, victim_classes: Rows, pod_class: int) -> bool:
    """Whether a pod of any of these classes frees all that one of the other class asks for."""
    request = session.request[pod_class]
    return bool((session.request[victim_classes] >= request)[:, request > 0].all())


def _length_of_start(is_fine: Mask) -> int:
    """How many of the first are fine."""
    if is_fine.all():
        return len(is_fine)
    return int(np.argmin(is_fine))


def gangs_of(session: Session, pods: list[int]) -> dict[Gang, int]:
    """The gangs of these pods, and how many are of each."""
    losing: dict[Gang, int] = {}
    for row in session.snapshot.pods.group[pods].tolist():
        gang = session.gang(row)
        losing[gang] = losing.get(gang, 0) + 1
    return losing


def all_keep_their_minimum(losing: Mapping[Gang, int]) -> bool:
    return all(gang.ready - count >= gang.min_member for gang, count in losing.items())


def rows_of(losing: Mapping[Gang, int], victim_class: int) -> tuple[Rows, Rows]:
    """These gangs as rows of podgroups, and the class of the victims beside each."""
    rows = np.array([gang.row for gang in losing], dtype=np.intp)
    return rows, np.full(len(rows), victim_class)


def swap(
    statement: Statement,
    gang: Gang,
    pods: list[int],
    victims: list[int],
    action: str,
    agreed: Callable[[], bool],
) -> bool:
    """The victims go, and each of the pods is promised the place of one.

    `agreed` is asked before the last pod has its place. If it says no, nothing has happened.
    """
    session = statement.session
    pod_class = int(session.pod_classes[pods[0]])
    nodes = session.nodes[victims].tolist()
    mark = statement.mark
    statement.evict_alike(victims, action, gang, taker_class=pod_class)
    statement.pipeline(gang, pod_class, pods[:-1], nodes[:-1])
    if not agreed():
        statement.discard(mark)
        return False
    statement.pipeline(gang, pod_class, pods[-1:], nodes[-1:])
    return True
