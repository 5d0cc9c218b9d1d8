"""Gangs of alike pods that are larger than the room on all nodes: many are told at once, and none
of them is tried.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.engine.alike_gangs import AlikeNeeds, count_first_by_parts

if TYPE_CHECKING:
    from scheduler.engine.session import Session

_UNKNOWN: Final = -1


class HopelessGangs:
    """Of gangs of alike pods none of which has a place yet."""

    def __init__(self, session: Session, needs: AlikeNeeds) -> None:
        self._session = session
        self._needs = needs
        self._seen = _UNKNOWN  # how many changes of nodes there were by then
        self._room: Rows = np.full(len(session.request), _UNKNOWN, dtype=np.intp)  # by class

    def are_all(self, rows: Rows) -> bool:
        """Whether all these podgroups find no room, now or later, and none is within its queue's
        due: so nothing can come of it if they are tried.
        """
        session = self._session
        if not session.needs_whole_gangs or not len(rows):
            return False
        queues = np.unique(session.snapshot.groups.queue[rows]).tolist()
        if any(session.is_strict(queue) for queue in queues):
            return False  # the first that fails stops the line

        def are_idle(part: Rows) -> Mask:
            return self._have_no_room(part) & ~self._are_within_due(part)

        return count_first_by_parts(rows, are_idle) == len(rows)

    def count_first(self, queue: int, rows: Rows) -> int:
        """How many at the beginning of these podgroups of the queue find no room, now or later, and
        would not be given a place in the future either.
        """
        session = self._session
        if not session.needs_whole_gangs or session.is_strict(queue):
            return 0
        return count_first_by_parts(rows, partial(self._are_hopeless, queue))

    def _are_hopeless(self, queue: int, rows: Rows) -> Mask:
        hopeless = self._have_no_room(rows)
        if not hopeless[0]:
            return hopeless
        within = hopeless & self._are_within_due(rows)
        if within.any() and self._session.future_places.are_open_to(queue):
            hopeless &= ~within
        return hopeless

    def _have_no_room(self, rows: Rows) -> Mask:
        needed = self._needs.counts[rows]
        if not needed[0]:
            return needed > 0
        # Where nothing is needed, no room is too little.
        too_large: Mask = needed > self._room_for(self._needs.classes[rows])
        return too_large

    def _room_for(self, classes: Rows) -> Rows:
        """How many pods of each of these classes all nodes together take."""
        session = self._session
        changes = len(session.node_table.touched)
        if self._seen != changes:
            self._seen = changes
            self._room[:] = _UNKNOWN
        unknown = classes[(self._room[classes] == _UNKNOWN) & (classes >= 0)]
        for pod_class in set(unknown.tolist()):
            self._room[pod_class] = session.node_scores(pod_class).total_copies()
        room: Rows = np.where(classes >= 0, self._room[classes], 0)
        return room

    def _are_within_due(self, rows: Rows) -> Mask:
        """Whether its queue stays within its due of all that each gang asks for."""
        session = self._session
        if session.quotas is None:
            return np.zeros(len(rows), dtype=np.bool_)
        queues = session.snapshot.groups.queue[rows]
        wanted = self._needs.amounts(rows)
        asked = (wanted > 0) & session.queue_usage.dims
        after = session.queue_usage.allocated[queues] + wanted
        within: Mask = np.all((after <= session.quotas.deserved[queues]) | ~asked, axis=1)
        return within & asked.any(axis=1)
