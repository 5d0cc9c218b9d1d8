"""How long a gang must have waited before pods of other queues are evicted for it.

To wait costs the gang time, to evict costs others the work that they have done. Nobody knows how
long the wait will be. So a gang waits until that has cost it a part of what the eviction will cost
the others: most gangs have found room by then, and none waits much longer than it had to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows, Times
from scheduler.engine.arguments import number
from scheduler.engine.eviction.whole_gangs import Plan
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

WAIT_COUNTS: Final = 4.0
"""A second that a short gang has waited counts as so many seconds of its work."""


class Waits:
    """Configuration: `waitSeconds` at the least, and `waitPercent` of the time that the pods to be
    evicted have run. A gang that does less work than is lost waits `shortRunWaitSeconds` at most.
    """

    def __init__(self, session: Session, settings: Mapping[str, object]) -> None:
        self._session = session
        self._least: float = number(settings, "waitSeconds", 0)
        self._share = number(settings, "waitPercent", 0) / 100
        self._most_if_short = number(settings, "shortRunWaitSeconds", 0)
        self._since = _waiting_since(session)

    def are_too_short(self, gang: Gang) -> bool:
        """Whether nothing is evicted for the gang yet."""
        return self._waited(gang) < self._least

    def are_too_short_for(self, gang: Gang, plan: Plan) -> bool:
        """Whether these victims have run too long to be evicted for the gang yet."""
        return self.seconds_left(gang, plan) > 0

    def seconds_left(self, gang: Gang, plan: Plan) -> float:
        """How much longer the gang must wait for these victims, as they are now."""
        needed = self._least
        if self._share > 0:
            needed = max(needed, self._share * self._longest_run(plan))
        return needed - self._waited(gang)

    def worth_seconds(self, gang: Gang) -> float:
        """For how long the gang's work may be set against the work that an eviction loses.

        As long as it runs. What it has waited counts too, and more than work does, and at some
        time it has waited enough: else a queue of short jobs would never get room from long ones.
        """
        expected = float(self._session.snapshot.groups.expected_seconds[gang.row])
        if math.isnan(expected) or self.seconds_left_if_short(gang) <= 0:
            return math.inf
        return expected + self._waited(gang) * WAIT_COUNTS

    def seconds_left_if_short(self, gang: Gang) -> float:
        """How much longer the gang must wait at most because it does less work than is lost."""
        return self._most_if_short - self._waited(gang)

    def may_take_more(self, rows: Rows, others: Rows) -> Mask:
        """Which of these podgroups have waited longer than the other beside it, or run longer."""
        expected = self._session.snapshot.groups.expected_seconds
        is_known = ~np.isnan(expected[others])
        runs_longer = is_known & ~(expected[rows] <= expected[others])
        longer: Mask = (self._since[rows] < self._since[others]) | runs_longer
        return longer

    def _waited(self, gang: Gang) -> float:
        return self._session.snapshot.taken_at - float(self._since[gang.row])

    def _longest_run(self, plan: Plan) -> float:
        snapshot = self._session.snapshot
        pods = plan.pods
        ran = snapshot.taken_at - snapshot.pods.started[pods]
        return float(np.nan_to_num(ran, nan=0.0).max())


def _waiting_since(session: Session) -> Times:
    """By podgroup: since all of its pods that wait are there. Pods that were evicted come back as
    new ones. Clocks differ: what seems to come only later has come now, so no wait is negative.
    """
    pods = session.snapshot.pods
    since = session.snapshot.groups.created.copy()
    waiting = np.flatnonzero(pods.status == StatusCode.PENDING)
    np.maximum.at(since, pods.group[waiting], pods.created[waiting])
    return np.minimum(since, session.snapshot.taken_at)
