"""Objects of the cluster as rows of the database.

What refers to other rows is looked up by `writer`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from scheduler.clusters.kubernetes.queue_definition import ANNOTATIONS
from scheduler.clusters.kubernetes.values import (
    DisruptionBudgetObject,
    JobObject,
    NamespaceObject,
    NodeObject,
    ObjectMeta,
    PodGroupObject,
    PodObject,
    PodPhase,
    PriorityClassObject,
    QueueObject,
)
from scheduler.domain.comparison import EVICTED_MESSAGE
from scheduler.domain.nodes import Taint
from scheduler.domain.queue_fields import PLAIN_FIELDS, stored_values
from scheduler.domain.queues import QueueState
from scheduler.domain.resources import Resources
from scheduler.models.workload import FINISHED_JOB_PHASES, JOB_PHASES, PODGROUP_PHASES
from scheduler.services.cluster.mirror.membership import MadeGroup
from scheduler.services.cluster.mirror.table import Row, stored_uid
from scheduler.services.jobs.pods import stored_task

OWNER = ANNOTATIONS["owner"]
"""The annotation that says who submitted a job here. Whoever may write Jobs there is trusted."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_INTEGER = 2**31 - 1
_LONGEST_MESSAGE = 512
NAMED_COLUMNS = ("uid", "labels", "annotations", "created_at", "resource_version")
_HIDDEN_ANNOTATIONS = (
    "kubectl.kubernetes.io/last-applied-configuration",  # the object, as somebody once sent it
    *ANNOTATIONS.values(),  # shown as fields of the queue
)


def named_columns(meta: ObjectMeta) -> dict[str, Any]:
    annotations = dict(meta.annotations)
    for name in _HIDDEN_ANNOTATIONS:
        annotations.pop(name, None)
    return {
        "uid": stored_uid(meta.uid),
        "labels": dict(meta.labels),
        "annotations": annotations,
        "created_at": meta.created or LONG_AGO,
        "resource_version": version_number(meta.resource_version),
    }


def version_number(text: str) -> int:
    """A resourceVersion. Servers promise a number that grows; anything else counts as none."""
    if text.isascii() and text.isdigit():
        return int(text)
    return 0


NODE_COLUMNS = (
    "name",
    *NAMED_COLUMNS,
    "allocatable",
    "taken",
    "foreign_pods",
    "taints",
    "unschedulable",
    "ready",
    "ready_since",
)


def node_row(node: NodeObject, taken: Resources, foreign_pods: list[dict[str, Any]]) -> Row:
    """Without its version: a kubelet changes that all the time, and nothing else."""
    return {
        "name": node.meta.name,
        **named_columns(node.meta),
        "resource_version": node.meta.generation or 1,
        "allocatable": dict(node.allocatable),
        "taken": dict(taken),
        "foreign_pods": foreign_pods,
        "taints": [_taint_row(taint) for taint in node.taints],
        "unschedulable": node.unschedulable,
        "ready": node.ready,
        "ready_since": node.ready_since,
    }


def _taint_row(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}


NAMESPACE_COLUMNS = ("name", *NAMED_COLUMNS)


def namespace_row(namespace: NamespaceObject) -> Row:
    return {"name": namespace.meta.name, **named_columns(namespace.meta)}


PRIORITY_CLASS_COLUMNS = (
    "name",
    *NAMED_COLUMNS,
    "value",
    "global_default",
    "preemption_policy",
    "description",
)


def priority_class_row(value: PriorityClassObject) -> Row:
    return {
        "name": value.meta.name,
        **named_columns(value.meta),
        "value": value.value,
        "global_default": value.global_default,
        "preemption_policy": value.preemption_policy,
        "description": value.description[:1024],
    }


BUDGET_COLUMNS = (
    "uid",
    "namespace",
    "name",
    "selector",
    "min_available",
    "max_unavailable",
    "disruptions_allowed",
    "healthy_pods",
    "needed_pods",
)


