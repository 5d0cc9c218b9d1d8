"""Nodes, queues, podgroups and pods as scenario files write them, read into the values of the
domain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from scheduler.domain.durations import seconds_in
from scheduler.domain.nodes import Node, Taint
from scheduler.domain.queues import ROOT, DequeueStrategy, QueueSpec, QueueState
from scheduler.domain.resources import Resources
from scheduler.domain.workloads import Phase, Pod, PodGroup, PodStatus
from scheduler.scenarios.constraints import read_constraint, read_foreign_pods
from scheduler.scenarios.fields import FieldError, Fields, shown

NAMESPACE: Final = "default"
SYSTEM_NAMESPACE: Final = "kube-system"
_CRITICAL_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
_TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_STATES: Final = tuple(state.value for state in QueueState)
_PHASES: Final = ("", *(phase.label for phase in Phase))
_POD_PRIORITY: Final = 1  # what Volcano takes for a pod without one
_INT32: Final = 2**31

POD_PHASES: Final = {
    "Pending": PodStatus.PENDING,
    "Binding": PodStatus.BINDING,
    "Bound": PodStatus.BOUND,
    "Running": PodStatus.RUNNING,
    "Releasing": PodStatus.RELEASING,
    "Succeeded": PodStatus.SUCCEEDED,
    "Failed": PodStatus.FAILED,
    "Unknown": PodStatus.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class PriorityClass:
    name: str
    value: int
    preempts: bool = True


def read_node(fields: Fields) -> Node:
    node = Node(
        name=fields.name("name"),
        allocatable=fields.resources("allocatable"),
        labels=fields.texts("labels"),
        taints=tuple(_read_taint(taint) for taint in fields.items("taints")),
        unschedulable=fields.flag("unschedulable", default=False),
        ready=fields.flag("ready", default=True),
        foreign=tuple(read_foreign_pods(pods) for pods in fields.items("foreignPods")),
    )
    fields.finish()
    return node


def _read_taint(fields: Fields) -> Taint:
    taint = Taint(
        fields.name("key"),
        fields.text("value"),
        fields.choice("effect", _TAINT_EFFECTS, "NoSchedule"),
    )
    fields.finish()
    return taint


def read_queue(fields: Fields) -> QueueSpec:
    name = fields.name("name")
    queue = QueueSpec(
        name=name,
        parent=_read_parent(fields, name),
        weight=fields.whole("weight", default=1, most=65535),
        capability=fields.resources("capability"),
        deserved=fields.resources("deserved"),
        guarantee=_read_guarantee(fields),
        reclaimable=fields.flag("reclaimable", default=True),
        priority=fields.whole("priority", default=0, least=-_INT32),
        dequeue_strategy=DequeueStrategy(
            fields.choice("dequeueStrategy", tuple(DequeueStrategy), "traverse")
        ),
        min_run_seconds=_read_min_run_seconds(fields),
        state=QueueState(fields.choice("state", _STATES, "Open")),
        type=fields.text("type"),
        labels=fields.texts("labels"),
        annotations=fields.texts("annotations"),
    )
    fields.finish()
    return queue


def _read_parent(fields: Fields, name: str) -> str:
    parent = fields.text("parent")
    if name == ROOT:
        return ""
    return parent or ROOT


def _read_min_run_seconds(fields: Fields) -> int | None:
    if fields.take("minRunSeconds") is None:
        return None
    return fields.whole("minRunSeconds", default=0)


def _read_guarantee(fields: Fields) -> Resources:
    """Flat, or nested under `resource` as in a manifest."""
    nested = fields.take("guarantee")
    if isinstance(nested, dict) and set(nested) == {"resource"}:
        inner = Fields(nested, fields.at("guarantee"))
        return inner.resources("resource")
    return fields.resources("guarantee")


def read_priority_class(fields: Fields) -> PriorityClass:
    found = PriorityClass(
        name=fields.name("name"),
        value=fields.whole("value", default=0, least=-_INT32),
        preempts=fields.choice(
            "preemptionPolicy", ("PreemptLowerPriority", "Never"), "PreemptLowerPriority"
        )
        != "Never",
    )
    fields.finish()
    return found


def read_podgroup(fields: Fields, classes: Mapping[str, PriorityClass]) -> PodGroup:
    priority_class = classes.get(fields.text("priorityClassName"))
    group = PodGroup(
        name=fields.name("name"),
        queue=fields.text("queue", "default"),
        namespace=fields.text("namespace") or NAMESPACE,
        min_member=fields.whole("minMember", default=1),
        role_minimums=_read_role_minimums(fields),
        min_resources=fields.resources("minResources")
        if fields.take("minResources") is not None
        else None,
        phase=Phase.of(fields.choice("phase", _PHASES, "")),
        priority=fields.whole(
            "priority", default=priority_class.value if priority_class else 0, least=-_INT32
        ),
        created=read_time(fields, "creationTimestamp"),
        starving_since=fields.whole("starvingSince", default=-1, least=-1),
        evictions=fields.whole("evictions", default=0),
        expected_seconds=_read_seconds(fields, "expectedSeconds"),
        sla_waiting_time=_read_seconds(fields, "slaWaitingTime"),
        on_hold=fields.text("onHold"),
        not_permitted=fields.text("notPermitted"),
    )
    fields.finish()
    return group


def _read_role_minimums(fields: Fields) -> dict[str, int]:
    roles = fields.mapping("minTaskMember")
    if roles:
        minimums: dict[str, int] = {}
        for role in roles:
            minimums[role] = roles.whole(role, default=0)
        return minimums
    return {}


def read_pod(fields: Fields) -> Pod:
    namespace = fields.text("namespace") or NAMESPACE
    node = fields.text("node")
    reserved_node, reserved_until = _read_reservation(fields)
    pod = Pod(
        name=fields.name("name"),
        podgroup=f"{namespace}/{fields.text('podgroup')}",
        namespace=namespace,
        request=fields.resources("requests"),
        node=node,
        status=_read_status(fields, node),
        priority=fields.whole("priority", default=_POD_PRIORITY, least=-_INT32),
        role=fields.text("taskSpec"),
        constraint=read_constraint(fields),
        preemptable=fields.flag("preemptable", default=True),
        preempts=fields.choice("preemptionPolicy", ("", "PreemptLowerPriority", "Never"), "")
        != "Never",
        critical=_read_critical(fields, namespace),
        created=read_time(fields, "creationTimestamp"),
        borrowed=fields.flag("borrowed", default=False),
        reserved_node=reserved_node,
        reserved_until=reserved_until,
        started=read_time(fields, "startTime") if "startTime" in fields else None,
        labels=fields.texts("labels"),
    )
    fields.finish()
    return pod


def _read_status(fields: Fields, node: str) -> PodStatus:
    """A pending pod that has a node is bound to it."""
    status = POD_PHASES[fields.choice("phase", tuple(POD_PHASES), "Pending")]
    if status is PodStatus.PENDING and node:
        return PodStatus.BOUND
    return status


def _read_critical(fields: Fields, namespace: str) -> bool:
    by_class = fields.text("priorityClassName") in _CRITICAL_CLASSES
    return fields.flag("critical", default=by_class or namespace == SYSTEM_NAMESPACE)


def _read_reservation(fields: Fields) -> tuple[str, int]:
    """The place an earlier session kept, and the number of the last session that honours it."""
    reservation = fields.mapping("reservation")
    if reservation is None:
        return "", -1
    node = reservation.name("node")
    last_session = reservation.whole("until", default=-1, least=-1)
    reservation.finish()
    return node, last_session


def read_time(fields: Fields, key: str) -> float:
    """Seconds since 1970, written as a number or as 2026-01-31T12:00:00Z; 0 when not given."""
    text = fields.text(key)
    if text:
        seconds = _as_number(text)
    else:
        seconds = 0.0
    if seconds is None:
        seconds = _as_timestamp(text)
    if seconds is None:
        raise fields.problem(
            key,
            f"must be a time such as 2026-01-31T12:00:00Z or seconds since 1970, not {shown(text)}",
        )
    return seconds


def _as_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    if math.isfinite(value) and "_" not in text:
        return value
    return None


def _as_timestamp(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def _read_seconds(fields: Fields, key: str) -> float | None:
    text = fields.text(key)
    if text:
        return read_duration(text, fields.at(key))
    return None


def read_duration(text: str, place: str) -> float:
    """Seconds, written as a number or in Go's form such as 1h30m."""
    seconds = seconds_in(text)
    if seconds is None:
        raise FieldError(place, f"must be a duration such as 90s, 3m or 1h30m, not {shown(text)}")
    return seconds
