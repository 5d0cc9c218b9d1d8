"""Whether an eviction is worth it: what it loses, against what the gang gains by not waiting."""

from __future__ import annotations

import math

import numpy as np

from scheduler.engine.eviction.candidate_gangs import cluster_parts
from scheduler.engine.eviction.whole_gangs import Plan
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


def loses_too_much(
    session: Session, gang: Gang, plan: Plan, most_seconds: float = math.inf
) -> bool:
    """Whether more work is lost than the gang would do until its victims end by themselves, or in
    so many seconds.
    """
    pods = session.tasks.missing_pods(gang)
    parts = cluster_parts(session, session.request[session.pod_classes[pods]])
    gained = float(parts.sum()) * min(seconds_until_all_end(session, plan), most_seconds)
    return sum(victim.cost for victim in plan.victims) > gained


def seconds_until_all_end(session: Session, plan: Plan) -> float:
    """For ever if nobody knows when one of the victims ends."""
    snapshot = session.snapshot
    pods = np.concatenate([victim.pods for victim in plan.victims])
    expected = snapshot.groups.expected_seconds[snapshot.pods.group[pods]]
    left = snapshot.pods.started[pods] + expected - snapshot.taken_at
    is_known = left > 0
    if not is_known.all():
        return math.inf
    return float(left.max())
