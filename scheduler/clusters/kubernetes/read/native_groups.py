"""PodGroups of Kubernetes itself: `scheduling.k8s.io`, v1alpha2 of 1.36 and later versions."""

from __future__ import annotations

from scheduler.clusters.kubernetes.read.common import Raw, read_conditions, read_meta, section
from scheduler.clusters.kubernetes.read.pods import queue_asked_for
from scheduler.clusters.kubernetes.values import PodGroupObject


def read_native_podgroup(raw: Raw) -> PodGroupObject:
    """It has no field for a queue: labels and annotations say it, as those of pods do."""
    meta = read_meta(raw)
    spec = section(raw, "spec")
    return PodGroupObject(
        meta=meta,
        queue=queue_asked_for(meta),
        min_member=_min_count(spec),
        priority_class=spec.get("priorityClassName", ""),
        conditions=read_conditions(section(raw, "status")),
        is_native=True,
        priority=spec.get("priority"),
        unsupported=_unsupported_parts(spec),
    )


def _min_count(spec: Raw) -> int:
    """With the policy `basic` each pod is placed for itself."""
    gang = section(section(spec, "schedulingPolicy"), "gang")
    return int(gang.get("minCount", 1))


def _unsupported_parts(spec: Raw) -> tuple[str, ...]:
    found: list[str] = []
    for constraint in section(spec, "schedulingConstraints").get("topology") or ():
        found.append(f"the topology {constraint.get('key', '')} of its PodGroup")
    parent = spec.get("parentCompositePodGroupName")
    if parent:
        found.append(f"the CompositePodGroup {parent}")
    return tuple(found)
