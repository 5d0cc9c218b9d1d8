"""Node selectors, affinity, taints and tolerations against nodes, once per distinct constraint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from scheduler.domain.nodes import Mask, NodeTable, Taint
from scheduler.domain.workloads import Constraint, NodeTerm, Requirement, Toleration

_HARD = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def suitable_nodes(constraint: Constraint, nodes: NodeTable) -> Mask:
    """The nodes that this constraint lets a pod run on, whatever is free there."""
    mask = np.ones(len(nodes), dtype=np.bool_)
    if nodes.unschedulable.any() and not tolerates(constraint.tolerations, _UNSCHEDULABLE):
        mask &= ~nodes.unschedulable
    if any(nodes.taints):
        mask &= np.array(
            [not _repels(taints, constraint.tolerations) for taints in nodes.taints], dtype=np.bool_
        )
    if constraint.node_selector or constraint.required:
        pairs = zip(nodes.names, nodes.labels, strict=True)
        mask &= np.array(
            [_is_wanted(constraint, name, labels) for name, labels in pairs], dtype=np.bool_
        )
    return mask


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
    on_labels = all(
        _OPERATORS[item.operator](labels.get(item.key), item) for item in term.expressions
    )
    return on_labels and all(
        _OPERATORS[item.operator](fields.get(item.key), item) for item in term.fields
    )


def _compares(value: str | None, item: Requirement, sign: int) -> bool:
    try:
        return value is not None and sign * (int(value) - int(item.values[0])) > 0
    except (ValueError, IndexError):
        return False


_OPERATORS: Mapping[str, Callable[[str | None, Requirement], bool]] = {
    "In": lambda value, item: value is not None and value in item.values,
    "NotIn": lambda value, item: value is None or value not in item.values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, item: _compares(value, item, 1),
    "Lt": lambda value, item: _compares(value, item, -1),
}


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(_matches(toleration, taint) for toleration in tolerations)


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value


def _repels(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> bool:
    return any(taint.effect in _HARD and not tolerates(tolerations, taint) for taint in taints)


def untolerated_preferences(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    """How many taints only discourage the pod and are not tolerated."""
    return sum(
        taint.effect == "PreferNoSchedule" and not tolerates(tolerations, taint) for taint in taints
    )
