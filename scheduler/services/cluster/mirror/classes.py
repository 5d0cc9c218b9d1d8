"""The classes of mirrored pods: what pods ask of a node, kept once for all that ask the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.clusters.kubernetes.values import PodObject
from scheduler.domain.resources import Resources
from scheduler.models import PodClass
from scheduler.services.cluster.mirror.pod_rules import RuleWatch
from scheduler.services.cluster.mirror.store import Store, group_key
from scheduler.services.cluster.mirror.volumes import affinity_with_volumes, unbound_claims
from scheduler.services.jobs.pods import (
    CRITICAL_CLASSES,
    SYSTEM_NAMESPACES,
    classes_for,
    new_class,
)


def class_ids(pods: Mapping[str, PodObject], watch: RuleWatch, store: Store) -> dict[str, int]:
    """The row of the class of each pod, made on first sight."""
    if not pods:
        return {}
    wanted = [class_of(pod, watch, store) for pod in pods.values()]
    stored = classes_for(wanted)
    return {uid: pod_class.pk for uid, pod_class in zip(pods, stored, strict=True)}


def class_of(pod: PodObject, watch: RuleWatch, store: Store) -> PodClass:
    """Not yet stored; its digest says what is the same."""
    unsupported = list(pod.unsupported)
    if not pod.node:
        unsupported += unbound_claims(pod, store)
        unsupported += _asked_by_group(pod, store)
    values: dict[str, Any] = {
        "requests": Resources(pod.requests),
        "node_selector": dict(pod.node_selector),
        "affinity": affinity_with_volumes(pod, store),
        "tolerations": [dict(toleration) for toleration in pod.tolerations],
        "priority": pod.priority,
        "preemption_policy": pod.preemption_policy,
        "preemptable": pod.preemptable,
        "critical": (
            pod.priority_class in CRITICAL_CLASSES or pod.meta.namespace in SYSTEM_NAMESPACES
        ),
        "spread": [dict(item) for item in pod.spread],
        "labels": watch.labels_of(pod),
        "unsupported": unsupported,
    }
    return new_class(values)


def _asked_by_group(pod: PodObject, store: Store) -> list[str]:
    """What its podgroup asks for and no session can honour."""
    podgroup = store.podgroup(group_key(pod))
    if podgroup is None:
        return []
    return list(podgroup.unsupported)
