"""Stored objects as Kubernetes writes them, without their status.

An export holds them, and a change is compared with them.
"""

from __future__ import annotations

from typing import Any

from scheduler.models import Job, Namespace, Node, Pod, PodGroup, PriorityClass

SCHEDULING = "scheduling.volcano.sh/v1beta1"
BATCH = "batch.volcano.sh/v1alpha1"
PRIORITY = "scheduling.k8s.io/v1"


def _manifest_of(
    version: str,
    kind: str,
    row: Any,
    spec: dict[str, Any],
    namespaced: bool = False,
) -> dict[str, Any]:
    metadata = {"name": row.name}
    if namespaced:
        metadata["namespace"] = row.namespace
    metadata |= {"labels": dict(row.labels), "annotations": dict(row.annotations)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def job_spec(job: Job) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "queue": job.queue.name,
        "minAvailable": job.min_available,
        "maxRetry": job.max_retry,
        "tasks": [dict(task) for task in job.tasks],
        **job.extra,
    }
    optional = {
        "priorityClassName": job.priority_class or None,
        "minSuccess": job.min_success,
        "ttlSecondsAfterFinished": job.ttl_seconds_after_finished,
        "policies": job.policies or None,
    }
    return spec | {key: value for key, value in optional.items() if value is not None}


def stored_job(job: Job) -> dict[str, Any]:
    return _manifest_of(BATCH, "Job", job, job_spec(job), namespaced=True)


def podgroup_spec(group: PodGroup) -> dict[str, Any]:
    spec: dict[str, Any] = {"queue": group.queue.name, "minMember": group.min_member}
    if group.min_task_member:
        spec["minTaskMember"] = group.min_task_member
    if group.priority_class:
        spec["priorityClassName"] = group.priority_class
    if group.min_resources is not None:
        spec["minResources"] = group.min_resources.to_quantities()
    if group.network_topology:
        spec["networkTopology"] = group.network_topology
    return spec


def stored_podgroup(group: PodGroup) -> dict[str, Any]:
    return _manifest_of(SCHEDULING, "PodGroup", group, podgroup_spec(group), namespaced=True)


def node_spec(node: Node) -> dict[str, Any]:
    return {"unschedulable": node.unschedulable, "taints": [dict(taint) for taint in node.taints]}


def stored_node(node: Node) -> dict[str, Any]:
    """What a node has stands in its status, in Kubernetes too."""
    ready = {"type": "Ready", "status": "False"}
    if node.ready:
        ready["status"] = "True"
    status = {"allocatable": node.allocatable.to_quantities(), "conditions": [ready]}
    return _manifest_of("v1", "Node", node, node_spec(node)) | {"status": status}


def stored_namespace(namespace: Namespace) -> dict[str, Any]:
    return _manifest_of("v1", "Namespace", namespace, {})


def priority_class_spec(row: PriorityClass) -> dict[str, Any]:
    return {
        "value": row.value,
        "globalDefault": row.global_default,
        "preemptionPolicy": row.preemption_policy,
        "description": row.description,
    }


def stored_priority_class(row: PriorityClass) -> dict[str, Any]:
    return _manifest_of(PRIORITY, "PriorityClass", row, priority_class_spec(row))


def pod_spec(pod: Pod) -> dict[str, Any]:
    kind = pod.pod_class
    requests = {"requests": kind.requests.to_quantities()}
    spec: dict[str, Any] = {
        "schedulerName": "volcano",
        "containers": [{"name": pod.task or "main", "resources": requests}],
    }
    optional = {
        "nodeName": pod.node.name if pod.node else None,
        "nodeSelector": kind.node_selector or None,
        "affinity": kind.affinity or None,
        "tolerations": kind.tolerations or None,
        "topologySpreadConstraints": kind.spread or None,
    }
    return (
        spec
        | {"priority": kind.priority}
        | {key: value for key, value in optional.items() if value is not None}
    )


def stored_pod(pod: Pod) -> dict[str, Any]:
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": str(pod.uid)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": pod_spec(pod),
        "status": {"phase": pod.phase},
    }
