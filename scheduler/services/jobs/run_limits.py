"""Ends jobs that have run for longer than their queue, or one above it, allows."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from scheduler.admission.rules.backlogs import LongestRun
from scheduler.admission.violations import Rejected
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.jobs.policies import JobAction
from scheduler.domain.jobs.running_time import Stage, run_begun
from scheduler.models import Job, Pod
from scheduler.selectors.cluster.nodes import OCCUPYING
from scheduler.selectors.jobs.run_limits import (
    RUN_TIME_EXCEEDED,
    RunLimits,
    overrunning,
    run_limits,
)
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.jobs.submit import command_job
from scheduler.services.records.events import EventNote, record_events

logger = logging.getLogger(__name__)

_AT_ONCE = 200
_AGAIN_AFTER = timedelta(seconds=60)
"""A command to a real cluster that had no effect is given again."""


def end_overrunning_jobs() -> int:
    """How many were told to end. The others have their turn at the next tick."""
    now = timezone.now()
    Job.objects.filter(phase="Running", overran_at__lt=F("phase_since")).update(overran_at=None)
    limits = run_limits()
    _stop_clocks(limits, now)
    not_told = Q(overran_at=None) | Q(overran_at__lte=now - _AGAIN_AFTER)
    found = overrunning(limits, now).filter(not_told).select_related("queue").order_by("pk")
    ended = 0
    for job in found[:_AT_ONCE]:
        ended += _end_job(job, limits[job.queue_id], now)
    return ended


def _stop_clocks(limits: RunLimits, now: datetime) -> None:
    """A job whose pods were all evicted does not run, though its phase says so until it ends."""
    if not limits:
        return
    limited = Job.objects.filter(phase="Running", queue__in=list(limits))
    on_nodes = Exists(Pod.objects.filter(podgroup__job=OuterRef("pk"), phase__in=OCCUPYING))
    limited.filter(~on_nodes, run_paused_at=None).update(run_paused_at=now)
    for job in limited.filter(on_nodes).exclude(run_paused_at=None):
        before = Stage(job.phase, job.phase_since, job.run_begun_at, job.run_paused_at)
        begun = run_begun(before, job.phase, now)
        Job.objects.filter(pk=job.pk).update(run_begun_at=begun, run_paused_at=None)


def _end_job(job: Job, limit: LongestRun, now: datetime) -> bool:
    """False where it ended by itself, or the cluster did not take the command."""
    message = overran_words(limit)
    with suppress(Job.DoesNotExist, NotPossible), transaction.atomic():
        try:
            command_job(
                job.namespace,
                job.name,
                JobAction.TERMINATE,
                by=SYSTEM,
                reason=message,
                because=message,
                waits=False,
            )
        except Rejected as refusal:
            logger.warning("job %s runs for too long and could not be ended: %s", job, refusal)
            return False
        Job.objects.filter(pk=job.pk).update(overran_at=now, overran=message)
        note = EventNote(
            "Job",
            job.name,
            RUN_TIME_EXCEEDED,
            f"{message[0].upper()}{message[1:]}.",
            job.namespace,
            job.queue.name,
            warning=True,
        )
        record_events([note], now)
        return True
    return False


def overran_words(limit: LongestRun) -> str:
    """To be read behind the phase, as the other messages of a job."""
    return f"it ran for longer than the {limit.seconds:,} s that {limit.queue} allows"
