"""The nodes of the cluster as a change set would make them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from scheduler.admission.reading.cluster import read_node
from scheduler.domain.change_sets import NODE, ChangeItem
from scheduler.domain.nodes import Node, Taint
from scheduler.domain.pod_rules import ForeignPods
from scheduler.models.bulk import fetch
from scheduler.selectors.sessions.snapshot_rows import NODE_COLUMNS, node_of


def nodes_after(items: Iterable[ChangeItem], lost: Collection[str]) -> list[Node]:
    """A lost node is there and not ready."""
    nodes: dict[str, Node] = {}
    for row in fetch(f"SELECT {NODE_COLUMNS} FROM scheduler_node"):
        node = node_of(row)
        nodes[node.name] = node
    for item in items:
        if item.kind != NODE:
            continue
        if item.wanted is None:
            nodes.pop(item.name, None)
        else:
            nodes[item.name] = _node_in(item, nodes.get(item.name))
    for name in lost:
        if name in nodes:
            nodes[name] = replace(nodes[name], ready=False)
    return list(nodes.values())


def _node_in(item: ChangeItem, old: Node | None) -> Node:
    value = read_node(item.wanted).value
    if value is None:
        raise ValueError(f"the node {item.name} cannot be read")
    taints = []
    for taint in value.taints:
        effect = taint.get("effect", "NoSchedule")
        taints.append(Taint(taint["key"], taint.get("value", ""), effect))
    foreign: tuple[ForeignPods, ...] = ()
    if old is not None:
        foreign = old.foreign
    return Node(
        name=item.name,
        allocatable=value.allocatable,
        labels=value.metadata.labels,
        taints=tuple(taints),
        unschedulable=value.unschedulable,
        ready=value.ready,
        foreign=foreign,
    )
