"""Enqueue: let waiting jobs in, as far as queues and cluster can take them."""

from __future__ import annotations

from scheduler.engine.ordering import JobLines, QueueLine
from scheduler.engine.session import Session


def enqueue(session: Session) -> None:
    """Queue by queue; a job that is refused lets the next one try, unless its queue is strictly first in, first out."""
    jobs = JobLines(session, session.jobs_to_admit())
    line = QueueLine(session, jobs.queues())
    while (queue := line.best()) >= 0:
        job = jobs.pop(queue)
        if job is None:
            line.leave(queue)
            continue
        job.refusal = (
            session.refuse_enqueue(job)
            if session.snapshot.groups.has_min_resources[job.row]
            else None
        )
        if job.refusal is None:
            session.enqueued(job)
        elif session.is_strict(queue):
            session.stop_line(jobs.rest(queue))
            line.leave(queue)
