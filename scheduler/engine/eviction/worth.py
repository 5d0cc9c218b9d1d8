"""Whether an eviction is worth it: what it loses, against what the gang gains by not waiting."""

from __future__ import annotations

import math
from collections.abc import Mapping

from scheduler.engine.arguments import number
from scheduler.engine.eviction.candidate_gangs import cluster_parts
from scheduler.engine.eviction.whole_gangs import Plan
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


class Worth:
    """Configuration: `gainPercent`, what the gang must gain, in percent of what is lost."""

    def __init__(self, session: Session, settings: Mapping[str, object]) -> None:
        self._session = session
        self._factor = number(settings, "gainPercent", 100) / 100

    def is_too_little(self, gang: Gang, plan: Plan, most_seconds: float = math.inf) -> bool:
        """Whether too much work is lost for what the gang would do until its victims end by
        themselves, or in so many seconds.
        """
        session = self._session
        pods = session.tasks.missing_pods(gang)
        parts = cluster_parts(session, session.request[session.pod_classes[pods]])
        gained = float(parts.sum()) * min(self.seconds_saved(plan), most_seconds)
        lost = sum(victim.cost for victim in plan.victims)
        return lost * self._factor > gained

    def seconds_saved(self, plan: Plan) -> float:
        """Until all of the victims have ended; for ever if nobody knows when one of them ends."""
        snapshot = self._session.snapshot
        pods = plan.pods
        expected = snapshot.groups.expected_seconds[snapshot.pods.group[pods]]
        left = snapshot.pods.started[pods] + expected - snapshot.taken_at
        is_known = left > 0
        if not is_known.all():
            return math.inf
        return float(left.max())
