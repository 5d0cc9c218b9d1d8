"""Rows as objects in the shape of Kubernetes: {apiVersion, kind, metadata, spec, status}. The one place that knows their shapes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from dashboard.http.visibility import Sight
from scheduler.admission.facts import QUEUE_ANNOTATION
from scheduler.domain.conditions import condition, queue_conditions
from scheduler.domain.lifecycle import Standing
from scheduler.domain.queues import QueueState
from scheduler.domain.resources import NOTHING, Resources
from scheduler.models import Job, Namespace, Node, Pod, PodGroup, PriorityClass
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
from scheduler.selectors.queues.objects import JOB_COUNTS, PHASES, QueueCounts

OURS = "fumarole.io/v1"
_PHASE_KEYS = tuple(phase.lower() for phase in PHASES)


def stamp(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


@lru_cache(maxsize=16_384)
def _amounts(text: str | None) -> Resources | None:
    return Resources(json.loads(text)) if text and text != "null" else None


@lru_cache(maxsize=16_384)
def _quantities(text: str | None) -> dict[str, str]:
    """Shared by all rows with this text: nobody may write into it."""
    return (_amounts(text) or NOTHING).to_quantities()


@lru_cache(maxsize=4_096)
def _value(text: str | None) -> Any:
    return json.loads(text) if text else None


@lru_cache(maxsize=4_096)
def _reservation(guarantee: str | None, allocated: str | None) -> dict[str, str]:
    """What is kept free for the queue: its guarantee as far as it does not use it."""
    wanted, used = _amounts(guarantee) or NOTHING, _amounts(allocated) or NOTHING
    return Resources(
        {name: max(0, amount - used.amount(name)) for name, amount in wanted.items()}
    ).to_quantities()


def queue_object(row: Mapping[str, Any], counts: QueueCounts) -> dict[str, Any]:
    return {
        "apiVersion": SCHEDULING,
        "kind": "Queue",
        "metadata": {
            "name": row["name"],
            "uid": str(row["uid"]),
            "creationTimestamp": stamp(row["created_at"]),
            "resourceVersion": str(row["resource_version"]),
            "labels": _value(row["text_labels"]),
            "annotations": _value(row["text_annotations"]),
        },
        "spec": _queue_spec(row),
        "status": _queue_status(row, counts),
    }


def _queue_spec(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "weight": row["weight"],
        "capability": _quantities(row["text_capability"]),
        "deserved": _quantities(row["text_deserved"]),
        "guarantee": {"resource": _quantities(row["text_guarantee"])},
        "reclaimable": row["reclaimable"],
        "parent": row["parent__name"] or "",
        "priority": row["priority"],
        "dequeueStrategy": row["dequeue_strategy"],
        "state": row["wish"],
        "type": row["type"],
    }


def _queue_status(row: Mapping[str, Any], counts: QueueCounts) -> dict[str, Any]:
    limit = row["now_real_capability"]
    return {
        "state": row["state"],
        "closedBy": row["closed_by"],
        "suspendedBy": row["suspended_by"],
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
        "realCapability": None if limit in (None, "null") else _quantities(limit),
        "share": row["figures__share"] or 0.0,
        "overused": bool(row["figures__overused"]),
        "reservation": {"resource": _reservation(row["text_guarantee"], row["now_allocated"])},
        "conditions": _conditions(row, counts),
        "warnings": [
            _warning(warning)
            for warning in [
                *(_value(row["text_warnings"]) or []),
                *(_value(row["now_warnings"]) or []),
            ]
        ],
    }


def _conditions(row: Mapping[str, Any], counts: QueueCounts) -> list[dict[str, Any]]:
    standing = Standing(
        QueueState(row["state"]), row["closed_by"], row["suspended_by"], row["held_by"]
    )
    live = sum(counts.gangs_below(row["id"])[:-1])  # all but the Completed ones
    return queue_conditions(
        row["name"],
        standing,
        _value(row["text_conditions"]) or [],
        live,
        stamp(row["state_since"]) or "",
    )


def _warning(warning: Any) -> dict[str, str]:
    if not isinstance(warning, Mapping):
        return {"code": "warning", "message": str(warning)}
    return {"code": str(warning.get("code", "warning")), "message": str(warning.get("message", ""))}


def queue_export(row: Mapping[str, Any]) -> dict[str, Any]:
    """Without what the server fills in: applied again, it changes nothing."""
    spec = {
        key: value
        for key, value in _queue_spec(row).items()
        if value not in ({}, "", {"resource": {}})
    }
    annotations = dict(_value(row["text_annotations"]) or {})
    if row["closed_by"]:
        annotations["volcano.sh/closed-by-parent"] = "true"
    metadata: dict[str, Any] = {
        "name": row["name"],
        "labels": _value(row["text_labels"]) or {},
        "annotations": annotations,
    }
    exported = {"apiVersion": SCHEDULING, "kind": "Queue", "metadata": metadata, "spec": spec}
    return (
        {**exported, "status": {"state": row["state"]}} if row["state"] == "Unknown" else exported
    )


def queue_tree(
    rows: Iterable[Mapping[str, Any]], counts: QueueCounts, name: str
) -> dict[str, Any] | None:
    """The objects nested: each with its `children`."""
    objects = {row["id"]: {**queue_object(row, counts), "children": []} for row in rows}
    for queue_id, found in objects.items():
        parent = counts.parents.get(queue_id)
        if parent in objects and found["metadata"]["name"] != name:
            objects[parent]["children"].append(found)
    return next((found for found in objects.values() if found["metadata"]["name"] == name), None)


def metadata(row: Any, namespaced: bool = False) -> dict[str, Any]:
    return {
        "name": row.name,
        **({"namespace": row.namespace} if namespaced else {}),
        "uid": str(row.uid),
        "creationTimestamp": stamp(row.created_at),
        "resourceVersion": str(row.resource_version),
        "labels": row.labels,
        "annotations": row.annotations,
    }


def _object(
    version: str, kind: str, meta: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]
) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec, "status": status}


def job_object(job: Job, pods: Mapping[str, int]) -> dict[str, Any]:
    """`pods` counts the job's pods by phase."""
    group = getattr(job, "podgroup", None)
    status = {
        "state": {"phase": job.phase, "message": job.message, "since": stamp(job.phase_since)},
        "owner": job.owner,
        "minAvailable": job.min_available,
        "pending": pods.get("Pending", 0),
        "running": sum(pods.get(phase, 0) for phase in ("Binding", "Bound", "Running")),
        "succeeded": pods.get("Succeeded", 0),
        "failed": pods.get("Failed", 0),
        "terminating": pods.get("Releasing", 0),
        "unknown": pods.get("Unknown", 0),
        "retryCount": job.retry_count,
        "version": job.version,
        "startedAt": stamp(job.started_at),
        "finishedAt": stamp(job.finished_at),
        "podgroup": None
        if group is None
        else {"phase": group.phase, "priority": group.priority, "reason": _reason(group)},
    }
    return _object(BATCH, "Job", metadata(job, namespaced=True), job_spec(job), status)


