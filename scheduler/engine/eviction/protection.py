"""Pods that have just started are left in peace, and longer each time that their gang has been
evicted before.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows, Times
from scheduler.domain.workloads import PodStatus
from scheduler.engine.session import Session

GROWTH: Final = 2.0
"""Each eviction of a gang makes the time it is left in peace so many times as long."""
MOST_GROWTH: Final = 10
"""After so many evictions it grows no further."""


class Protection:
    """`seconds` is the policy's minimum running time.

    A queue may name its own, which holds for all below it that name none.
    """

    def __init__(self, session: Session, seconds: float) -> None:
        self._session = session
        named = session.specs.min_run_seconds
        self._by_queue: Times = np.where(np.isnan(named), seconds, named)

    def of(self, pods: Rows) -> Mask:
        """Which of these pods are left in peace."""
        until = self.until(pods)
        protected: Mask = until > self._session.snapshot.taken_at
        return protected

    def of_nobody(self, pods: Rows) -> Mask:
        return np.zeros(len(pods), dtype=np.bool_)

    def until(self, pods: Rows) -> Times:
        """Up to when; the beginning of time for pods of which nobody knows when they started."""
        session = self._session
        started = self._started(pods)
        group = session.snapshot.pods.group[pods]
        evictions = np.minimum(session.snapshot.groups.evictions[group], MOST_GROWTH)
        seconds = self._by_queue[session.snapshot.groups.queue[group]] * GROWTH**evictions
        until: Times = np.where(np.isnan(started), -np.inf, started + seconds)
        return until

    def _started(self, pods: Rows) -> Times:
        """When they began to run. A pod that has a place and does not run yet counts from when it
        was created: one that has just been evicted and is back is not evicted again at once.
        """
        session = self._session
        table = session.snapshot.pods
        is_starting = table.status[pods] != PodStatus.RUNNING
        started: Times = np.where(is_starting, table.created[pods], table.started[pods])
        return started
