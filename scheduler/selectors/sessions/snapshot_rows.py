"""Rows of the database as the values and columns that a snapshot is made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.db import connection

from scheduler.domain.nodes import Node, Taint, without_taken
from scheduler.domain.pod_rules import ForeignPods, read_anti_affinity, read_rules
from scheduler.domain.queue_fields import SCHEDULED_FIELDS, FieldKind, with_choices
from scheduler.domain.queues import QueueSpec, QueueState
from scheduler.domain.requirements import read_requirement
from scheduler.domain.resources import Resources
from scheduler.domain.snapshot import Queue
from scheduler.domain.workloads import (
    Constraint,
    NodeTerm,
    Phase,
    PodClass,
    PodGroup,
    PodStatus,
    PreferredTerm,
    Toleration,
)
from scheduler.models.bulk import array_literal

POD_STATUS = {
    "Pending": PodStatus.PENDING,
    "Binding": PodStatus.BINDING,
    "Bound": PodStatus.BOUND,
    "Running": PodStatus.RUNNING,
    "Releasing": PodStatus.RELEASING,
    "Succeeded": PodStatus.SUCCEEDED,
    "Failed": PodStatus.FAILED,
    "Unknown": PodStatus.UNKNOWN,
}


def epoch(column: str) -> str:
    """SQL for seconds since 1970 in whole milliseconds: the same number in both databases."""
    if connection.vendor == "postgresql":
        return f"round(extract(epoch from {column}) * 1000)::float8 / 1000"
    return f"round((julianday({column}) - 2440587.5) * 86400000) / 1000"


def loaded(value: Any) -> Any:
    """A JSON column as a raw cursor gives it: text, or already read."""
    if isinstance(value, str):
        return json.loads(value)
    return value


def one_of_ids(column: str) -> str:
    """SQL for "this column is one of the numbers in the parameter" (see `ids_parameter`)."""
    if connection.vendor == "postgresql":
        return f"{column} = ANY(%s::bigint[])"
    return f"{column} IN (SELECT value FROM json_each(%s))"


def ids_parameter(ids: Iterable[int]) -> Any:
    numbers = [int(number) for number in ids]
    if connection.vendor == "postgresql":
        return array_literal(numbers)
    return json.dumps(numbers)


QUEUE_COLUMNS = ", ".join(
    (
        "q.id, q.name, p.name",
        "q.wish, q.state, q.held_by",
        *(f"q.{field.name}" for field in SCHEDULED_FIELDS),
    )
)


def queue_of(row: Sequence[Any]) -> Queue:
    _, name, parent, wish, state, held_by, *values = row
    given = {}
    for field, value in zip(SCHEDULED_FIELDS, values, strict=True):
        read = _READ.get(field.kind, _as_it_is)
        given[field.name] = read(value)
    spec = QueueSpec(name, parent=parent or "", state=QueueState(wish), **with_choices(given))
    return Queue(spec, QueueState(state), held_by)


def _as_it_is(value: Any) -> Any:
    return value


_READ: dict[FieldKind, Callable[[Any], Any]] = {
    FieldKind.AMOUNTS: lambda value: Resources(loaded(value)),
    FieldKind.TRUTH: bool,
}


NODE_COLUMNS = "id, name, allocatable, taken, labels, taints, unschedulable, ready, foreign_pods"


def node_of(row: Sequence[Any]) -> Node:
    _, name, allocatable, taken, labels, taints, unschedulable, ready, foreign_pods = row
    return Node(
        name=name,
        allocatable=without_taken(Resources(loaded(allocatable)), Resources(loaded(taken))),
        labels=loaded(labels),
        taints=tuple(map(_taint_of, loaded(taints))),
        unschedulable=bool(unschedulable),
        ready=bool(ready),
        foreign=tuple(_foreign_pods(given) for given in loaded(foreign_pods)),
    )


def _foreign_pods(given: Mapping[str, Any]) -> ForeignPods:
    namespace = given["namespace"]
    return ForeignPods(
        namespace,
        tuple(sorted(given["labels"].items())),
        given["count"],
        read_anti_affinity(given.get("affinity") or {}, namespace),
    )


def _taint_of(taint: Mapping[str, str]) -> Taint:
    return Taint(taint["key"], taint.get("value", ""), taint.get("effect", "NoSchedule"))


CLASS_COLUMNS = (
    "id, requests, node_selector, affinity, tolerations, spread, unsupported, labels, priority, "
    "preemption_policy, preemptable, critical"
)


def class_of(row: Sequence[Any]) -> PodClass:
    """Without its role and its namespace, which are the pod's own, and with all labels."""
    _, requests, selector, affinity, tolerations, spread, unsupported, labels = row[:8]
    priority, policy, preemptable, critical = row[8:]
    return PodClass(
        request=Resources({**loaded(requests), "pods": 1}),
        priority=priority,
        constraint=constraint_of(
            loaded(selector),
            loaded(affinity),
            loaded(tolerations),
            loaded(spread),
            loaded(unsupported),
        ),
        preemptable=bool(preemptable),
        preempts=policy != "Never",
        critical=bool(critical),
        labels=tuple(sorted(loaded(labels).items())),
    )


