"""The classes of mirrored pods: what pods ask of a node, kept once for all that ask the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from scheduler.clusters.kubernetes.values import PodObject
from scheduler.domain.resources import Resources
from scheduler.models import PodClass
from scheduler.services.jobs.pods import CRITICAL_CLASSES, SYSTEM_NAMESPACES, classes_for


def class_ids(pods: Mapping[str, PodObject]) -> dict[str, int]:
    """The row of the class of each pod, made on first sight."""
    if not pods:
        return {}
    wanted = [class_of(pod) for pod in pods.values()]
    stored = classes_for(wanted)
    return {uid: pod_class.pk for uid, pod_class in zip(pods, stored, strict=True)}


def class_of(pod: PodObject) -> PodClass:
    """Not yet stored; its digest says what is the same."""
    values: dict[str, Any] = {
        "requests": Resources(pod.requests),
        "node_selector": dict(pod.node_selector),
        "affinity": dict(pod.affinity),
        "tolerations": [dict(toleration) for toleration in pod.tolerations],
        "priority": pod.priority,
        "preemption_policy": pod.preemption_policy,
        "preemptable": pod.preemptable,
        "critical": (
            pod.priority_class in CRITICAL_CLASSES or pod.meta.namespace in SYSTEM_NAMESPACES
        ),
    }
    text = json.dumps({**values, "requests": dict(values["requests"])}, sort_keys=True)
    return PodClass(digest=hashlib.sha256(text.encode()).hexdigest(), **values)
