"""Why a job that waits does not take room from other queues: found by asking the engine about the
cluster as it is now, of which nothing is kept.
"""

from __future__ import annotations

import time
from threading import Lock
from uuid import UUID

from scheduler.domain.no_reclaim import ReclaimAnswer
from scheduler.domain.reasons import reason_entry
from scheduler.engine import ask_about_reclaim
from scheduler.models import ClusterState, PodGroup
from scheduler.selectors.jobs.listing import WAITING
from scheduler.selectors.sessions.trials import cluster_now
from scheduler.services.sessions.policies import policy_in_force

KEPT_SECONDS = 10.0
"""An open page asks again with every session, and the answer takes half of one."""
_MOST_KEPT = 200


class Answers:
    """The last answers, by the podgroup's uid."""

    def __init__(self) -> None:
        self._kept: dict[UUID, tuple[float, ReclaimAnswer | None]] = {}
        self._lock = Lock()

    def of(self, gang: PodGroup) -> ReclaimAnswer | None:
        now = time.monotonic()
        with self._lock:
            at, answer = self._kept.get(gang.uid, (-KEPT_SECONDS, None))
        if now - at < KEPT_SECONDS:
            return answer
        answer = _ask(gang)
        with self._lock:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[gang.uid] = (now, answer)
        return answer

    def forget(self) -> None:
        with self._lock:
            self._kept.clear()


answers = Answers()


def why_no_reclaim(gang: PodGroup) -> ReclaimAnswer | None:
    """None for a job that does not wait, or that something else than room holds back.

    The answer can name queues that the caller does not see: whoever shows it asks first.
    """
    if gang.phase not in WAITING or not gang.reason_code:
        return None
    if not reason_entry(gang.reason_code).is_about_room:
        return None
    return answers.of(gang)


def _ask(gang: PodGroup) -> ReclaimAnswer | None:
    policy = policy_in_force(ClusterState.objects.select_related("policy").get(pk=1))
    return ask_about_reclaim(cluster_now(), policy, f"{gang.namespace}/{gang.name}")
