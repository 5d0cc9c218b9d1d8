"""How much of what queues borrow could be taken back: found by asking the engine about the cluster
as it is now, of which nothing is kept.
"""

from __future__ import annotations

import time
from threading import Lock

from scheduler.domain.exposure import Reaches
from scheduler.engine import ask_about_exposure
from scheduler.models import ClusterState
from scheduler.selectors.sessions.trials import cluster_now
from scheduler.services.sessions.policies import policy_in_force

KEPT_SECONDS = 10.0
"""Open pages ask again with every session, and the answer takes a part of one."""


class LastAnswer:
    """One answer at a time: who asks while it is being found waits for it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._at = -KEPT_SECONDS
        self._answer: Reaches = {}

    def get(self) -> Reaches:
        with self._lock:
            if time.monotonic() - self._at >= KEPT_SECONDS:
                self._answer = _ask()
                self._at = time.monotonic()
            return self._answer

    def forget(self) -> None:
        self._at = -KEPT_SECONDS


last_answer = LastAnswer()


def exposure_now() -> Reaches:
    """It names every queue: whoever shows it leaves out what the reader may not see."""
    return last_answer.get()


def _ask() -> Reaches:
    policy = policy_in_force(ClusterState.objects.select_related("policy").get(pk=1))
    return ask_about_exposure(cluster_now(), policy)
