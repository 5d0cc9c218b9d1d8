"""What a gang may claim: the resources of which its queue, with the whole gang in it, stays within
its due, at every level.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.engine.future_places import Runs
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


def missing_runs(session: Session, gang: Gang) -> Runs:
    """The pods that the gang still needs a place for, as runs of alike pods."""
    pods = session.tasks.missing_pods(gang)
    pod_classes = session.pod_classes[pods].tolist() if pods else []
    return [(pod_class, len(list(run))) for pod_class, run in groupby(pod_classes)]


def missing_amounts(session: Session, gang: Gang) -> Amounts:
    """What those pods ask for together."""
    pods = session.tasks.missing_pods(gang)
    amounts: Amounts = session.request[session.pod_classes[pods]].sum(axis=0)
    return amounts


def claimed(session: Session, gang: Gang, levels: list[int], *, guaranteed: bool = False) -> Mask:
    """The resources of which each of these queues stays within its due with the whole gang in it,
    or its guarantee; by column.
    """
    quotas = session.quotas
    wanted = missing_amounts(session, gang)
    if quotas is None or not levels:
        return np.ones(len(wanted), dtype=np.bool_)
    due = quotas.guarantee[levels] if guaranteed else quotas.deserved[levels]
    within: Mask = np.all(session.queue_usage.allocated[levels] + wanted <= due, axis=0)
    return within


def is_within_due(session: Session, gang: Gang) -> bool:
    """Whether its queue stays within its due of all that the gang asks for."""
    if session.quotas is None:
        return False
    asked = (missing_amounts(session, gang) > 0) & session.queue_usage.dims
    return bool(asked.any()) and bool(claimed(session, gang, [gang.queue])[asked].all())
