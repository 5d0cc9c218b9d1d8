"""Enqueue: let waiting gangs in, as far as queues and cluster can take them."""

from __future__ import annotations

from typing import Final

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.engine.alike_gangs import NO_KIND, numbered, without_roles
from scheduler.engine.ordering import GangLines, QueueLine
from scheduler.engine.refusals import Refusal
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

_MANY: Final = 8
"""A line of so many gangs is looked at as a whole first."""


def enqueue(session: Session) -> None:
    """Queue by queue; a gang that is refused lets the next one try, unless its queue is strictly
    first in, first out.
    """
    gangs = GangLines(session, _without_promised(session))
    line = QueueLine(session, gangs.queues())
    while (queue := line.best()) >= 0:
        _admit_first(session, gangs, queue)
        _admit_one_by_one(session, gangs, queue)
        line.leave(queue)


def _admit_first(session: Session, gangs: GangLines, queue: int) -> None:
    """As many as no plugin has anything against, before the first of whom that cannot be told."""
    rows = gangs.waiting_for_first_turn(queue)
    if len(rows) < _MANY:
        return
    count = session.count_enqueueable(rows)
    if count:
        session.admit_many(rows[:count])
        gangs.drop_first(queue, count)


def _admit_one_by_one(session: Session, gangs: GangLines, queue: int) -> None:
    refused = RefusedGangs(session, gangs.waiting_for_first_turn(queue))
    while (gang := gangs.pop(queue, refused.count_first)) is not None:
        gang.refusal = refused.refusal_like(gang.row)
        if gang.refusal is None and session.snapshot.groups.has_min_resources[gang.row]:
            gang.refusal = session.refuse_enqueue(gang)
            refused.add(gang)
        if gang.refusal is None:
            session.admit(gang)
            refused.forget()
        elif session.is_strict(queue):
            session.stop_line(gangs.rest(queue))
            return


class RefusedGangs:
    """Gangs of one queue that were refused since somebody was admitted, by their minResources:
    others that ask for the same are refused as well.

    Where many wait, most of them are not even looked at, unless a report tells of each.
    """

    def __init__(self, session: Session, rows: Rows) -> None:
        self._session = session
        self._kinds: Rows | None = None  # by podgroup, if they are compared
        self._refusals: dict[int, Refusal] = {}  # by kind
        self._is_refused: Mask = np.zeros(1, dtype=np.bool_)  # by kind, the last entry for NO_KIND
        if session.refuses_by_minimum and len(rows) >= _MANY:
            self._compare(rows)

    def _compare(self, rows: Rows) -> None:
        groups = self._session.snapshot.groups
        rows = rows[groups.has_min_resources[rows] & without_roles(self._session, rows)]
        self._kinds = np.full(len(groups), NO_KIND, dtype=np.intp)
        self._kinds[rows], count = numbered(list(groups.min_resources[rows].T))
        self._is_refused = np.zeros(count + 1, dtype=np.bool_)

    def add(self, gang: Gang) -> None:
        """The gang was asked about, and maybe refused."""
        if self._kinds is None or gang.refusal is None:
            return
        kind = int(self._kinds[gang.row])
        if kind != NO_KIND:
            self._refusals[kind] = gang.refusal
            self._is_refused[kind] = True

    def forget(self) -> None:
        """Somebody was admitted."""
        if self._refusals:
            self._refusals.clear()
            self._is_refused[:] = False

    def refusal_like(self, row: int) -> Refusal | None:
        """Of a gang that asks for the same as this one."""
        if self._kinds is None or not self._refusals:
            return None
        return self._refusals.get(int(self._kinds[row]))

    def count_first(self, rows: Rows) -> int:
        """How many at the beginning of these podgroups are refused, and nobody asks why."""
        if self._session.reporting or self._kinds is None or not self._refusals:
            return 0
        is_refused = self._is_refused[self._kinds[rows]]
        return len(rows) if is_refused.all() else int(is_refused.argmin())


def _without_promised(session: Session) -> Rows:
    """Gangs that an earlier session promised room are admitted first, and nobody is asked again.

    Else the room made for them would stay empty.
    """
    rows = session.rows_to_admit()
    promised = {gang.row for gang in session.known_gangs() if gang.held}
    if not promised:
        return rows
    is_promised = np.isin(rows, list(promised))
    for gang in session.gangs(rows[is_promised]):
        gang.refusal = None
        session.admit(gang)
    others: Rows = rows[~is_promised]
    return others
