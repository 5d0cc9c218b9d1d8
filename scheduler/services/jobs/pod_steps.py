"""Pods of large jobs, made and stopped a few at a time.

Sessions and other writers take their turns in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from scheduler import notify
from scheduler.models import Job, PodGroup, UnmadePods
from scheduler.services.jobs.lifecycle import NAMES_TAKEN, announce, settle_jobs, take_steps
from scheduler.services.jobs.pod_creation import ask_for_a_worker, create_some
from scheduler.services.jobs.pod_stopping import stop_some
from scheduler.services.locks import alone_with_pods
from scheduler.services.sessions import lease
from scheduler.services.sessions.requests import want_session

MOST_SECONDS = 5.0
"""Then another worker is asked for: other work waits for this one too."""
_LEASE = "pods"
_LEASE_SECONDS = 30.0
_MOST_JOBS = 100

PodStep = Callable[[], float]
"""Takes one step; how many seconds it kept other writers waiting."""


def take_pod_steps() -> None:
    """Make and stop pods, for a while; only one process does so at a time."""
    if not has_pod_steps():
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


def has_pod_steps() -> bool:
    return UnmadePods.objects.exists() or PodGroup.objects.filter(stopping=True).exists()


def _take_steps(held: lease.Held) -> bool:
    """Whether everything was done."""
    until = time.monotonic() + MOST_SECONDS
    while steps := _next_steps():
        for step in steps:  # in turn: a huge job does not keep the next from beginning
            seconds = step()
            if time.monotonic() > until:
                return False
            lease.renew(held, _LEASE_SECONDS, _LEASE)
            time.sleep(seconds)  # half of the time belongs to the others
    return True


def _next_steps() -> list[PodStep]:
    """One for each job. Stopping comes first: it makes room."""
    stopping = PodGroup.objects.filter(stopping=True).order_by("pk")
    unmade = UnmadePods.objects.order_by("pk")
    return [
        *(partial(stop_next_pods, pk) for pk in _first_numbers(stopping)),
        *(partial(create_next_pods, pk) for pk in _first_numbers(unmade)),
    ]


def _first_numbers(rows: Any) -> list[int]:
    return list(rows.values_list("pk", flat=True)[:_MOST_JOBS])


def create_next_pods(row: int) -> float:
    """One step for the pods of one task."""
    with transaction.atomic():
        alone_with_pods()
        began = time.monotonic()
        unmade = UnmadePods.objects.select_related("podgroup").filter(pk=row).first()
        if unmade is None:
            return 0.0
        job = _locked_job(unmade.podgroup_id)
        _create_or_fail(job, unmade)
        notify.jobs_changed([str(job)], queues=[job.queue.name])
        want_session()
    return time.monotonic() - began


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


def stop_next_pods(podgroup: int) -> float:
    """One step for the pods of one job; after the last the job goes where stopping takes it."""
    with transaction.atomic():
        alone_with_pods()
        began = time.monotonic()
        if not PodGroup.objects.filter(pk=podgroup, stopping=True).exists():
            return 0.0
        job = _locked_job(podgroup)
        now = timezone.now()
        if stop_some(job, now):
            notify.jobs_changed([str(job)], queues=[job.queue.name])
        else:
            _end_stopping(job, now)
    return time.monotonic() - began


def _end_stopping(job: Job, now: datetime) -> None:
    PodGroup.objects.filter(pk=job.podgroup.pk).update(stopping=False)
    job.podgroup.stopping = False
    settle_jobs([job], now)
    announce([job])


def _locked_job(podgroup: int) -> Job:
    locked = Job.objects.select_for_update(of=("self",))
    return locked.select_related("queue", "podgroup").get(podgroup=podgroup)
