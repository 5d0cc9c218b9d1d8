"""Nodes, namespaces, priority classes and disruption budgets."""

from __future__ import annotations

from scheduler.admission.facts import QUEUE_ANNOTATION
from scheduler.clusters.kubernetes.read.common import (
    Raw,
    read_amounts,
    read_meta,
    read_moment,
    section,
)
from scheduler.clusters.kubernetes.values import (
    DisruptionBudgetObject,
    NamespaceObject,
    NodeObject,
    PriorityClassObject,
)
from scheduler.domain.nodes import Taint


def read_node(raw: Raw) -> NodeObject:
    """A node whose kubelet has not reported yet is not ready."""
    spec = section(raw, "spec")
    status = section(raw, "status")
    ready = _condition(status, "Ready")
    taints: list[Taint] = []
    for taint in spec.get("taints") or ():
        taints.append(Taint(taint["key"], taint.get("value", ""), taint["effect"]))
    return NodeObject(
        meta=read_meta(raw),
        allocatable=read_amounts(status.get("allocatable") or status.get("capacity")),
        taints=tuple(taints),
        unschedulable=spec.get("unschedulable", False),
        ready=ready.get("status") == "True",
        ready_since=read_moment(ready.get("lastTransitionTime")),
    )


def _condition(status: Raw, wanted: str) -> Raw:
    for condition in status.get("conditions") or ():
        if condition["type"] == wanted:
            found: Raw = condition
            return found
    return {}


def read_namespace(raw: Raw) -> NamespaceObject:
    meta = read_meta(raw)
    return NamespaceObject(
        meta=meta,
        queue=meta.annotations.get(QUEUE_ANNOTATION, ""),
        terminating=section(raw, "status").get("phase") == "Terminating",
    )


def read_priority_class(raw: Raw) -> PriorityClassObject:
    return PriorityClassObject(
        meta=read_meta(raw),
        value=raw.get("value", 0),
        global_default=raw.get("globalDefault", False),
        preemption_policy=raw.get("preemptionPolicy") or "PreemptLowerPriority",
        description=raw.get("description", ""),
    )


def read_disruption_budget(raw: Raw) -> DisruptionBudgetObject:
    spec = section(raw, "spec")
    status = section(raw, "status")
    return DisruptionBudgetObject(
        meta=read_meta(raw),
        selector=spec.get("selector"),
        disruptions_allowed=status.get("disruptionsAllowed", 0),
        healthy_pods=status.get("currentHealthy", 0),
        needed_pods=status.get("desiredHealthy", 0),
        min_available=_number_or_share(spec.get("minAvailable")),
        max_unavailable=_number_or_share(spec.get("maxUnavailable")),
    )


def _number_or_share(value: int | str | None) -> str:
    """Such as 2 or 50%."""
    if value is None:
        return ""
    return str(value)
