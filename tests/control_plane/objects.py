"""Kubernetes objects for tests, each with what it needs and no more."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
_PATIENCE_SECONDS = 120.0  # only how long a broken test may take


def node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    labels: dict[str, str] | None = None,
    is_kwok: bool = False,
    **resources: str,
) -> dict[str, Any]:
    """A node that is ready, with room for 110 pods. KWOK looks after it only if it is KWOK's."""
    room = {"cpu": cpu, "memory": memory, "pods": "110", **resources}
    annotations = {"kwok.x-k8s.io/node": "fake"} if is_kwok else {}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [] if is_kwok else [ready],
        },
    }


def pod(
    name: str,
    *,
    cpu: str = "1",
    memory: str = "1Gi",
    scheduler: str = "fumarole",
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    finalizers: Sequence[str] = (),
) -> dict[str, Any]:
    """A pod of one container that waits for the scheduler of that name."""
    requests = {"cpu": cpu, "memory": memory}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "annotations": annotations or {},
            "labels": labels or {},
            "finalizers": list(finalizers),
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [
                {"name": "main", "image": "example.com/image", "resources": {"requests": requests}}
            ],
        },
    }


def binding(pod_name: str, node_name: str, uid: str | None = None) -> dict[str, Any]:
    """What a scheduler posts to bind a pod."""
    metadata = {"name": pod_name}
    if uid is not None:
        metadata["uid"] = uid
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
    }


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def podgroup(name: str, *, queue: str = "default", min_member: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": min_member, "queue": queue},
    }


def native_podgroup(
    name: str, *, min_count: int | None = None, labels: dict[str, str] | None = None
) -> dict[str, Any]:
    """Of Kubernetes itself: a gang, or with the policy `basic` pods that need not be together."""
    policy: dict[str, Any] = {"basic": {}}
    if min_count is not None:
        policy = {"gang": {"minCount": min_count}}
    return {
        "kind": "PodGroup",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"schedulingPolicy": policy},
    }


def pod_of_native_group(name: str, group: str, **given: Any) -> dict[str, Any]:
    made = pod(name, **given)
    made["spec"]["schedulingGroup"] = {"podGroupName": group}
    return made


def command(action: str, queue: dict[str, Any]) -> dict[str, Any]:
    """An order on Volcano's bus to a queue of the cluster."""
    target = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "name": queue["metadata"]["name"],
        "uid": queue["metadata"]["uid"],
    }
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": f"{target['name']}-", "namespace": "default"},
        "target": target,
        "action": action,
    }


def volcano_job(name: str, *, queue: str = "default", replicas: int = 1) -> dict[str, Any]:
    """A Job of Volcano's with one task."""
    template = {"spec": {**pod("ignored", scheduler="volcano")["spec"], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "volcano",
            "queue": queue,
            "minAvailable": replicas,
            "tasks": [{"name": "worker", "replicas": replicas, "template": template}],
        },
    }


def wait_until(is_so: Callable[[], object], what: str) -> None:
    """Wait for what another process brings about."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.05)
