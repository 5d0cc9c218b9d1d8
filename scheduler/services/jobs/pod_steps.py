"""Pods of large jobs, made a few at a time: sessions and other writers take their turns in between."""

from __future__ import annotations

import time

from django.db import IntegrityError, transaction
from django.utils import timezone

from scheduler import notify
from scheduler.models import Job, UnmadePods
from scheduler.services.jobs.lifecycle import NAMES_TAKEN, settle_jobs, take_steps
from scheduler.services.jobs.pod_creation import ask_for_a_worker, create_some
from scheduler.services.locks import alone_with_pods
from scheduler.services.sessions import lease
from scheduler.services.sessions.requests import want_session

MOST_SECONDS = 5.0
"""Then another worker is asked for: other work waits for this one too."""
_LEASE = "pods"
_LEASE_SECONDS = 30.0


def create_pods_in_steps() -> None:
    """Make what is to be made, for a while; only one process does so at a time."""
    if not has_unmade_pods():
        return
    held = lease.acquire(lease.name_of_this_process(), _LEASE_SECONDS, _LEASE)
    if held is None:
        return
    try:
        finished = _take_steps(held)
    finally:
        lease.release(held, _LEASE)
    if not finished:
        ask_for_a_worker()


def has_unmade_pods() -> bool:
    return UnmadePods.objects.exists()


def _take_steps(held: lease.Held) -> bool:
    """Whether everything was made."""
    until = time.monotonic() + MOST_SECONDS
    while rows := list(UnmadePods.objects.order_by("pk").values_list("pk", flat=True)[:100]):
        for row in rows:  # in turn: a huge job does not keep the next from beginning
            began = time.monotonic()
            create_next_pods(row)
            if time.monotonic() > until:
                return False
            lease.renew(held, _LEASE_SECONDS, _LEASE)
            time.sleep(time.monotonic() - began)  # half of the time belongs to the others
    return True


def create_next_pods(row: int) -> bool:
    """One step for the pods of one task. False where nothing was to be done."""
    with transaction.atomic():
        alone_with_pods()
        unmade = UnmadePods.objects.select_related("podgroup").filter(pk=row).first()
        if unmade is None:
            return False
        job = (
            Job.objects.select_for_update(of=("self",))
            .select_related("queue", "podgroup")
            .get(podgroup=unmade.podgroup_id)
        )
        _create_or_fail(job, unmade)
        notify.jobs_changed([str(job)], queues=[job.queue.name])
        want_session()
    return True


def _create_or_fail(job: Job, unmade: UnmadePods) -> None:
    """Its names were free when it was submitted.

    Where one was taken meanwhile, the job could never be whole.
    """
    try:
        with transaction.atomic():
            create_some(job, unmade)
    except IntegrityError:
        now = timezone.now()
        take_steps([(job, NAMES_TAKEN)], now)
        settle_jobs([job], now)
