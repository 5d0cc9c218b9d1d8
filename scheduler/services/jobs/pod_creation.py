"""The podgroup and the pods of jobs, made for any number of jobs at once: a few pods at once, many
in steps.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from celery import current_app
from django.db import transaction
from django.db.models import F
from kombu.exceptions import OperationalError

from scheduler.admission.reading.waiting_times import waiting_time
from scheduler.domain.jobs.dependencies import dependency_of, first_to_begin
from scheduler.domain.resources import Resources
from scheduler.models import Job, Pod, PodClass, PodGroup, UnmadePods
from scheduler.services.jobs.pods import (
    Priorities,
    class_values,
    classes_for,
    insert_pods,
    longest_run,
    minimum_resources,
    new_pods,
    template_of,
)

logger = logging.getLogger(__name__)

Task = Mapping[str, Any]

AT_ONCE = 1000
"""Pods that are made in one transaction. Whoever else writes waits for no more than that."""


def first_tasks(job: Job) -> list[Task]:
    """The gang."""
    first = first_to_begin(
        {task["name"]: task["replicas"] for task in job.tasks},
        {task["name"]: dependency_of(task) for task in job.tasks},
    )
    tasks: list[Task] = []
    for task in job.tasks:
        if task["name"] in first:
            tasks.append(task)
    return tasks


def podgroup_of(job: Job, priorities: Priorities) -> PodGroup:
    """The gang of this job, not yet saved."""
    return PodGroup(
        namespace=job.namespace,
        name=job.name,
        queue=job.queue,
        job=job,
        owner=job.owner,
        network_topology=job.extra.get("networkTopology") or {},
        **_follows_the_job(job, priorities),
    )


def update_podgroup_of(job: Job) -> None:
    """After the job was changed."""
    PodGroup.objects.filter(job=job).update(
        **_follows_the_job(job, Priorities.load()), resource_version=F("resource_version") + 1
    )


def follow_job(group: PodGroup, job: Job) -> None:
    """The same in memory."""
    for column, value in _follows_the_job(job, Priorities.load()).items():
        setattr(group, column, value)


def _follows_the_job(job: Job, priorities: Priorities) -> dict[str, Any]:
    """What of a podgroup is its job's, and changes with it.

    The gang is made of the tasks that begin at once: it could never be whole if it had to wait for
    those that wait for it.
    """
    gang = first_tasks(job)
    least = min(job.min_available, sum(task["replicas"] for task in gang))
    min_task_member = {}
    for task in gang:
        min_task_member[task["name"]] = task["minAvailable"]
    return {
        "min_member": least,
        "size": sum(task["replicas"] for task in job.tasks),
        "min_task_member": min_task_member,
        "min_resources": _minimum_resources(gang, least),
        "priority_class": job.priority_class,
        "priority": priorities.of(job.priority_class).value,
        "labels": job.labels,
        "annotations": job.annotations,
        "sla_waiting_seconds": waiting_time(job.annotations),
        "expected_seconds": longest_run(
            template_of(task["template"]).run_seconds for task in job.tasks
        ),
    }


def _minimum_resources(gang: Sequence[Task], least: int) -> Resources:
    rows = []
    for task in gang:
        rows.append(
            (template_of(task["template"]).requests, task["minAvailable"], task["replicas"])
        )
    return minimum_resources(rows, least)


def create_pods(
    tasks: Iterable[tuple[Job, Sequence[Task]]], priorities: Priorities | None = None
) -> int:
    """All pods of these tasks of these jobs; how many they are.

    Those of a job that has many are made in steps (`pod_steps`).
    """
    now: list[tuple[Job, Task]] = []
    later: list[tuple[Job, Task]] = []
    total = 0
    for job, chosen in tasks:
        pods = sum(task["replicas"] for task in chosen)
        total += pods
        (now if total <= AT_ONCE else later).extend((job, task) for task in chosen)
    _create_at_once(now, priorities)
    unmade = []
    for job, task in later:
        replicas = task["replicas"]
        unmade.append(UnmadePods(podgroup=job.podgroup, task=task["name"], end_index=replicas))
    note_unmade(unmade)
    return total


def _create_at_once(wanted: Sequence[tuple[Job, Task]], priorities: Priorities | None) -> None:
    if wanted:
        each = []
        for _, task in wanted:
            each.append(range(task["replicas"]))
        insert_pods(pods_of(wanted, each, priorities or Priorities.load()))


def pods_of(
    wanted: Sequence[tuple[Job, Task]],
    indexes: Sequence[Iterable[int]],
    priorities: Priorities,
) -> list[Pod]:
    """For each of these tasks its pods with these numbers, not yet saved.

    Classes that were not there are made.
    """
    classes = classes_for([class_of(job, task, priorities) for job, task in wanted])
    pods: list[Pod] = []
    for (job, task), chosen, pod_class in zip(wanted, indexes, classes, strict=True):
        template = template_of(task["template"])
        names = {index: f"{job.name}-{task['name']}-{index}" for index in chosen}
        pods += new_pods(job.podgroup, pod_class, template, task["name"], names, job.version)
    return pods


def class_of(job: Job, task: Task, priorities: Priorities) -> PodClass:
    """Of the pods of this task; not yet stored."""
    template = template_of(task["template"])
    own_class = template.priority_class or job.priority_class
    return class_values(
        template,
        priorities.of(own_class),
        namespace=job.namespace,
        priority_class=own_class,
    )


def create_some(job: Job, unmade: UnmadePods) -> None:
    """The next of these pods, as many as may be made at once.

    Those that are just leaving are there already, and passed over.
    """
    chosen = range(unmade.next_index, min(unmade.end_index, unmade.next_index + AT_ONCE))
    there = Pod.objects.filter(
        podgroup=unmade.podgroup_id,
        task=unmade.task,
        index__gte=chosen.start,
        index__lt=chosen.stop,
    )
    missing = set(chosen) - set(there.values_list("index", flat=True))
    task = next(task for task in job.tasks if task["name"] == unmade.task)
    insert_pods(pods_of([(job, task)], [sorted(missing)], Priorities.load()))
    if chosen.stop == unmade.end_index:
        unmade.delete()
    else:
        UnmadePods.objects.filter(pk=unmade.pk).update(next_index=chosen.stop)


def note_unmade(rows: Sequence[UnmadePods]) -> None:
    """Have these pods made by and by."""
    wanted = [row for row in rows if row.end_index > row.next_index]
    if wanted:
        UnmadePods.objects.bulk_create(wanted)
        transaction.on_commit(ask_for_a_worker, robust=True)


def ask_for_a_worker() -> None:
    """Ask for a worker that takes the steps.

    A broker that is away is no reason to fail: the next tick finds what is to be done.
    """
    try:  # by its name: tasks stand above services
        current_app.send_task("scheduler.tasks.take_pod_steps", expires=30, retry=False)
    except OperationalError as problem:
        logger.warning(
            "could not ask for a worker for the pods of large jobs, the next tick will do: %s",
            problem,
        )
