"""Enqueue: let waiting gangs in, as far as queues and cluster can take them."""

from __future__ import annotations

from typing import Final

import numpy as np

from scheduler.domain.tables import Rows
from scheduler.engine.ordering import GangLines, QueueLine
from scheduler.engine.session import Session

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
    while (gang := gangs.pop(queue)) is not None:
        gang.refusal = None
        if session.snapshot.groups.has_min_resources[gang.row]:
            gang.refusal = session.refuse_enqueue(gang)
        if gang.refusal is None:
            session.admit(gang)
        elif session.is_strict(queue):
            session.stop_line(gangs.rest(queue))
            return


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
