"""A whole cluster as values: read from a scenario, taken out of a snapshot, put together again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import numpy as np

from scheduler.domain.mixes import Target
from scheduler.domain.nodes import Node
from scheduler.domain.queues import QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import Resources, total
from scheduler.domain.snapshot import Queue, Snapshot
from scheduler.domain.tables import LOST_NODE, NO_NODE
from scheduler.domain.workloads import Phase, Pod, PodGroup, PodStatus
from scheduler.scenarios.fields import Fields
from scheduler.scenarios.objects import (
    PriorityClass,
    read_node,
    read_pod,
    read_podgroup,
    read_priority_class,
    read_queue,
    read_time,
)

Value = TypeVar("Value")

LOST = "(lost)"
"""Stands for a node that is no longer there; no node can have this name."""
_MOST: Final = 2**60


@dataclass(frozen=True, slots=True)
class Cluster:
    """`said` is the fingerprint of what the last session said about a podgroup, by key.

    `targets` are where made-up jobs go.
    """

    nodes: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    podgroups: tuple[PodGroup, ...] = ()
    pods: tuple[Pod, ...] = ()
    classes: Mapping[str, PriorityClass] = field(default_factory=dict, hash=False)
    said: Mapping[str, int] = field(default_factory=dict, hash=False)
    targets: tuple[Target, ...] = ()
    taken_at: float = 0.0
    session: int = 0
    paused: bool = False

    def with_more(self, more: Cluster) -> Cluster:
        """Both together; an object of the same name is replaced."""
        return replace(
            self,
            nodes=_join_by_key(self.nodes, more.nodes, lambda node: node.name),
            queues=_join_by_key(self.queues, more.queues, lambda queue: queue.name),
            podgroups=_join_by_key(self.podgroups, more.podgroups, lambda group: group.key),
            pods=_join_by_key(self.pods, more.pods, lambda pod: pod.key),
            classes={**self.classes, **more.classes},
        )

    def snapshot(self) -> Snapshot:
        snapshot = Snapshot.build(
            nodes=self.nodes,
            queues=self.queues,
            podgroups=self.podgroups,
            pods=self.pods,
            taken_at=self.taken_at,
            session=self.session,
            paused=self.paused,
        )
        said = [self.said.get(key, 0) for key in snapshot.groups.key]
        snapshot.groups.said = np.array(said, dtype=np.int64)
        return snapshot


def _join_by_key(
    old: Iterable[Value],
    new: Iterable[Value],
    key: Callable[[Value], str],
) -> tuple[Value, ...]:
    """New values replace old ones with the same key."""
    joined = {key(value): value for value in old}
    joined.update((key(value), value) for value in new)
    return tuple(joined.values())


def read_cluster(fields: Fields, classes: Mapping[str, PriorityClass] | None = None) -> Cluster:
    """From the keys nodes, queues, priorityClasses, podgroups and pods.

    The caller finishes the mapping.
    """
    found = dict(classes or {})
    for entry in fields.items("priorityClasses"):
        item = read_priority_class(entry)
        found[item.name] = item
    said: dict[str, int] = {}
    nodes = _read_all(fields, "nodes", read_node, lambda node: node.name)
    _refuse_uncountable(nodes, fields)
    return Cluster(
        nodes=nodes,
        queues=_read_queues(fields),
        podgroups=_read_all(
            fields,
            "podgroups",
            lambda group: _read_group(group, found, said),
            lambda group: group.key,
        ),
        pods=_read_all(fields, "pods", read_pod, lambda pod: pod.key),
        classes=found,
        said=said,
    )


def _refuse_uncountable(nodes: Iterable[Node], fields: Fields) -> None:
    """Sums over the cluster are 64-bit numbers, with room to spare for overcommit."""
    for resource, amount in total(node.allocatable for node in nodes).items():
        if amount > _MOST:
            raise fields.problem("nodes", f"together they have more {resource} than can be counted")


def _read_all(
    fields: Fields,
    key: str,
    read: Callable[[Fields], Value],
    name: Callable[[Value], str],
) -> tuple[Value, ...]:
    values: dict[str, Value] = {}
    for item in fields.items(key):
        value = read(item)
        if name(value) in values:
            raise item.problem("name", f"“{name(value)}” is given twice")
        values[name(value)] = value
    return tuple(values.values())


def _read_group(
    fields: Fields,
    classes: Mapping[str, PriorityClass],
    said: dict[str, int],
) -> PodGroup:
    fingerprint = fields.whole("said", default=0, least=-(2**63), most=2**63 - 1)
    group = read_podgroup(fields, classes)
    if fingerprint:
        said[group.key] = fingerprint
    return group


def _read_queues(fields: Fields) -> tuple[Queue, ...]:
    """Where `heldBy` is written, state and holder are taken as they stand.

    Elsewhere they follow from the tree.
    """
    held: dict[str, str] = {}
    created: dict[str, float] = {}

    def read(item: Fields) -> QueueSpec:
        holder = item.text("heldBy", "-")
        since = read_time(item, "creationTimestamp")
        spec = read_queue(item)
        created[spec.name] = since
        if holder != "-":
            held[spec.name] = holder
        return spec

    specs = _read_all(fields, "queues", read, lambda spec: spec.name)
    tree = QueueTree(specs)
    queues = []
    for spec in specs:
        if spec.name in held:
            queues.append(Queue(spec, spec.state, held[spec.name]))
        else:
            queues.append(derived(spec, tree))
    aged: list[Queue] = []
    for queue in queues:
        aged.append(replace(queue, created=created[queue.name]))
    return tuple(aged)


def derived(spec: QueueSpec, tree: QueueTree) -> Queue:
    """Below a suspended queue a queue is held, and below a closing one it closes."""
    above = []
    for name in reversed(tree.ancestors(spec.name)):
        above.append(tree[name])
    suspended = []
    for queue in above:
        if queue.state is QueueState.SUSPENDED:
            suspended.append(queue.name)
    if spec.state is QueueState.SUSPENDED:
        held_by = spec.name
    else:
        held_by = next(iter(suspended), "")
    if spec.state is QueueState.OPEN and any(
        queue.state in (QueueState.CLOSED, QueueState.CLOSING) for queue in above
    ):
        return Queue(spec, QueueState.CLOSING, held_by)
    if held_by and spec.state is QueueState.OPEN:
        state = QueueState.SUSPENDED
    else:
        state = spec.state
    return Queue(spec, state, held_by)


def cluster_of(snapshot: Snapshot) -> Cluster:
    """The values behind a snapshot; free rows are left out."""
    groups = snapshot.groups
    said = {}
    for key, digest, alive in zip(groups.key, groups.said, groups.alive, strict=True):
        if alive and digest:
            said[key] = int(digest)
    nodes = []
    for row in range(len(snapshot.nodes)):
        nodes.append(_node_at(snapshot, row))
    podgroups = []
    for row in map(int, np.flatnonzero(groups.alive)):
        podgroups.append(_podgroup_at(snapshot, row))
    pods = []
    for row in map(int, np.flatnonzero(snapshot.pods.status != PodStatus.GONE)):
        pods.append(_pod_at(snapshot, row))
    return Cluster(
        nodes=tuple(nodes),
        queues=snapshot.queues,
        podgroups=tuple(podgroups),
        pods=tuple(pods),
        said=said,
        taken_at=snapshot.taken_at,
        session=snapshot.session,
        paused=snapshot.paused,
    )


def _amounts_at(snapshot: Snapshot, row: Iterable[int]) -> Resources:
    amounts = zip(snapshot.resources, row, strict=True)
    return Resources({name: int(amount) for name, amount in amounts if amount})


def _node_at(snapshot: Snapshot, row: int) -> Node:
    table = snapshot.nodes
    amounts = table.allocatable[row].tolist()
    return Node(
        name=table.names[row],
        allocatable=Resources(zip(snapshot.resources, amounts, strict=True)),
        labels=table.labels[row],
        taints=table.taints[row],
        unschedulable=bool(table.unschedulable[row]),
        ready=bool(table.ready[row]),
        foreign=table.foreign[row] if table.foreign else (),
    )


def _podgroup_at(snapshot: Snapshot, row: int) -> PodGroup:
    table = snapshot.groups
    namespace, name = table.key[row].split("/", 1)
    waiting = float(table.sla_waiting_time[row])
    queue = LOST
    if table.queue[row] >= 0:
        queue = snapshot.queues[table.queue[row]].name
    minimum = None
    if table.has_min_resources[row]:
        minimum = _amounts_at(snapshot, table.min_resources[row])
    return PodGroup(
        name=name,
        queue=queue,
        namespace=namespace,
        min_member=int(table.min_member[row]),
        role_minimums=dict(table.role_minimums[row]),
        min_resources=minimum,
        phase=Phase(int(table.phase[row])),
        priority=int(table.priority[row]),
        created=float(table.created[row]),
        starving_since=int(table.starving_since[row]),
        sla_waiting_time=None if math.isnan(waiting) else waiting,
        on_hold=table.on_hold[row],
        not_permitted=table.not_permitted[row],
        evictions=int(table.evictions[row]),
        expected_seconds=_known_time(table.expected_seconds[row]),
    )


def _pod_at(snapshot: Snapshot, row: int) -> Pod:
    table = snapshot.pods
    namespace, name = table.key[row].split("/", 1)
    pod_class = snapshot.classes.values[table.pod_class[row]]
    return Pod(
        name=name,
        podgroup=snapshot.groups.key[table.group[row]],
        namespace=namespace,
        request=Resources(
            {
                resource: amount
                for resource, amount in pod_class.request.items()
                if resource != "pods"
            }
        ),
        node=_node_name(snapshot, table.node[row]),
        status=PodStatus(int(table.status[row])),
        priority=pod_class.priority,
        role=pod_class.role,
        constraint=pod_class.constraint,
        preemptable=pod_class.preemptable,
        preempts=pod_class.preempts,
        critical=pod_class.critical,
        created=float(table.created[row]),
        borrowed=bool(table.borrowed[row]),
        reserved_node=_node_name(snapshot, table.reserved_node[row]),
        reserved_until=int(table.reserved_until[row]),
        started=_known_time(table.started[row]),
        labels=dict(pod_class.labels),
    )


def _known_time(value: float) -> float | None:
    if math.isnan(value):
        return None
    return float(value)


def _node_name(snapshot: Snapshot, row: int) -> str:
    marks = {NO_NODE: "", LOST_NODE: LOST}
    if row < 0:
        return marks[row]
    return snapshot.nodes.names[row]
