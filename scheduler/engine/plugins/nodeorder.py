"""Node order: spread or fill, keep resources in balance, and respect what pods prefer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.tables import Rows, Scores
from scheduler.engine.arguments import number
from scheduler.engine.plugin import Plugin
from scheduler.engine.state.constraints import matches_term, untolerated_preferences

_DEVICE = "nvidia.com/gpu"  # the one extended resource that Volcano keeps in balance


class NodeOrder(Plugin):
    """Arguments: `leastrequested.weight` 1, `mostrequested.weight` 0, `balancedresource.weight` 1,
    `nodeaffinity.weight` 2, `tainttoleration.weight` 3.
    """

    name = "nodeorder"
    scores_by_use = True
    node_answers_last = True

    def __init__(self, arguments: Mapping[str, object]) -> None:
        super().__init__(arguments)
        self.least = number(arguments, "leastrequested.weight", 1)
        self.most = number(arguments, "mostrequested.weight", 0)
        self.balanced = number(arguments, "balancedresource.weight", 1)
        self.affinity = number(arguments, "nodeaffinity.weight", 2)
        self.toleration = number(arguments, "tainttoleration.weight", 3)

    def score(self, pod_class: int, used: Amounts, nodes: Rows) -> Scores | None:
        """From how full cpu and memory would be; in whole points, as Volcano counts them."""
        if not (self.least or self.most or self.balanced):
            return None
        request = self.session.request[pod_class]
        whole = np.maximum(self.session.node_table.allocatable[:2, nodes], 1)
        after = np.minimum(used[:2] + request[:2, None], whole)
        scores = np.zeros(len(nodes))
        if self.least:
            scores += self.least * (((whole - after) * 100 // whole).sum(axis=0) // 2)
        if self.most:
            scores += self.most * ((after * 100 // whole).sum(axis=0) // 2)
        if self.balanced:
            scores += self.balanced * self._balance_gained(request, used, whole, nodes)
        return scores

    def _balance_gained(
        self, request: Amounts, used: Amounts, whole: Amounts, nodes: Rows
    ) -> Scores:
        """The pod is judged by what it changes: 50 where the parts of what is used stay as far
        apart as they were. Devices count for pods that ask for them; `whole` is what the nodes have
        of cpu and memory.
        """
        before = used[:2]
        asked = request[:2]
        devices = [dim for dim in self._devices if request[dim] > 0]
        if devices:
            dims = np.array([0, 1, *devices])
            before = used[dims]
            asked = request[dims]
            whole = np.maximum(self.session.node_table.allocatable[dims[:, None], nodes], 1)
        gained: Scores = (
            _balance(before + asked[:, None], whole) - _balance(before, whole) + 100.0
        ) // 2
        return gained

    @cached_property
    def _devices(self) -> list[int]:
        return [dim for dim, name in enumerate(self.session.snapshot.resources) if name == _DEVICE]

    def static_score(self, pod_class: int) -> Scores | None:
        """Preferred node affinity and taints that only discourage, each scaled so that the best
        node has 100.
        """
        session = self.session
        constraint = session.snapshot.classes.constraints[
            int(session.snapshot.classes.constraint[pod_class])
        ]
        nodes = session.snapshot.nodes
        scores = np.zeros(len(session.node_table.names))
        if constraint.preferred and self.affinity:
            weights = [
                sum(
                    choice.weight
                    for choice in constraint.preferred
                    if matches_term(choice.term, name, labels)
                )
                for name, labels in zip(nodes.names, nodes.labels, strict=True)
            ]
            scores += self.affinity * _scaled(np.array(weights, dtype=np.float64))
        if self.toleration and nodes.has_taints:
            avoided = [
                untolerated_preferences(taints, constraint.tolerations) for taints in nodes.taints
            ]
            scores += self.toleration * (100.0 - _scaled(np.array(avoided, dtype=np.float64)))
        return scores


def _balance(used: Amounts, whole: Amounts) -> Scores:
    """100 where all resources are used in equal parts, less the further these are apart.

    How far apart is their standard deviation; of two parts that is half their distance.
    """
    parts = np.minimum(used / whole, 1.0)
    if len(parts) == 2:
        apart = np.abs(parts[0] - parts[1]) / 2
    else:
        apart = parts.std(axis=0)
    balance: Scores = np.floor((1.0 - apart) * 100.0)
    return balance


def _scaled(values: Scores) -> Scores:
    highest = values.max(initial=0.0)
    if highest <= 0:
        return values
    scaled: Scores = values * (100.0 / highest)
    return scaled
