"""Enqueue: let waiting gangs in, as far as queues and cluster can take them."""

from __future__ import annotations

from scheduler.engine.ordering import GangLines, QueueLine
from scheduler.engine.session import Session


def enqueue(session: Session) -> None:
    """Queue by queue; a gang that is refused lets the next one try, unless its queue is strictly
    first in, first out.
    """
    gangs = GangLines(session, session.gangs_to_admit())
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
