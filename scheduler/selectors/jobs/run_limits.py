"""How long jobs may run in each queue, and which of them have run for longer.

Restarts, and suspend and resume, give a job no more time. What it waits in between does not count,
and neither does the time in which all its pods were evicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import reduce
from operator import or_

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from scheduler.admission.facts import QueueLimits
from scheduler.admission.rules.backlogs import LongestRun
from scheduler.models import Job
from scheduler.models.bulk import fetch_as_planned

_LIMITED = """
WITH RECURSIVE limited AS (
  SELECT id, max_run_seconds AS seconds, name AS named_by FROM scheduler_queue
  WHERE deleted_at IS NULL AND max_run_seconds IS NOT NULL
  UNION
  SELECT below.id, limited.seconds, limited.named_by FROM scheduler_queue below
  JOIN limited ON below.parent_id = limited.id
  WHERE below.deleted_at IS NULL
)
SELECT id, seconds, named_by FROM limited ORDER BY seconds DESC, named_by
"""

RUN_TIME_EXCEEDED = "RunTimeExceeded"
"""In one word why such a job has ended."""

BEGUN = Coalesce("run_begun_at", "phase_since")
"""When a running job is taken to have begun. Rows of older versions know only the last run."""

RunLimits = Mapping[int, LongestRun]


def run_limits() -> dict[int, LongestRun]:
    """By queue id, the strictest that applies; queues without any are left out."""
    found = {}
    for queue, seconds, named_by in fetch_as_planned(_LIMITED, []):
        found[queue] = LongestRun(seconds, named_by)
    return found


def limit_on_the_way(path: Iterable[QueueLimits]) -> LongestRun | None:
    """As `run_limits` has it, from the limits of a queue and of those above it."""
    known = []
    for limits in path:
        if limits.max_run_seconds is not None:
            known.append((-limits.max_run_seconds, limits.queue))
    if not known:
        return None
    seconds, queue = max(known)
    return LongestRun(-seconds, queue)


def overrunning(limits: RunLimits, now: datetime) -> QuerySet[Job]:
    """Jobs that have run for longer than this allows."""
    by_seconds: dict[int, list[int]] = {}
    for queue, limit in limits.items():
        by_seconds.setdefault(limit.seconds, []).append(queue)
    if not by_seconds:
        return Job.objects.none()
    conditions = []
    for seconds, queues in by_seconds.items():
        begun = now - timedelta(seconds=seconds)
        conditions.append(Q(queue__in=queues, begun__lte=begun))
    running = Job.objects.filter(phase="Running", run_paused_at=None)
    return running.alias(begun=BEGUN).filter(reduce(or_, conditions))


def ends_at(job: Job, limit: LongestRun | None) -> datetime | None:
    """When a running job is ended at the latest; None where it runs as long as it likes."""
    if limit is None or job.phase != "Running" or job.phase_since is None:
        return None
    begun = job.run_begun_at or job.phase_since
    if job.run_paused_at is not None:
        begun += max(timezone.now() - job.run_paused_at, timedelta())
    return begun + timedelta(seconds=limit.seconds)
