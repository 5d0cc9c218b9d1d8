"""Node selectors, affinity, taints and tolerations against nodes, once per distinct constraint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from scheduler.domain.nodes import Mask, NodeTable, Taint
from scheduler.domain.requirements import is_greater
from scheduler.domain.workloads import Constraint, NodeTerm, Toleration

_HARD = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def suitable_nodes(constraint: Constraint, nodes: NodeTable) -> Mask:
    """The nodes that this constraint lets a pod run on, whatever is free there."""
    if constraint.unsupported:
        return np.zeros(len(nodes), dtype=np.bool_)
    mask = np.ones(len(nodes), dtype=np.bool_)
    if nodes.unschedulable.any() and not tolerates(constraint.tolerations, _UNSCHEDULABLE):
        mask &= ~nodes.unschedulable
    if nodes.has_taints:
        mask &= tolerated_nodes(constraint, nodes)
    if constraint.node_selector or constraint.required:
        mask &= selected_nodes(constraint, nodes)
    return mask


def tolerated_nodes(constraint: Constraint, nodes: NodeTable) -> Mask:
    """The nodes without a taint that keeps the pod away."""
    return np.array(
        [repelling_taint(constraint, taints) is None for taints in nodes.taints], dtype=np.bool_
    )


def selected_nodes(constraint: Constraint, nodes: NodeTable) -> Mask:
    """The nodes that the node selector and the required node affinity choose."""
    pairs = zip(nodes.names, nodes.labels, strict=True)
    return np.array(
        [_is_wanted(constraint, name, labels) for name, labels in pairs], dtype=np.bool_
    )


def is_selected(constraint: Constraint, nodes: NodeTable, node: int) -> bool:
    """The same for one node."""
    return _is_wanted(constraint, nodes.names[node], nodes.labels[node])


def repelling_taint(constraint: Constraint, taints: Iterable[Taint]) -> Taint | None:
    """The first of these taints that keeps the pod away."""
    for taint in taints:
        if taint.effect in _HARD and not tolerates(constraint.tolerations, taint):
            return taint
    return None


def keeps_out_when_cordoned(constraint: Constraint, nodes: NodeTable, node: int) -> bool:
    """The node is cordoned, and the pod does not tolerate that."""
    return bool(nodes.unschedulable[node]) and not tolerates(constraint.tolerations, _UNSCHEDULABLE)


def _is_wanted(constraint: Constraint, name: str, labels: Mapping[str, str]) -> bool:
    selected = all(labels.get(key) == value for key, value in constraint.node_selector)
    return selected and (
        not constraint.required
        or any(matches_term(term, name, labels) for term in constraint.required)
    )


def matches_term(term: NodeTerm, name: str, labels: Mapping[str, str]) -> bool:
    """All expressions match; a term without any matches nothing."""
    if not term.expressions and not term.fields:
        return False
    fields = {"metadata.name": name}
    on_labels = all(item.holds(labels.get(item.key)) for item in term.expressions)
    return on_labels and all(item.holds(fields.get(item.key)) for item in term.fields)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(_matches(toleration, taint) for toleration in tolerations)


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator == "Gt":
        return _is_above(taint.value, toleration.value)
    if toleration.operator == "Lt":
        return _is_above(toleration.value, taint.value)
    return bool(toleration.key) and toleration.value == taint.value


def _is_above(left: str, right: str) -> bool:
    """For taints, Kubernetes takes no number that begins with a zero. For labels it does."""
    return _is_plain(left) and _is_plain(right) and is_greater(left, right)


def _is_plain(number: str) -> bool:
    return number == "0" or not number.removeprefix("-").startswith("0")


def untolerated_preferences(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    """How many taints only discourage the pod and are not tolerated."""
    return sum(
        taint.effect == "PreferNoSchedule" and not tolerates(tolerations, taint) for taint in taints
    )
