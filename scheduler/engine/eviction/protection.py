"""Pods that have just started are left in peace, and longer each time that their gang has been
evicted before.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows, Times
from scheduler.engine.session import Session

GROWTH: Final = 4.0
"""Each eviction of a gang makes the time it is left in peace so many times as long."""
MOST_GROWTH: Final = 5
"""After so many evictions it grows no further."""


class Protection:
    """`seconds` is the policy's minimum running time.

    A queue may name its own, which holds for all below it that name none. Pods that are expected to
    end within `patience` seconds are left to end, and so are those that are late by less than that.
    """

    def __init__(self, session: Session, seconds: float, patience: float = 0) -> None:
        self._session = session
        self._patience = patience
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
        started = self._started(pods)
        until: Times = np.maximum(
            self._minimum_run_over(pods, started), self._expected_end(pods, started)
        )
        return np.where(np.isnan(started), -np.inf, until)

    def _minimum_run_over(self, pods: Rows, started: Times) -> Times:
        session = self._session
        group = session.snapshot.pods.group[pods]
        evictions = np.minimum(session.snapshot.groups.evictions[group], MOST_GROWTH)
        seconds = self._by_queue[session.snapshot.groups.queue[group]] * GROWTH**evictions
        over: Times = started + seconds
        return over

    def _expected_end(self, pods: Rows, started: Times) -> Times:
        """When pods end that are expected to end soon; the beginning of time for others.

        Run times are declared roughly: who is late may end at any moment, and is given as much
        time again.
        """
        snapshot = self._session.snapshot
        ends = started + snapshot.groups.expected_seconds[snapshot.pods.group[pods]]
        is_soon = ends <= snapshot.taken_at + self._patience
        is_late = ends <= snapshot.taken_at
        return np.where(is_soon, ends + self._patience * is_late, -np.inf)

    def _started(self, pods: Rows) -> Times:
        """When they got their place. Where nobody noted that, a pod that does not run yet counts
        from when it was created: one that was evicted and is back is not evicted again at once.
        """
        table = self._session.snapshot.pods
        is_starting = (table.status[pods] != StatusCode.RUNNING) & np.isnan(table.started[pods])
        started: Times = np.where(is_starting, table.created[pods], table.started[pods])
        return started
