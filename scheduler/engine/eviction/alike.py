"""Pods and victims of one size go one for one, many of them at once.

The outcome is the same as pod after pod. Where that cannot be told beforehand, callers go pod after
pod. All plugins must be such that their answers only tighten (`Plugin.only_tightens`): then a yes
to the last pod was a yes to each one before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.statement import Statement


class RoomMemory:
    """Whether there is room for a class of pods, now or later.

    Where pods and victims went one for one, there is as much as before.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._is_none: dict[int, int] = {}  # class -> how many changes of nodes there were

    def is_there_for(self, pod_class: int) -> bool:
        changes = len(self._session.node_table.touched)
        if self._is_none.get(pod_class) == changes:
            return False
        if self._session.room_for(pod_class) >= 0:
            return True
        self._is_none[pod_class] = changes
        return False

    def is_as_before(self, pod_class: int) -> None:
        """There was none, and since then pods of this class took the places of others as large."""
        self._is_none[pod_class] = len(self._session.node_table.touched)


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
    request = session.request[pod_class]
    freed = session.request[classes[0]]
    if not (freed == request)[request > 0].all():
        return pods[:0]
    queue = session.snapshot.groups.queue[session.snapshot.pods.group[pods]]
    return pods[: _length_of_start((classes == classes[0]) & (queue == queue[0]))]


def _length_of_start(is_fine: Mask) -> int:
    """How many of the first are fine."""
    if is_fine.all():
        return len(is_fine)
    return int(np.argmin(is_fine))


def gangs_of(session: Session, pods: list[int]) -> Counter[Gang]:
    """The gangs of these pods, and how many are of each."""
    rows = session.snapshot.pods.group[pods].tolist()
    return Counter(session.gang(row) for row in rows)


def all_keep_their_minimum(losing: Counter[Gang]) -> bool:
    return all(gang.ready - count >= gang.min_member for gang, count in losing.items())


def rows_of(losing: Counter[Gang], victim_class: int) -> tuple[Rows, Rows]:
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
    statement.evict_alike(victims, action, gang, pod_class)
    statement.pipeline(gang, pod_class, pods[:-1], nodes[:-1])
    if not agreed():
        statement.discard(mark)
        return False
    statement.pipeline(gang, pod_class, pods[-1:], nodes[-1:])
    return True
