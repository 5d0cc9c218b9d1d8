"""Stopping the pods of jobs: few of them at once, many in steps (pod_steps.py).

A podgroup is `stopping` while there are steps to take. If its job is to live on, only the pods
beyond its replicas are stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from scheduler.domain.jobs.facts import JobStep
from scheduler.domain.jobs.phases import JobPhase
from scheduler.models import Job, Pod, PodGroup, UnmadePods
from scheduler.selectors.cluster.nodes import PLACED
from scheduler.services.jobs import pod_creation
from scheduler.services.jobs.pod_creation import ask_for_a_worker
from scheduler.services.jobs.pods import send_home, take_away

StopStep = tuple[Job, JobStep]

_ENDED = ("Succeeded", "Failed")
_LIVES_ON = (JobPhase.PENDING, JobPhase.RUNNING)
_LEAVES_NO_PODS = (JobPhase.ABORTING, JobPhase.RESTARTING)
"""Phases after which a job has no pods at all, so that the ended ones are removed too."""


def stop_pods_of(steps: Sequence[StopStep], now: datetime) -> None:
    """Stop all pods of these jobs, at once or in steps. None is made any more."""
    if not steps:
        return
    UnmadePods.objects.filter(podgroup__job__in=[job.pk for job, _ in steps]).delete()
    small: list[StopStep] = []
    large: list[Job] = []
    total = 0
    for job, step in steps:
        total += _pods_to_stop(job, step)
        if total <= pod_creation.AT_ONCE:
            small.append((job, step))
        else:
            large.append(job)
    _stop_at_once(small, now)
    stop_in_steps(large)


def is_stopped_in_steps(job: Job, step: JobStep) -> bool:
    return _pods_to_stop(job, step) > pod_creation.AT_ONCE


def _pods_to_stop(job: Job, step: JobStep) -> int:
    """At least as many as there are. They are only counted where they may be many."""
    replicas: int = sum(task["replicas"] for task in job.tasks)
    if replicas <= pod_creation.AT_ONCE and not job.podgroup.stopping:
        return replicas
    return _pods_to_remove(job, step.phase).count() + _placed_pods(job).count()


def _stop_at_once(steps: Sequence[StopStep], now: datetime) -> None:
    for message in sorted({step.message for _, step in steps}):
        jobs = []
        for job, step in steps:
            if step.message == message:
                jobs.append(job.pk)
        send_home(Pod.objects.filter(podgroup__job__in=jobs), message, now)


def stop_in_steps(jobs: Sequence[Job]) -> None:
    if not jobs:
        return
    PodGroup.objects.filter(job__in=[job.pk for job in jobs]).update(stopping=True)
    for job in jobs:
        job.podgroup.stopping = True
    transaction.on_commit(ask_for_a_worker, robust=True)


def stop_some(job: Job, now: datetime) -> bool:
    """The next pods of a job that is being stopped, as many as may be stopped at once.

    Those on nodes go first: others wait for their room. False when there are none left.
    """
    if JobPhase(job.phase) in _LIVES_ON:
        return _take_some_away(job)
    chosen = _first(_placed_pods(job)) or _first(_pods_to_remove(job, JobPhase(job.phase)))
    if not chosen:
        return False
    pods = Pod.objects.filter(pk__in=chosen)
    send_home(pods, job.message, now)
    pods.filter(phase__in=_ENDED).delete()
    return True


def _take_some_away(job: Job) -> bool:
    """The same for a job that was made smaller."""
    surplus = Q()
    for task in job.tasks:
        surplus |= Q(task=task["name"], index__gte=task["replicas"])
    pods = Pod.objects.filter(surplus, podgroup__job=job, unwanted=False)
    chosen = _first(pods.filter(phase__in=PLACED)) or _first(pods)
    take_away(Pod.objects.filter(pk__in=chosen))
    return bool(chosen)


def _first(pods: QuerySet[Pod]) -> list[int]:
    return list(pods.order_by("pk").values_list("pk", flat=True)[: pod_creation.AT_ONCE])


def _placed_pods(job: Job) -> QuerySet[Pod]:
    return Pod.objects.filter(podgroup__job=job, phase__in=PLACED)


def _pods_to_remove(job: Job, phase: JobPhase) -> QuerySet[Pod]:
    """Those that wait; and those that ended, where the job is to have no pods."""
    phases = ["Pending"]
    if phase in _LEAVES_NO_PODS:
        phases += _ENDED
    return Pod.objects.filter(podgroup__job=job, phase__in=phases)