def budget_row(budget: DisruptionBudgetObject) -> Row:
    return {
        "uid": stored_uid(budget.meta.uid),
        "namespace": budget.meta.namespace,
        "name": budget.meta.name,
        "selector": budget.selector,
        "min_available": budget.min_available[:16],
        "max_unavailable": budget.max_unavailable[:16],
        "disruptions_allowed": budget.disruptions_allowed,
        "healthy_pods": budget.healthy_pods,
        "needed_pods": budget.needed_pods,
    }


QUEUE_COLUMNS = (
    "name",
    *NAMED_COLUMNS,
    "parent_id",
    *(field.name for field in PLAIN_FIELDS),
    "wish",
    "is_unknown",
)


def queue_row(queue: QueueObject, parent_id: int | None, *, follows_status: bool) -> Row:
    fields: dict[str, Any] = {}
    for name, value in stored_values(queue.spec).items():
        fields[name] = value
        if isinstance(value, Resources):
            fields[name] = dict(value)
    return {
        "name": queue.meta.name,
        **fields,
        **named_columns(queue.meta),
        "parent_id": parent_id,
        "wish": queue.requested_state(follows_status=follows_status).value,
        "is_unknown": queue.state == QueueState.UNKNOWN.value,
    }


JOB_COLUMNS = (
    "namespace",
    "name",
    *NAMED_COLUMNS,
    "queue_id",
    "min_available",
    "min_success",
    "priority_class",
    "max_retry",
    "ttl_seconds_after_finished",
    "tasks",
    "policies",
    "extra",
    "phase",
    "phase_since",
    "message",
    "retry_count",
    "version",
    "finished_at",
    "owner",
)


def job_row(value: JobObject, queue_id: int) -> Row:
    job = value.job
    return {
        "namespace": value.meta.namespace,
        "name": value.meta.name,
        **named_columns(value.meta),
        "queue_id": queue_id,
        "min_available": job.min_available,
        "min_success": job.min_success,
        "priority_class": job.priority_class,
        "max_retry": job.max_retry,
        "ttl_seconds_after_finished": job.ttl_seconds_after_finished,
        "tasks": [stored_task(task) for task in job.tasks],
        "policies": list(job.policies),
        "extra": dict(job.extra),
        "phase": _known_phase(value.phase, JOB_PHASES),
        "phase_since": value.phase_since,
        "message": value.message[:1024],
        "retry_count": value.retry_count,
        "version": value.version,
        "finished_at": _finished_at(value),
        "owner": owner_of(value.meta),
    }


def owner_of(meta: ObjectMeta) -> str:
    return meta.annotations.get(OWNER, "")[:150]


def _finished_at(job: JobObject) -> datetime | None:
    if job.phase in FINISHED_JOB_PHASES:
        return job.phase_since
    return None


def _known_phase(phase: str, known: Collection[str]) -> str:
    if phase in known:
        return phase
    return "Pending"


PODGROUP_COLUMNS = (
    "namespace",
    "name",
    "object_name",
    "object_uid",
    *NAMED_COLUMNS,
    "queue_id",
    "job_id",
    "min_member",
    "min_task_member",
    "min_resources",
    "priority_class",
    "priority",
    "network_topology",
    "size",
    "phase",
    "owner",
)


def podgroup_row(group: PodGroupObject, priority: int) -> dict[str, Any]:
    """Without its name, its queue and its job, and what follows from its pods."""
    return {
        **named_columns(group.meta),
        "object_uid": stored_uid(group.meta.uid),
        "owner": owner_of(group.meta),
        "min_member": group.min_member,
        "min_task_member": dict(group.min_task_member),
        "min_resources": _optional_amounts(group.min_resources),
        "priority_class": group.priority_class,
        "priority": _bounded(priority),
        "network_topology": dict(group.network_topology),
    }


def _optional_amounts(amounts: Resources | None) -> dict[str, int] | None:
    if amounts is None:
        return None
    return dict(amounts)


def _bounded(number: int) -> int:
    """System classes are above what the column holds only in theory."""
    return max(-_MOST_INTEGER, min(_MOST_INTEGER, number))


