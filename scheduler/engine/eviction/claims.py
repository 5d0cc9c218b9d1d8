"""What a gang may claim: the resources of which its queue, with the whole gang in it, stays within
its due, at every level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.resources import COMMON

if TYPE_CHECKING:
    from scheduler.engine.future_places import Runs
    from scheduler.engine.session import Session
    from scheduler.engine.state.gang import Gang


def missing_runs(session: Session, gang: Gang) -> Runs:
    """The pods that the gang still needs a place for, as runs of alike pods."""
    return session.tasks.missing_runs(gang)


def missing_amounts(session: Session, gang: Gang) -> Amounts:
    """What those pods ask for together."""
    amounts: Amounts = np.zeros(session.request.shape[1], dtype=np.int64)
    for pod_class, count in missing_runs(session, gang):
        amounts += session.request[pod_class] * count
    return amounts


def claimed(session: Session, wanted: Amounts, levels: list[int]) -> Mask:
    """The resources of which each of these queues stays within its due with this in it; by
    column.
    """
    quotas = session.quotas
    if quotas is None or not levels:
        return np.ones(len(wanted), dtype=np.bool_)
    allocated = session.queue_usage.allocated[levels]
    within: Mask = np.all(allocated + wanted <= quotas.deserved[levels], axis=0)
    return within


def is_within_due(session: Session, gang: Gang) -> bool:
    """Whether its queue stays within its due of all that the gang asks for.

    Asked for each gang that fails: the few resources of one queue are looked at one by one.
    """
    quotas = session.quotas
    if quotas is None:
        return False
    wanted: dict[int, int] = {}
    for pod_class, count in missing_runs(session, gang):
        for dim, amount in session.asked(pod_class):
            wanted[dim] = wanted.get(dim, 0) + amount * count
    allocated = session.queue_usage.allocated[gang.queue].tolist()
    deserved = quotas.deserved_rows[gang.queue]
    is_within = all(allocated[dim] + amount <= deserved[dim] for dim, amount in wanted.items())
    return bool(wanted) and is_within


def is_within_guarantee(session: Session, gang: Gang) -> bool:
    """Whether its queue stays within its guarantee, of what it is guaranteed, with the whole gang.

    A gang that asks for devices must be guaranteed them.
    """
    quotas = session.quotas
    if quotas is None:
        return False
    left = quotas.guarantee[gang.queue] - session.queue_usage.allocated[gang.queue]
    if not (left > 0).any():
        return False
    wanted = missing_amounts(session, gang)
    named = quotas.guarantee[gang.queue] > 0
    is_device = np.array([name not in COMMON for name in session.snapshot.resources])
    if (wanted[is_device & ~named] > 0).any():
        return False
    covered = named & (wanted > 0) & session.queue_usage.dims
    return bool(covered.any()) and bool((wanted <= left)[covered].all())