def constraint_of(
    selector: Mapping[str, str],
    affinity: Mapping[str, Any],
    tolerations: Sequence[Mapping[str, Any]],
    spread: Sequence[Mapping[str, Any]] = (),
    unsupported: Sequence[str] = (),
) -> Constraint:
    """From the Kubernetes shapes of nodeSelector, affinity, tolerations and spread."""
    node_affinity = affinity.get("nodeAffinity") or {}
    needed = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    required = needed.get("nodeSelectorTerms") or []
    preferred = node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return Constraint(
        node_selector=tuple(sorted(selector.items())),
        required=tuple(_node_term(term) for term in required),
        preferred=tuple(_preferred_term(term) for term in preferred if term),
        tolerations=tuple(_read_toleration(toleration) for toleration in tolerations),
        rules=read_rules(affinity, spread),
        unsupported=tuple(unsupported),
    )


def _preferred_term(term: Mapping[str, Any]) -> PreferredTerm:
    return PreferredTerm(int(term.get("weight") or 1), _node_term(term.get("preference")))


def _node_term(given: Mapping[str, Any] | None) -> NodeTerm:
    term = given or {}
    return NodeTerm(
        tuple(read_requirement(given) for given in term.get("matchExpressions") or ()),
        tuple(read_requirement(given) for given in term.get("matchFields") or ()),
    )


def _read_toleration(toleration: Mapping[str, Any]) -> Toleration:
    return Toleration(
        toleration.get("key") or "",
        toleration.get("operator") or "Equal",
        toleration.get("value") or "",
        toleration.get("effect") or "",
    )


def group_columns() -> str:
    return (
        "id, namespace, name, queue_id, min_member, min_task_member, min_resources, phase, "
        f"priority, {epoch('created_at')}, "
        "starving_since, sla_waiting_seconds, evictions, expected_seconds, stopping, "
        "reason_code <> '' OR CAST(pod_conditions AS text) <> '[]'"
    )


def group_of(row: Sequence[Any], queue_names: Mapping[int, str]) -> PodGroup:
    (
        _,
        namespace,
        name,
        queue_id,
        min_member,
        minimums,
        min_resources,
        phase,
        priority,
        created,
        starving_since,
        sla,
        evictions,
        expected_seconds,
        _,
        _,
    ) = row
    least = loaded(min_resources)
    return PodGroup(
        name=name,
        namespace=namespace,
        queue=queue_names.get(queue_id, ""),
        min_member=min_member,
        role_minimums=loaded(minimums),
        min_resources=None if least is None else Resources(least),
        phase=Phase.of(phase),
        priority=priority,
        created=float(created),
        starving_since=-1 if starving_since is None else starving_since,
        sla_waiting_time=None if sla is None else float(sla),
        evictions=evictions,
        expected_seconds=expected_seconds,
    )


SAID_BEFORE = -1
"""What a podgroup was told by a worker that is no more: no session says just this, so it is told
again or that it is over.
"""


def is_stopping(row: Sequence[Any]) -> bool:
    """Whether the pods of this podgroup are being stopped in steps (services/jobs/pod_steps.py)."""
    return bool(row[-2])


def said_of(row: Sequence[Any]) -> int:
    if row[-1]:
        return SAID_BEFORE
    return 0


def pod_columns() -> str:
    """A pod that is bound and does not run yet counts as started when it was bound."""
    started = "CASE WHEN p.phase = 'Bound' THEN p.bound_at ELSE p.started_at END"
    return (
        "p.id, p.namespace || '/' || p.name, p.podgroup_id, p.pod_class_id, p.task, p.phase, "
        f"p.node_id, {epoch('p.created_at')}, "
        f"p.borrowed, p.reserved_node_id, p.reserved_until, {epoch(started)}"
    )
