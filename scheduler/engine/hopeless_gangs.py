"""Gangs of alike pods that are larger than the room on all nodes: many are told at once, and none
of them is tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.engine.alike_gangs import are_comparable

if TYPE_CHECKING:
    from scheduler.engine.session import Session

_LOOKED_AT: Final = 256
"""So many rows of a line are looked at in one go."""
_UNKNOWN: Final = -1


class HopelessGangs:
    """Of gangs that need several pods, or one, of one class, none of which has a place yet."""

    def __init__(self, session: Session, rows: Rows, waiting_classes: Rows) -> None:
        self._session = session
        self._classes = waiting_classes
        self._needed: Rows = np.zeros(len(session.snapshot.groups), dtype=np.intp)  # 0: not told
        if session.needs_whole_gangs:
            counted = rows[_may_be_counted(session, rows, waiting_classes)]
            self._needed[counted] = session.snapshot.groups.min_member[counted]
        self._seen = _UNKNOWN  # how many changes of nodes there were by then
        self._room: Rows = np.full(len(session.request), _UNKNOWN, dtype=np.intp)  # by class

    def count_first(self, queue: int, rows: Rows) -> int:
        """How many at the beginning of these podgroups of the queue find no room, now or later, and
        would not be given a place in the future either.
        """
        if self._session.is_strict(queue):
            return 0  # the first that fails stops the line
        for start in range(0, len(rows), _LOOKED_AT):
            part = rows[start : start + _LOOKED_AT]
            is_hopeless = self._are_hopeless(queue, part)
            if not is_hopeless.all():
                return start + int(is_hopeless.argmin())
        return len(rows)

    def _are_hopeless(self, queue: int, rows: Rows) -> Mask:
        needed = self._needed[rows]
        if not needed[0]:
            return needed > 0
        classes = self._classes[rows]
        # What has no class is not counted, whatever room stands there.
        hopeless: Mask = needed > self._room_for(classes)
        if hopeless.any() and self._session.future_places.are_open_to(queue):
            hopeless &= ~self._are_within_due(queue, needed, classes)
        return hopeless

    def _room_for(self, classes: Rows) -> Rows:
        """How many pods of each of these classes all nodes together take."""
        session = self._session
        changes = len(session.node_table.touched)
        if self._seen != changes:
            self._seen = changes
            self._room[:] = _UNKNOWN
        room = self._room[classes]
        unknown = classes[(room == _UNKNOWN) & (classes >= 0)]
        if len(unknown):
            for pod_class in set(unknown.tolist()):
                self._room[pod_class] = session.node_scores(pod_class).total_copies()
            room = self._room[classes]
        return room

    def _are_within_due(self, queue: int, needed: Rows, classes: Rows) -> Mask:
        """Whether the queue stays within its due of all that each gang asks for."""
        session = self._session
        if session.quotas is None:
            return np.zeros(len(needed), dtype=np.bool_)
        wanted = session.request[classes] * needed[:, None]
        asked = (wanted > 0) & session.queue_usage.dims
        after = session.queue_usage.allocated[queue] + wanted
        is_within: Mask = ((after <= session.quotas.deserved[queue]) | ~asked).all(axis=1)
        return is_within & asked.any(axis=1)


def _may_be_counted(session: Session, rows: Rows, classes: Rows) -> Mask:
    """Pods of one class, none with a place; and as many wait as are needed, or more."""
    minimum = session.snapshot.groups.min_member[rows]
    enough: Mask = (minimum > 0) & (session.pending_counts[rows] >= minimum)
    return enough & are_comparable(session, rows, classes)
