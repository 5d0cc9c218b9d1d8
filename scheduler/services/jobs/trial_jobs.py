"""A job that is not submitted, put into a copy of the cluster as submitting would make it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from scheduler.admission.reading.pod import PodTemplate
from scheduler.admission.reading.workload import JobManifest, TaskManifest
from scheduler.admission.violations import Violation
from scheduler.domain.pod_rules import affinity_of, spread_of, watched_keys
from scheduler.domain.queues import DEFAULT
from scheduler.domain.resources import NOTHING, Resources
from scheduler.domain.snapshot import Snapshot, all_selectors, labelled_class
from scheduler.domain.tables import NO_NODE
from scheduler.domain.workloads import Constraint, PodClass, PodGroup, PodStatus
from scheduler.models import Job
from scheduler.selectors.sessions.snapshot_rows import constraint_of
from scheduler.services.jobs.pods import (
    CRITICAL_CLASSES,
    PREEMPTABLE,
    SYSTEM_NAMESPACES,
    Priorities,
    longest_run,
    minimum_resources,
)

MOST_PODS = 10_000
"""A larger gang is not tried out."""


def name_taken(job: JobManifest) -> list[Violation]:
    namespace = job.metadata.namespace or DEFAULT
    if (
        not job.metadata.name
        or not Job.objects.filter(namespace=namespace, name=job.metadata.name).exists()
    ):
        return []
    message = f"There is a job {namespace}/{job.metadata.name} already."
    return [Violation("already_exists", job.queue, "metadata.name", message, "choose another name")]


def strange_resource(job: JobManifest, snapshot: Snapshot) -> str:
    """What it asks for although the cluster has nothing of it; "" if there is none."""
    strange = sorted(name for name in total_request(job) if name not in snapshot.resources)
    return next(iter(strange), "")


def label_keys(jobs: Iterable[JobManifest]) -> frozenset[str] | None:
    """The labels that rules of their pods look at; None if they have no rules."""
    constraints = []
    for job in jobs:
        constraints += [_constraint(task.template) for task in job.tasks]
    return watched_keys(all_selectors(constraints, ()))


def _constraint(template: PodTemplate) -> Constraint:
    return constraint_of(
        template.node_selector,
        affinity_of(template.affinity, template.labels),
        template.tolerations,
        spread_of(template.spread, template.labels),
        template.unsupported,
    )


def total_request(job: JobManifest) -> Resources:
    whole = NOTHING
    for task in job.tasks:
        whole = whole + task.template.requests * task.replicas
    return whole


def put_in(job: JobManifest, snapshot: Snapshot, priorities: Priorities | None = None) -> str:
    """The gang and its pods, as submitting would make them.

    Tasks that wait for others are left out, as they would be.
    """
    if priorities is None:
        priorities = Priorities.load()
    group = replace(
        gang_of(job),
        priority=priorities.of(job.priority_class).value,
        created=snapshot.taken_at,
    )
    namespace = group.namespace
    name = group.name
    row = int(snapshot.add_groups([group])[0])
    for task in job.tasks:
        if task.replicas and not task.depends_on:
            pod_class = _class_number(task, job, priorities, snapshot)
            keys = [f"{namespace}/{name}-{task.name}-{index}" for index in range(task.replicas)]
            count = len(keys)
            snapshot.add_pods(
                key=keys,
                group=[row] * count,
                pod_class=[pod_class] * count,
                status=[PodStatus.PENDING] * count,
                node=[NO_NODE] * count,
                created=[snapshot.taken_at] * count,
            )
    return group.key


def pod_class_in(job: JobManifest, snapshot: Snapshot, priorities: Priorities) -> int:
    """The number of the class of the first task's pods. The snapshot gets it if it is new."""
    return _class_number(job.tasks[0], job, priorities, snapshot)


def _class_number(
    task: TaskManifest, job: JobManifest, priorities: Priorities, snapshot: Snapshot
) -> int:
    namespace = job.metadata.namespace or DEFAULT
    pod_class = _pod_class(task, job, priorities, namespace)
    labels = task.template.labels
    return snapshot.classes.number(
        labelled_class(pod_class, namespace, labels, snapshot.label_keys)
    )


def gang_of(job: JobManifest) -> PodGroup:
    """Its podgroup, without priority and time."""
    minimums = []
    for task in job.tasks:
        minimums.append((task.template.requests, task.min_available, task.replicas))
    return PodGroup(
        name=job.metadata.name or "new-job",
        namespace=job.metadata.namespace or DEFAULT,
        queue=job.queue,
        min_member=job.min_available,
        role_minimums={task.name: task.min_available for task in job.tasks},
        min_resources=minimum_resources(minimums, job.min_available),
        expected_seconds=longest_run(task.template.run_seconds for task in job.tasks),
    )


def _pod_class(task: Any, job: JobManifest, priorities: Priorities, namespace: str) -> PodClass:
    template = task.template
    own_class = template.priority_class or job.priority_class
    priority = priorities.of(own_class)
    preemptable = (
        template.labels.get(PREEMPTABLE) or template.annotations.get(PREEMPTABLE) or "true"
    ) != "false"
    return PodClass(
        request=Resources({**template.requests, "pods": 1}),
        priority=priority.value,
        role=task.name,
        constraint=_constraint(template),
        preemptable=preemptable,
        preempts=priority.preemption_policy != "Never",
        critical=own_class in CRITICAL_CLASSES or namespace in SYSTEM_NAMESPACES,
    )