def made_group_row(group: MadeGroup) -> dict[str, Any]:
    return {
        **_ABSENT_PODGROUP,
        "created_at": group.created,
        "min_member": group.min_member,
        "priority": _bounded(group.priority),
    }


def podgroup_row_of_job(job: JobObject, priority: int) -> dict[str, Any]:
    """While the job has no podgroup in the cluster: before it begins, and when it has ended."""
    return {
        **_ABSENT_PODGROUP,
        "created_at": job.meta.created or LONG_AGO,
        "owner": owner_of(job.meta),
        "min_member": job.job.min_available,
        "priority_class": job.job.priority_class,
        "priority": _bounded(priority),
    }


_ABSENT_PODGROUP: Row = {
    "labels": {},
    "annotations": {},
    "resource_version": 1,
    "object_uid": None,
    "owner": "",
    "min_task_member": {},
    "min_resources": None,
    "priority_class": "",
    "network_topology": {},
}


def podgroup_phase_of_job(job: JobObject) -> str:
    """As the cluster would tell it; "" where nothing can be said."""
    if job.phase in FINISHED_JOB_PHASES:
        return "Completed"
    return ""


_HOLDING = ("Bound", "Running", "Releasing")


def follows_from_pods(
    told_phase: str, min_member: int, pods: Collection[PodObject]
) -> dict[str, Any]:
    """The size and the phase.

    What the cluster says of the phase holds, but two things: a podgroup that nobody gave a phase
    runs if enough of its pods do, and one whose pods still hold room is not completed.
    """
    holding = sum(1 for pod in pods if pod_phase(pod) in _HOLDING)
    phase = told_phase
    if phase not in PODGROUP_PHASES:
        phase = "Running" if holding and holding >= min_member else "Pending"
    if phase == "Completed" and holding:
        phase = "Running"
    return {"size": max(min_member, len(pods)), "phase": phase}


POD_COLUMNS = (
    "uid",
    "namespace",
    "name",
    "podgroup_id",
    "pod_class_id",
    "task",
    "index",
    "job_version",
    "node_id",
    "phase",
    "exit_code",
    "message",
    "created_at",
    "bound_at",
    "started_at",
    "finished_at",
    "budgets",
)


def pod_row(
    pod: PodObject,
    *,
    podgroup_id: int,
    pod_class_id: int,
    node_ids: Mapping[str, int],
    budgets: str = "",
) -> Row:
    phase = pod_phase(pod)
    node_id = None
    if phase != "Pending":
        node_id = node_ids.get(pod.node)
    return {
        "uid": stored_uid(pod.meta.uid),
        "namespace": pod.meta.namespace,
        "name": pod.meta.name,
        "podgroup_id": podgroup_id,
        "pod_class_id": pod_class_id,
        "task": pod.task[:63],
        "index": pod.task_index or 0,
        "job_version": pod.job_version or 0,
        "node_id": node_id,
        "phase": phase,
        "exit_code": pod.exit_code,
        "message": _pod_message(pod)[:_LONGEST_MESSAGE],
        "created_at": pod.meta.created or LONG_AGO,
        "bound_at": _bound_at(pod),
        "started_at": pod.started,
        "finished_at": pod.finished,
        "budgets": budgets,
    }


def _pod_message(pod: PodObject) -> str:
    if pod.preempted and pod.meta.deleted:
        return f"{EVICTED_MESSAGE}{pod.preempted}"
    return pod.message or pod.reason


def pod_phase(pod: PodObject) -> str:
    """Kubernetes calls a pod Pending until its containers run, also when it has a node."""
    if pod.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED):
        return pod.phase.value
    if not pod.node:
        return "Pending"
    if pod.meta.deleted:
        return "Releasing"
    if pod.phase is PodPhase.PENDING:
        return "Bound"
    return pod.phase.value


def _bound_at(pod: PodObject) -> datetime | None:
    if not pod.node:
        return None
    if pod.scheduled is not None and pod.scheduled.since is not None:
        return pod.scheduled.since
    return pod.started
