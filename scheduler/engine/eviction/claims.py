"""What a gang may claim: the resources of which its queue, with the whole gang in it, stays within its due, at every level."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.engine.session import Session
from scheduler.engine.future_places import Runs
from scheduler.engine.state.gang import Job


def missing_pods(session: Session, job: Job) -> list[int]:
    """The pods that its gang still needs a place for, in task order; none if it has its gang."""
    return session.unplaced_pods(job)[: max(0, job.min_member - job.ready - job.waiting)]


def missing_runs(session: Session, job: Job) -> Runs:
    """The same as runs of alike pods."""
    pods = missing_pods(session, job)
    kinds = session.kinds[pods].tolist() if pods else []
    return [(kind, len(list(run))) for kind, run in groupby(kinds)]


def missing_amounts(session: Session, job: Job) -> Amounts:
    """What those pods ask for together."""
    pods = missing_pods(session, job)
    amounts: Amounts = session.request[session.kinds[pods]].sum(axis=0)
    return amounts


def claimed(session: Session, job: Job, levels: list[int], *, guaranteed: bool = False) -> Mask:
    """The resources of which each of these queues stays within its due with the whole gang in it, or its guarantee; by column."""
    quotas = session.quotas
    wanted = missing_amounts(session, job)
    if quotas is None or not levels:
        return np.ones(len(wanted), dtype=np.bool_)
    due = quotas.guarantee[levels] if guaranteed else quotas.deserved[levels]
    within: Mask = np.all(session.book.allocated[levels] + wanted <= due, axis=0)
    return within


def is_within_due(session: Session, job: Job) -> bool:
    """Whether its queue stays within its due of all that the gang asks for."""
    if session.quotas is None:
        return False
    asked = (missing_amounts(session, job) > 0) & session.book.dims
    return bool(asked.any()) and bool(claimed(session, job, [job.queue])[asked].all())
