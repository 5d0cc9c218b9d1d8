"""Rows as objects in the shape of Kubernetes: {apiVersion, kind, metadata, spec, status}.

The one place that knows their shapes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from dashboard.http.visibility import Visibility
from dashboard.present.start_times import start_object
from scheduler.admission.facts import QUEUE_ANNOTATION
from scheduler.admission.rules.backlogs import LongestRun
from scheduler.domain.conditions import condition, queue_conditions
from scheduler.domain.lifecycle import DerivedState
from scheduler.domain.queue_fields import QUEUE_FIELDS, FieldKind, QueueField, names_in
from scheduler.domain.queues import QueueState
from scheduler.domain.resources import NOTHING, Resources
from scheduler.models import ExpectedStart, Job, Namespace, Node, Pod, PodGroup, PriorityClass
from scheduler.selectors.cluster.nodes import NodeLoad
from scheduler.selectors.files.manifests import (
    BATCH,
    PRIORITY,
    SCHEDULING,
    job_spec,
    node_spec,
    pod_spec,
    podgroup_spec,
    priority_class_spec,
)
from scheduler.selectors.jobs.pod_conditions import pod_conditions
from scheduler.selectors.jobs.run_limits import RUN_TIME_EXCEEDED, ends_at
from scheduler.selectors.queues.objects import JOB_COUNTS, PHASES, QueueCounts
from scheduler.services.cluster.pod_logs import Container

OURS = "fumarole.io/v1"
_UNSET: tuple[Any, ...] = ({}, "", None, {"resource": {}})
_ON_A_NODE = ("Binding", "Bound", "Running")
_PHASE_KEYS = tuple(phase.lower() for phase in PHASES)


def iso_time(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.isoformat().replace("+00:00", "Z")


@lru_cache(maxsize=16_384)
def _amounts(text: str | None) -> Resources | None:
    if not text or text == "null":
        return None
    return Resources(json.loads(text))


@lru_cache(maxsize=16_384)
def _quantities(text: str | None) -> dict[str, str]:
    """Shared by all rows with this text: nobody may write into it."""
    return (_amounts(text) or NOTHING).to_quantities()


@lru_cache(maxsize=4_096)
def _parsed(text: str | None) -> Any:
    if not text:
        return None
    return json.loads(text)


@lru_cache(maxsize=4_096)
def _reservation(guarantee: str | None, allocated: str | None) -> dict[str, str]:
    """What is kept free for the queue: its guarantee as far as it does not use it."""
    wanted = _amounts(guarantee) or NOTHING
    used = _amounts(allocated) or NOTHING
    kept = {}
    for name, amount in wanted.items():
        kept[name] = max(0, amount - used.amount(name))
    return Resources(kept).to_quantities()


def queue_object(row: Mapping[str, Any], counts: QueueCounts) -> dict[str, Any]:
    return {
        "apiVersion": SCHEDULING,
        "kind": "Queue",
        "metadata": {
            "name": row["name"],
            "uid": str(row["uid"]),
            "creationTimestamp": iso_time(row["created_at"]),
            "resourceVersion": str(row["resource_version"]),
            "labels": _parsed(row["text_labels"]),
            "annotations": _parsed(row["text_annotations"]),
        },
        "spec": _queue_spec(row),
        "status": _queue_status(row, counts),
    }


def _column(field: QueueField) -> str:
    """What the field is called among the values of `selectors.queues.objects`."""
    if field.kind is FieldKind.AMOUNTS:
        return f"text_{field.name}"
    if field.kind is FieldKind.QUEUE:
        return f"{field.name}__name"
    return field.column or field.name


_SPEC_COLUMNS = tuple(
    (field.key, _column(field), field.nested, field.kind is FieldKind.AMOUNTS)
    for field in QUEUE_FIELDS
)


def _queue_spec(row: Mapping[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    for key, column, nested, is_amounts in _SPEC_COLUMNS:
        value = row[column]
        if is_amounts:
            value = _quantities(value)
        spec[key] = {nested: value} if nested else value
    spec["parent"] = spec["parent"] or ""
    spec["namespaces"] = names_in(spec["namespaces"])
    return spec


def _queue_status(row: Mapping[str, Any], counts: QueueCounts) -> dict[str, Any]:
    min_run = counts.min_run_of(row["id"])
    return {
        "state": row["state"],
        "closedBy": row["closed_by"],
        "suspendedBy": row["suspended_by"],
        "minRunSeconds": min_run.seconds,
        "minRunSecondsFrom": min_run.named_by,
        "limits": [
            {"field": each.field, "limit": each.limit, "queue": each.named_by}
            for each in counts.limits_of(row["id"])
        ],
        **dict(zip(_PHASE_KEYS, counts.gangs(row["id"]), strict=True)),
        "subtree": dict(zip(_PHASE_KEYS, counts.gangs_below(row["id"]), strict=True)),
        "jobs": dict(zip(JOB_COUNTS, counts.jobs_of(row["id"]), strict=True)),
        "allocated": _quantities(row["now_allocated"]),
        "leaving": _quantities(row["now_leaving"]),
        "promised": _quantities(row["now_promised"]),
        "asked": _quantities(row["now_asked"]),
        "lacking": _quantities(row["now_lacking"]),
        "deserved": _quantities(row["now_deserved"]),
        "nominalShare": _quantities(row["now_nominal_share"]),
        "request": _quantities(row["now_request"]),
        "held": _quantities(row["now_held"]),
        "realCapability": _real_capability(row["now_real_capability"]),
        "share": row["figures__share"] or 0.0,
        "overused": bool(row["figures__overused"]),
        "reservation": {"resource": _reservation(row["text_guarantee"], row["now_allocated"])},
        "conditions": _conditions(row, counts),
        "warnings": _queue_warnings(row),
    }


def _real_capability(text: str | None) -> dict[str, str] | None:
    """None where there is no limit."""
    if text in (None, "null"):
        return None
    return _quantities(text)


def _queue_warnings(row: Mapping[str, Any]) -> list[dict[str, str]]:
    """Those of its last change, then those of the last session."""
    stored = _parsed(row["text_warnings"]) or []
    current = _parsed(row["now_warnings"]) or []
    warnings: list[dict[str, str]] = []
    for warning in [*stored, *current]:
        warnings.append(_warning(warning))
    return warnings


def _conditions(row: Mapping[str, Any], counts: QueueCounts) -> list[dict[str, Any]]:
    standing = DerivedState(
        QueueState(row["state"]),
        row["closed_by"],
        row["suspended_by"],
        row["held_by"],
    )
    live = sum(counts.gangs_below(row["id"])[:-1])  # all but the Completed ones
    return queue_conditions(
        row["name"],
        standing,
        _parsed(row["text_conditions"]) or [],
        live,
        iso_time(row["state_since"]) or "",
    )


def _warning(warning: Any) -> dict[str, str]:
    if not isinstance(warning, Mapping):
        return {"code": "warning", "message": str(warning)}
    return {"code": str(warning.get("code", "warning")), "message": str(warning.get("message", ""))}


def queue_export(row: Mapping[str, Any]) -> dict[str, Any]:
    """Without what the server fills in: applied again, it changes nothing."""
    spec = _queue_spec(row)
    for key, value in list(spec.items()):
        if value in _UNSET:
            del spec[key]
    annotations = dict(_parsed(row["text_annotations"]) or {})
    if row["closed_by"]:
        annotations["volcano.sh/closed-by-parent"] = "true"
    metadata: dict[str, Any] = {
        "name": row["name"],
        "labels": _parsed(row["text_labels"]) or {},
        "annotations": annotations,
    }
    exported = {"apiVersion": SCHEDULING, "kind": "Queue", "metadata": metadata, "spec": spec}
    if row["state"] == "Unknown":
        exported["status"] = {"state": row["state"]}
    return exported


def queue_tree(
    rows: Iterable[Mapping[str, Any]],
    counts: QueueCounts,
    name: str,
) -> dict[str, Any] | None:
    """The queue of this name, with its `children` in it, and theirs in them."""
    objects = {}
    for row in rows:
        objects[row["id"]] = {**queue_object(row, counts), "children": []}
    top = None
    for queue_id, found in objects.items():
        parent = counts.parents.get(queue_id)
        if found["metadata"]["name"] == name:
            top = found
        elif parent in objects:
            objects[parent]["children"].append(found)
    return top


def object_metadata(row: Any) -> dict[str, Any]:
    return {
        "name": row.name,
        "uid": str(row.uid),
        "creationTimestamp": iso_time(row.created_at),
        "resourceVersion": str(row.resource_version),
        "labels": row.labels,
        "annotations": row.annotations,
    }


def namespaced_metadata(row: Any) -> dict[str, Any]:
    return {"name": row.name, "namespace": row.namespace, **object_metadata(row)}


def _kubernetes_object(
    version: str,
    kind: str,
    meta: dict[str, Any],
    spec: dict[str, Any],
    status: dict[str, Any],
) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec, "status": status}


def job_object(
    job: Job,
    pods: Mapping[str, int],
    limit: LongestRun | None = None,
    expected: ExpectedStart | None = None,
) -> dict[str, Any]:
    """`pods` counts the job's pods by phase. `limit` says how long it may run, `expected` when it
    starts, while it waits.
    """
    group = getattr(job, "podgroup", None)
    status = {
        "state": _job_state(job),
        "runLimit": _run_limit(job, limit),
        "owner": job.owner,
        "minAvailable": job.min_available,
        "pending": pods.get("Pending", 0),
        "running": _pods_on_nodes(pods),
        "succeeded": pods.get("Succeeded", 0),
        "failed": pods.get("Failed", 0),
        "terminating": pods.get("Releasing", 0),
        "unknown": pods.get("Unknown", 0),
        "retryCount": job.retry_count,
        "version": job.version,
        "startedAt": iso_time(job.started_at),
        "finishedAt": iso_time(job.finished_at),
        "podgroup": _podgroup_summary(group),
        "expectedStart": start_object(expected),
    }
    return _kubernetes_object(BATCH, "Job", namespaced_metadata(job), job_spec(job), status)


def _job_state(job: Job) -> dict[str, Any]:
    """`reason` is a word, where there is one for it."""
    reason = ""
    if job.was_ended_for_time:
        reason = RUN_TIME_EXCEEDED
    return {
        "phase": job.phase,
        "reason": reason,
        "message": job.shown_message,
        "since": iso_time(job.phase_since),
    }


def _run_limit(job: Job, limit: LongestRun | None) -> dict[str, Any] | None:
    if limit is None:
        return None
    return {
        "seconds": limit.seconds,
        "queue": limit.queue,
        "endsAt": iso_time(ends_at(job, limit)),
    }


def _pods_on_nodes(pods: Mapping[str, int]) -> int:
    return sum(pods.get(phase, 0) for phase in _ON_A_NODE)


def _podgroup_summary(group: PodGroup | None) -> dict[str, Any] | None:
    if group is None:
        return None
    return {
        "name": group.cluster_name,
        "phase": group.phase,
        "priority": group.priority,
        "reason": _reason_object(group),
    }


def _reason_object(group: PodGroup) -> dict[str, Any] | None:
    """Why a waiting gang waits; None where no session said why."""
    if not group.reason_code:
        return None
    return {
        "code": group.reason_code,
        "message": group.reason_message,
        "figures": group.reason_figures,
        "session": group.reason_session,
    }


def podgroup_object(
    group: PodGroup, pods: Mapping[str, int], expected: ExpectedStart | None = None
) -> dict[str, Any]:
    status = {
        "phase": group.phase,
        "owner": group.owner,
        "job": _owning_job(group),
        "priority": group.priority,
        "pending": pods.get("Pending", 0),
        "running": _pods_on_nodes(pods),
        "succeeded": pods.get("Succeeded", 0),
        "failed": pods.get("Failed", 0),
        "conditions": group.conditions,
        "reason": _reason_object(group),
        "expectedStart": start_object(expected),
        "enqueuedAt": iso_time(group.enqueued_at),
        "startedAt": iso_time(group.started_at),
        "finishedAt": iso_time(group.finished_at),
    }
    meta = namespaced_metadata(group)
    if group.object_name:
        meta["name"] = group.cluster_name
        meta["uid"] = str(group.object_uid or group.uid)
    return _kubernetes_object(SCHEDULING, "PodGroup", meta, podgroup_spec(group), status)


def _owning_job(group: PodGroup) -> dict[str, str] | None:
    if group.job_id is None:
        return None
    return {"namespace": group.namespace, "name": group.name}


def container_object(container: Container) -> dict[str, Any]:
    return {
        "name": container.name,
        "state": container.state,
        "reason": container.reason,
        "message": container.message,
        "exitCode": container.exit_code,
        "restarts": container.restarts,
    }


def pod_object(pod: Pod) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": str(pod.uid),
        "creationTimestamp": iso_time(pod.created_at),
        "resourceVersion": str(pod.job_version),
        "labels": {},
        "annotations": {"scheduling.k8s.io/group-name": pod.podgroup.cluster_name},
    }
    status = {
        "phase": pod.phase,
        "queue": pod.podgroup.queue.name,
        "podgroup": pod.podgroup.cluster_name,
        "task": pod.task,
        "node": pod.node.name if pod.node else "",
        "borrowed": pod.borrowed,
        "disruptionBudgets": [name for name in pod.budgets.split(",") if name],
        "message": pod.message,
        "exitCode": pod.exit_code,
        "conditions": pod_conditions(pod),
        "boundAt": iso_time(pod.bound_at),
        "startedAt": iso_time(pod.started_at),
        "finishedAt": iso_time(pod.finished_at),
    }
    return _kubernetes_object("v1", "Pod", meta, pod_spec(pod), status)


def node_object(node: Node, load: NodeLoad) -> dict[str, Any]:
    allocated = load.used
    if "pods" in node.allocatable:
        allocated = Resources({**allocated, "pods": load.pods})
    status = {
        "allocatable": node.allocatable.to_quantities(),
        "allocated": allocated.to_quantities(),
        "promised": load.promised.to_quantities(),
        "idle": _idle_resources(node, allocated).to_quantities(),
        "pods": load.pods,
        "conditions": [_node_condition(node)],
    }
    return _kubernetes_object("v1", "Node", object_metadata(node), node_spec(node), status)


def _idle_resources(node: Node, allocated: Resources) -> Resources:
    """A node that does not answer has nothing idle."""
    if not node.ready:
        return Resources(dict.fromkeys(node.allocatable, 0))
    return Resources(
        {name: amount - allocated.amount(name) for name, amount in node.allocatable.items()}
    )


def _node_condition(node: Node) -> dict[str, Any]:
    since = iso_time(node.ready_since or node.created_at) or ""
    if node.ready:
        return condition("Ready", "KubeletReady", "It answers and takes pods.", since)
    return condition("Ready", "NodeStatusUnknown", "It does not answer.", since, holds=False)


def namespace_object(namespace: Namespace, visibility: Visibility) -> dict[str, Any]:
    """Only who may see the default queue of a namespace is told its name."""
    queue = namespace.annotations.get(QUEUE_ANNOTATION, "")
    meta = object_metadata(namespace)
    if not visibility.sees(queue):
        meta["annotations"] = dict(meta["annotations"])
        meta["annotations"].pop(QUEUE_ANNOTATION, None)
    status = {"phase": "Active", "queue": visibility.visible_queue(queue)}
    return _kubernetes_object("v1", "Namespace", meta, {}, status)


def priority_class_object(row: PriorityClass) -> dict[str, Any]:
    return _kubernetes_object(
        PRIORITY,
        "PriorityClass",
        object_metadata(row),
        priority_class_spec(row),
        {},
    )


def record_object(
    kind: str,
    name: str,
    created: datetime | None,
    spec: dict[str, Any],
    status: dict[str, Any],
    uid: str = "",
    version: int = 1,
) -> dict[str, Any]:
    """Objects of our own that have no Kubernetes counterpart."""
    meta: dict[str, Any] = {
        "name": name,
        "uid": uid or f"{kind.lower()}-{name}",
        "creationTimestamp": iso_time(created),
        "resourceVersion": str(version),
        "labels": {},
        "annotations": {},
    }
    return _kubernetes_object(OURS, kind, meta, spec, status)
