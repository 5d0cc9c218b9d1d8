"""Enqueue: let waiting gangs in, as far as queues and cluster can take them."""

from __future__ import annotations

from scheduler.engine.ordering import GangLines, QueueLine
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


def enqueue(session: Session) -> None:
    """Queue by queue; a gang that is refused lets the next one try, unless its queue is strictly
    first in, first out.
    """
    gangs = GangLines.of(session, _without_promised(session))
    line = QueueLine(session, gangs.queues())
    while (queue := line.best()) >= 0:
        gang = gangs.pop(queue)
        if gang is None:
            line.leave(queue)
            continue
        gang.refusal = None
        if session.snapshot.groups.has_min_resources[gang.row]:
            gang.refusal = session.refuse_enqueue(gang)
        if gang.refusal is None:
            session.admit(gang)
        elif session.is_strict(queue):
            session.stop_line(gangs.rest(queue))
            line.leave(queue)


def _without_promised(session: Session) -> list[Gang]:
    """Gangs that an earlier session promised room are admitted first, and nobody is asked again.

    Else the room made for them would stay empty.
    """
    others: list[Gang] = []
    for gang in session.gangs_to_admit():
        if gang.held:
            gang.refusal = None
            session.admit(gang)
        else:
            others.append(gang)
    return others
