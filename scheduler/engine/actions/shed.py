"""Shed: a job that ran, lost its gang and can not get it back gives up the rest, which it only wastes."""

from __future__ import annotations

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.tables import IS_ALLOCATED
from scheduler.domain.workloads import Phase
from scheduler.engine.arguments import number
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Job

REASON = "StarvingInOverusedQueue"


def shed(session: Session) -> None:
    """Lowest priority first, as long as the queue is overused. What reclaim broke in this session goes at once, others after a grace."""
    grace = number(session.policy.configurations.get("shed", {}), "graceSessions", 3)
    starving = sorted(_starving(session), key=lambda job: (not job.broken, job.priority, job.key))
    seen = set()
    for job in starving:
        if job.broken:
            _give_up(session, job)
        elif _is_stuck(session, job):
            since = _since(session, job)
            seen.add(job.row)
            session.starving[job.row] = since
            if session.snapshot.session - since >= grace:
                _give_up(session, job)
    _forget_others(session, seen)


def _starving(session: Session) -> list[Job]:
    """Jobs that did run, are short of their gang, and still hold something, in queues that schedule."""
    groups, counts = session.snapshot.groups, session.snapshot.aggregates.group_counts
    ran = (
        np.isin(groups.phase, (Phase.RUNNING, Phase.UNKNOWN))
        & groups.alive
        & session.scheduling_queue[groups.queue]
    )
    short = (session.ready_counts < groups.min_member) & (counts[:, IS_ALLOCATED].sum(axis=1) > 0)
    rows = {
        *np.flatnonzero(ran & short).tolist(),
        *(operation.job.row for operation in session.evictions),
    }
    jobs = (session.job(row) for row in sorted(rows) if ran[row])
    return [
        job
        for job in jobs
        if job.ready + job.waiting < job.min_member and len(_held_pods(session, job))
    ]


def _held_pods(session: Session, job: Job) -> list[int]:
    return [pod for pod in session.pods_of(job.row).tolist() if IS_ALLOCATED[session.status[pod]]]


def _is_stuck(session: Session, job: Job) -> bool:
    """Its queue has all that it deserves of what the job asks for, and what the job misses is beyond that and fits on no node."""
    quotas = session.quotas
    if quotas is None:
        return False
    missing, kinds = _missing(session, job)
    allocated, deserved = session.book.allocated[job.queue], quotas.deserved[job.queue]
    asked = (missing > 0) & session.book.dims
    overused = bool((deserved <= allocated)[asked].all())
    beyond = bool((allocated + missing > deserved)[asked].any())
    may_borrow = session.may_borrow(job.queue)
    return (
        overused
        and beyond
        and not (may_borrow and any(session.room_for(kind) >= 0 for kind in kinds))
    )


def _missing(session: Session, job: Job) -> tuple[Amounts, set[int]]:
    """The request of the pods that its gang still needs; pods not made again yet are taken to be like those it has."""
    needed = job.min_member - job.ready - job.waiting
    pods = session.unplaced_pods(job)[:needed]
    kinds = [int(session.kinds[pod]) for pod in pods]
    kinds += [int(session.kinds[_held_pods(session, job)[0]])] * (needed - len(pods))
    total: Amounts = session.request[kinds].sum(axis=0)
    return total, set(kinds)


def _since(session: Session, job: Job) -> int:
    since = int(session.snapshot.groups.starving_since[job.row])
    return since if since >= 0 else session.snapshot.session


def _give_up(session: Session, job: Job) -> None:
    with session.statement() as statement:
        for pod in sorted(_held_pods(session, job), key=session.pod_key, reverse=True):
            statement.evict(job, pod, "shed", None)
        statement.commit()
    job.phase = Phase.PENDING
    session.shed_jobs.add(job.row)
    session.starving[job.row] = -1


def _forget_others(session: Session, seen: set[int]) -> None:
    """Whoever was noted as starving and no longer is starts anew next time."""
    noted = session.snapshot.groups.starving_since >= 0
    for row in np.flatnonzero(noted & session.snapshot.groups.alive).tolist():
        if row not in seen:
            session.starving[row] = -1
