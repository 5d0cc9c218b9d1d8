"""The podgroup and the pods of a Volcano Job, as its controller makes them.

Names, labels and annotations are those that Volcano's own controller gives, so whoever reads them
finds what they are used to, and either controller can go on where the other ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final

from scheduler.admission.reading.workload import GROUP_ANNOTATIONS, TaskManifest
from scheduler.clusters.kubernetes import job_plugins
from scheduler.clusters.kubernetes.read.pods import JOB_VERSION, TASK, TASK_INDEX
from scheduler.clusters.kubernetes.resources import JOBS, PODGROUPS, PODS
from scheduler.clusters.kubernetes.values import JobObject
from scheduler.domain.jobs.dependencies import dependency_of, first_to_begin
from scheduler.domain.resources import Resources

Manifest = dict[str, Any]

TASK_RESTART: Final = "fumarole.io/task-restart"
"""How often the task of a pod had been started again when the pod was made."""

_JOB_NAME: Final = "volcano.sh/job-name"
_JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
_QUEUE_NAME: Final = "volcano.sh/queue-name"
_TEMPLATE_UID: Final = "volcano.sh/template-uid"
_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
_PASSED_ON: Final = (
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)
"""Annotations and labels of the job that its pods get."""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def pod_name(job: JobObject, task: str, index: int) -> str:
    return f"{job.meta.name}-{task}-{index}"


def owner_reference(job: JobObject) -> Manifest:
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "name": job.meta.name,
        "uid": job.meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


# The podgroup


def gang_tasks(job: JobObject) -> list[TaskManifest]:
    """Those that begin at once. A gang with tasks that wait for it could never be whole."""
    replicas = {task.name: task.replicas for task in job.job.tasks}
    dependencies = {}
    for task in job.job.tasks:
        dependencies[task.name] = dependency_of({"dependsOn": task.depends_on})
    first = first_to_begin(replicas, dependencies)
    return [task for task in job.job.tasks if task.name in first]


def podgroup_spec(job: JobObject, min_resources: Resources) -> Manifest:
    """What follows from the job, and changes with it."""
    gang = gang_tasks(job)
    members = {task.name: task.min_available for task in gang}
    spec: Manifest = {
        "minMember": min(job.job.min_available, sum(task.replicas for task in gang)),
        "minTaskMember": members,
        "minResources": min_resources.to_quantities(),
        "priorityClassName": job.job.priority_class,
    }
    return spec


def podgroup_manifest(job: JobObject, min_resources: Resources) -> Manifest:
    spec = {**podgroup_spec(job, min_resources), "queue": job.job.queue or "default"}
    if job.job.network_topology:
        spec["networkTopology"] = dict(job.job.network_topology)
    annotations = dict(job.meta.annotations)
    annotations.pop(_LAST_APPLIED, None)
    return {
        "apiVersion": PODGROUPS.api_version,
        "kind": PODGROUPS.kind,
        "metadata": {
            "name": job.group_name,
            "namespace": job.meta.namespace,
            "labels": dict(job.meta.labels),
            "annotations": annotations,
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
    }


# Pods


def pod_manifest(job: JobObject, task: TaskManifest, index: int, restarts: int = 0) -> Manifest:
    """The pod of this number. `restarts` says how often the task has been started again."""
    template: Manifest = deepcopy(dict(task.template.raw))
    metadata = template.get("metadata") or {}
    spec = template.get("spec") or {}
    if not spec.get("schedulerName"):
        spec["schedulerName"] = job.job.scheduler_name
    if job.job.priority_class and not spec.get("priorityClassName"):
        spec["priorityClassName"] = job.job.priority_class
    _mount_claims(spec, job)
    name = pod_name(job, task.name, index)
    manifest: Manifest = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "name": name,
            "namespace": job.meta.namespace,
            "labels": _labels(job, task, index, metadata.get("labels") or {}),
            "annotations": {
                **_annotations(job, task, index, metadata.get("annotations") or {}),
                TASK_RESTART: str(restarts),
            },
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
    }
    job_plugins.add_to_pod(manifest, job, index)
    return manifest


def _labels(
    job: JobObject, task: TaskManifest, index: int, given: Mapping[str, str]
) -> dict[str, str]:
    return {
        **given,
        **_passed_on(job.meta.labels, _PASSED_ON[:2]),
        TASK_INDEX: str(index),
        _JOB_NAME: job.meta.name,
        TASK: task.name,
        _JOB_NAMESPACE: job.meta.namespace,
        _QUEUE_NAME: job.job.queue or "default",
    }


def _annotations(
    job: JobObject, task: TaskManifest, index: int, given: Mapping[str, str]
) -> dict[str, str]:
    return {
        **given,
        **_passed_on(job.meta.annotations, _PASSED_ON),
        TASK_INDEX: str(index),
        TASK: task.name,
        GROUP_ANNOTATIONS[0]: job.group_name,
        _JOB_NAME: job.meta.name,
        _QUEUE_NAME: job.job.queue or "default",
        JOB_VERSION: str(job.version),
        _TEMPLATE_UID: f"{job.meta.name}-{task.name}",
        _RETRY_COUNT: str(job.retry_count),
    }


def _passed_on(given: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    return {key: given[key] for key in keys if key in given}


def _mount_claims(spec: Manifest, job: JobObject) -> None:
    """Volumes of the job that name a claim are mounted into every container."""
    for number, volume in enumerate(job_plugins.volumes_of(job)):
        name = f"job-volume-{number}"
        claim = {"claimName": volume["volumeClaimName"]}
        spec.setdefault("volumes", []).append({"name": name, "persistentVolumeClaim": claim})
        for container in spec.get("containers") or ():
            mount = {"name": name, "mountPath": volume["mountPath"]}
            container.setdefault("volumeMounts", []).append(mount)
