"""Binpack: fill the fullest node first, so that whole nodes stay free for large pods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.tables import Rows, Scores
from scheduler.engine.arguments import number
from scheduler.engine.plugin import Plugin

_PREFIX = "binpack."
Plan = tuple[Rows, Amounts, Scores, float]


class Binpack(Plugin):
    """Arguments: `binpack.weight`, `binpack.cpu`, `binpack.memory`, and `binpack.resources: "a, b"`
    with `binpack.resources.a`.
    """

    name = "binpack"
    scores_by_use = True
    node_answers_last = True

    def __init__(self, arguments: Mapping[str, object]) -> None:
        super().__init__(arguments)
        self.weight = number(arguments, "binpack.weight", 1)
        listed = [
            name.strip()
            for name in str(arguments.get("binpack.resources", "")).split(",")
            if name.strip()
        ]
        self.weights = {
            name: number(arguments, f"{_PREFIX}{name}", 1) for name in ("cpu", "memory")
        }
        self._plans: dict[int, Plan] = {}
        self.weights.update(
            {name: number(arguments, f"binpack.resources.{name}", 1) for name in listed}
        )

    def score(self, pod_class: int, used: Amounts, nodes: Rows) -> Scores | None:
        """How full the node would be, weighted over the resources that the pod asks for; 0 where
        one would overflow.
        """
        dims, request, weights, scale = self._plan(pod_class)
        if not len(dims):
            return None
        after = used[dims] + request
        whole = self.session.node_table.allocatable[dims[:, None], nodes]
        filled = (after / np.maximum(whole, 1) * weights).sum(axis=0) * scale
        scores: Scores = np.where((after > whole).any(axis=0), 0.0, filled)
        return scores

    def _plan(self, pod_class: int) -> Plan:
        """Columns, request and weights of what counts for a class, and what makes the sum a score;
        made once per class.
        """
        if pod_class not in self._plans:
            request = self.session.request[pod_class]
            resources = self.session.snapshot.resources
            weighed = [
                (dim, self.weights.get(name, 0))
                for dim, name in enumerate(resources)
                if request[dim] > 0
            ]
            counted = [(dim, weight) for dim, weight in weighed if weight > 0]
            dims = np.array([dim for dim, _ in counted], dtype=np.intp)
            weights = np.array([[float(weight)] for _, weight in counted])
            scale = 100.0 * self.weight / max(1, sum(weight for _, weight in counted))
            self._plans[pod_class] = (dims, request[dims, None], weights, scale)
        return self._plans[pod_class]