def _reason(group: PodGroup) -> dict[str, Any] | None:
    """Why a waiting gang waits; None where there is nothing to say."""
    if not group.reason_code:
        return None
    return {
        "code": group.reason_code,
        "message": group.reason_message,
        "figures": group.reason_figures,
        "session": group.reason_session,
    }


def podgroup_object(group: PodGroup, pods: Mapping[str, int]) -> dict[str, Any]:
    status = {
        "phase": group.phase,
        "owner": group.owner,
        "job": None if group.job_id is None else {"namespace": group.namespace, "name": group.name},
        "priority": group.priority,
        "pending": pods.get("Pending", 0),
        "running": sum(pods.get(phase, 0) for phase in ("Binding", "Bound", "Running")),
        "succeeded": pods.get("Succeeded", 0),
        "failed": pods.get("Failed", 0),
        "conditions": group.conditions,
        "reason": _reason(group),
        "enqueuedAt": stamp(group.enqueued_at),
        "startedAt": stamp(group.started_at),
        "finishedAt": stamp(group.finished_at),
    }
    return _object(
        SCHEDULING, "PodGroup", metadata(group, namespaced=True), podgroup_spec(group), status
    )


def pod_object(pod: Pod) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": str(pod.uid),
        "creationTimestamp": stamp(pod.created_at),
        "resourceVersion": str(pod.job_version),
        "labels": {},
        "annotations": {"scheduling.k8s.io/group-name": pod.podgroup.name},
    }
    status = {
        "phase": pod.phase,
        "queue": pod.podgroup.queue.name,
        "podgroup": pod.podgroup.name,
        "task": pod.task,
        "node": pod.node.name if pod.node else "",
        "borrowed": pod.borrowed,
        "message": pod.message,
        "exitCode": pod.exit_code,
        "conditions": pod_conditions(pod),
        "boundAt": stamp(pod.bound_at),
        "startedAt": stamp(pod.started_at),
        "finishedAt": stamp(pod.finished_at),
    }
    return _object("v1", "Pod", meta, pod_spec(pod), status)


def node_object(node: Node, load: NodeLoad) -> dict[str, Any]:
    allocated = load.used
    if "pods" in node.allocatable:
        allocated = Resources({**allocated, "pods": load.pods})
    idle = Resources(
        {
            name: amount - allocated.amount(name) if node.ready else 0
            for name, amount in node.allocatable.items()
        }
    )
    status = {
        "allocatable": node.allocatable.to_quantities(),
        "allocated": allocated.to_quantities(),
        "promised": load.promised.to_quantities(),
        "idle": idle.to_quantities(),
        "pods": load.pods,
        "conditions": [_node_condition(node)],
    }
    return _object("v1", "Node", metadata(node), node_spec(node), status)


def _node_condition(node: Node) -> dict[str, Any]:
    since = stamp(node.ready_since or node.created_at) or ""
    if node.ready:
        return condition("Ready", "KubeletReady", "It answers and takes pods.", since)
    return condition("Ready", "NodeStatusUnknown", "It does not answer.", since, holds=False)


def namespace_object(namespace: Namespace, sight: Sight) -> dict[str, Any]:
    """Namespaces are everybody's; the queue that one names is only told to who may see it."""
    queue = namespace.annotations.get(QUEUE_ANNOTATION, "")
    meta = metadata(namespace)
    if not sight.sees(queue):
        meta["annotations"] = {
            key: value for key, value in meta["annotations"].items() if key != QUEUE_ANNOTATION
        }
    return _object("v1", "Namespace", meta, {}, {"phase": "Active", "queue": sight.queue(queue)})


def priority_class_object(row: PriorityClass) -> dict[str, Any]:
    return _object(PRIORITY, "PriorityClass", metadata(row), priority_class_spec(row), {})


def record_object(
    kind: str,
    name: str,
    created: datetime | None,
    spec: dict[str, Any],
    status: dict[str, Any],
    uid: str = "",
) -> dict[str, Any]:
    """Objects of our own that have no Kubernetes counterpart."""
    meta: dict[str, Any] = {
        "name": name,
        "uid": uid or f"{kind.lower()}-{name}",
        "creationTimestamp": stamp(created),
        "resourceVersion": "1",
        "labels": {},
        "annotations": {},
    }
    return _object(OURS, kind, meta, spec, status)
