"""The podgroup and the pods of jobs, made for any number of jobs at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import F

from scheduler.admission.waiting_times import waiting_time
from scheduler.domain.jobs import dependency_of, first_to_begin
from scheduler.domain.resources import Resources
from scheduler.models import Job, Pod, PodGroup
from scheduler.models.prepared import PreparedInsert
from scheduler.services.pods import Priorities, class_values, classes_for, minimum_resources, new_pods, template_of

Task = Mapping[str, Any]

_NEW_PODGROUP = PreparedInsert(PodGroup)
_NEW_PODS = PreparedInsert(Pod)


def first_tasks(job: Job) -> list[Task]:
    """The gang."""
    first = first_to_begin(
        {task["name"]: task["replicas"] for task in job.tasks}, {task["name"]: dependency_of(task) for task in job.tasks}
    )
    return [task for task in job.tasks if task["name"] in first]


def create_podgroup(job: Job, priorities: Priorities) -> PodGroup:
    group = PodGroup(
        namespace=job.namespace,
        name=job.name,
        queue=job.queue,
        job=job,
        owner=job.owner,
        network_topology=job.extra.get("networkTopology") or {},
        **_follows_the_job(job, priorities),
    )
    _NEW_PODGROUP.insert([group])
    return group


def update_podgroup_of(job: Job) -> None:
    """After the job was changed."""
    PodGroup.objects.filter(job=job).update(**_follows_the_job(job, Priorities.load()), resource_version=F("resource_version") + 1)


def _follows_the_job(job: Job, priorities: Priorities) -> dict[str, Any]:
    """What of a podgroup is its job's, and changes with it. The gang is made of the tasks that begin at once: it could never be whole if it
    had to wait for those that wait for it."""
    gang = first_tasks(job)
    least = min(job.min_available, sum(task["replicas"] for task in gang))
    return {
        "min_member": least,
        "min_task_member": {task["name"]: task["minAvailable"] for task in gang},
        "min_resources": _minimum(gang, least),
        "priority_class": job.priority_class,
        "priority": priorities.of(job.priority_class).value,
        "labels": job.labels,
        "annotations": job.annotations,
        "sla_waiting_seconds": waiting_time(job.annotations),
    }


def _minimum(gang: Sequence[Task], least: int) -> Resources:
    rows = [(template_of(task["template"]).requests, task["minAvailable"], task["replicas"]) for task in gang]
    return minimum_resources(rows, least)


def create_pods(tasks: Iterable[tuple[Job, Sequence[Task]]], priorities: Priorities | None = None) -> int:
    """All pods of these tasks of these jobs, in a handful of statements; how many they are."""
    wanted = [(job, task, template_of(task["template"])) for job, chosen in tasks for task in chosen]
    if not wanted:
        return 0
    known = priorities or Priorities.load()
    classes = classes_for([_class_of(job, template, known) for job, _, template in wanted])
    pods: list[Pod] = []
    for (job, task, template), pod_class in zip(wanted, classes, strict=True):
        names = [f"{job.name}-{task['name']}-{index}" for index in range(task["replicas"])]
        pods += new_pods(job.podgroup, pod_class, template, task["name"], names, job.version)
    _NEW_PODS.insert(pods)
    return len(pods)


def _class_of(job: Job, template: Any, priorities: Priorities) -> Any:
    own_class = template.priority_class or job.priority_class
    return class_values(template, priorities.of(own_class), namespace=job.namespace, priority_class=own_class)
