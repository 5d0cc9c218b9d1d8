"""Objects as an API server sends them to a webhook."""

from __future__ import annotations

from typing import Any


def manifest(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {
            "name": name,
            "uid": "c2b4",
            "creationTimestamp": "2026-11-16T06:21:00Z",
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": spec,
        "status": {},
    }


def job(queue_name: str | None, **spec: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "minAvailable": 1,
        "tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": []}}}],
        **spec,
    }
    body |= {"queue": queue_name} if queue_name is not None else {}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ns"},
        "spec": body,
    }
