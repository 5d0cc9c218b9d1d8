"""Snapshot and policy as a scenario document that gives the same outcome when read again."""

from __future__ import annotations

from typing import Any

from scheduler.domain.nodes import Node
from scheduler.domain.queues import ROOT
from scheduler.domain.resources import Resources
from scheduler.domain.snapshot import Queue, Snapshot
from scheduler.domain.workloads import Phase, Pod, PodGroup
from scheduler.engine.policy import Policy
from scheduler.scenarios.clusters import cluster_of
from scheduler.scenarios.constraints import write_constraint, write_foreign_pods
from scheduler.scenarios.objects import POD_PHASES, SYSTEM_NAMESPACE
from scheduler.scenarios.policies import policy_document

_PHASE_NAMES = {status: phase for phase, status in POD_PHASES.items()}


def scenario_document(snapshot: Snapshot, policy: Policy, name: str) -> dict[str, Any]:
    """One scenario, ready for `json.dumps`."""
    cluster = cluster_of(snapshot)
    groups = []
    for group in cluster.podgroups:
        written = write_podgroup(group)
        if group.key in cluster.said:
            written["said"] = cluster.said[group.key]
        groups.append(written)
    return {
        "name": name,
        "conf": policy_document(policy),
        "takenAt": repr(cluster.taken_at),
        "session": cluster.session,
        "paused": cluster.paused,
        "nodes": [write_node(node) for node in cluster.nodes],
        "queues": [write_queue(queue) for queue in cluster.queues],
        "podgroups": groups,
        "pods": [write_pod(pod) for pod in cluster.pods],
    }


def _set(**values: Any) -> dict[str, Any]:
    """Only what says something."""
    stated: dict[str, Any] = {}
    for key, value in values.items():
        if value not in ("", None, {}, [], ()):
            stated[key] = value
    return stated


def _to_quantities(resources: Resources) -> dict[str, str]:
    return resources.to_quantities()


def write_node(node: Node) -> dict[str, Any]:
    taints = []
    for taint in node.taints:
        taints.append(_set(key=taint.key, value=taint.value, effect=taint.effect))
    flags = {
        **({"unschedulable": True} if node.unschedulable else {}),
        **({} if node.ready else {"ready": False}),
    }
    return {
        "name": node.name,
        "allocatable": _to_quantities(node.allocatable),
        **_set(
            labels=dict(node.labels),
            taints=taints,
            foreignPods=[write_foreign_pods(pods) for pods in node.foreign],
        ),
        **flags,
    }


def write_queue(queue: Queue) -> dict[str, Any]:
    spec = queue.spec
    written = _set(
        name=spec.name,
        parent="" if spec.name == ROOT else spec.parent,
        capability=_to_quantities(spec.capability),
        deserved=_to_quantities(spec.deserved),
        guarantee=_to_quantities(spec.guarantee),
        dequeueStrategy=spec.dequeue_strategy.value,
        minRunSeconds=spec.min_run_seconds,
        state=queue.state.value,
        type=spec.type,
        labels=dict(spec.labels),
        annotations=dict(spec.annotations),
        creationTimestamp=_to_timestamp(queue.created),
    )
    return {
        **written,
        "weight": spec.weight,
        "priority": spec.priority,
        "reclaimable": spec.reclaimable,
        "heldBy": queue.held_by,
    }


def write_podgroup(group: PodGroup) -> dict[str, Any]:
    written = _set(
        name=group.name,
        namespace=group.namespace,
        queue=group.queue,
        minTaskMember=dict(group.role_minimums),
        creationTimestamp=_to_timestamp(group.created),
        slaWaitingTime=None if group.sla_waiting_time is None else repr(group.sla_waiting_time),
        expectedSeconds=None if group.expected_seconds is None else repr(group.expected_seconds),
        evictions=group.evictions,
        onHold=group.on_hold,
        notPermitted=group.not_permitted,
    )
    if group.min_resources is None:
        minimum = {}
    else:
        minimum = {"minResources": _to_quantities(group.min_resources)}
    if group.starving_since < 0:
        starving = {}
    else:
        starving = {"starvingSince": group.starving_since}
    return {
        **written,
        "minMember": group.min_member,
        "phase": Phase(group.phase).label,
        "priority": group.priority,
        **minimum,
        **starving,
    }


def _to_timestamp(seconds: float) -> str:
    if seconds:
        return repr(seconds)
    return ""


def write_pod(pod: Pod) -> dict[str, Any]:
    written = _set(
        name=pod.name,
        namespace=pod.namespace,
        podgroup=pod.podgroup.split("/", 1)[1],
        node=pod.node,
        taskSpec=pod.role,
        creationTimestamp=_to_timestamp(pod.created),
        startTime=None if pod.started is None else repr(pod.started),
        labels=dict(pod.labels),
        preemptionPolicy="" if pod.preempts else "Never",
        reservation={"node": pod.reserved_node, "until": pod.reserved_until}
        if pod.reserved_node
        else {},
    )
    flags = {
        **({} if pod.preemptable else {"preemptable": False}),
        **({"borrowed": True} if pod.borrowed else {}),
        **(
            {"critical": pod.critical}
            if pod.critical != (pod.namespace == SYSTEM_NAMESPACE)
            else {}
        ),
    }
    phase = _PHASE_NAMES[pod.status]
    return {
        **written,
        "phase": phase,
        "requests": _to_quantities(pod.request),
        "priority": pod.priority,
        **write_constraint(pod.constraint),
        **flags,
    }
