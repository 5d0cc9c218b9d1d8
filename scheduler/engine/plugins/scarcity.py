"""Scarcity: devices are kept for pods that ask for them, and nodes with devices are filled up one
after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.resources import COMMON
from scheduler.domain.tables import Rows, Scores
from scheduler.engine.arguments import number
from scheduler.engine.plugin import Plugin


class Scarcity(Plugin):
    """Argument: `scarcity.weight`, 10 unless given.

    Its points outweigh those of `nodeorder` and `binpack` by that much.
    """

    name = "scarcity"
    scores_by_use = True
    node_answers_last = True

    def __init__(self, arguments: Mapping[str, object]) -> None:
        super().__init__(arguments)
        self.weight = number(arguments, "scarcity.weight", 10)

    @cached_property
    def _devices(self) -> Rows:
        names = self.session.snapshot.resources
        return np.array(
            [dim for dim, name in enumerate(names) if name not in COMMON], dtype=np.intp
        )

    def static_score(self, pod_class: int) -> Scores | None:
        """100 points less for every device resource that the node has and the pod does not need."""
        unasked = self._devices[self.session.request[pod_class][self._devices] <= 0]
        if not len(unasked):
            return None
        has = self.session.node_table.allocatable[unasked] > 0
        wasted: Scores = has.sum(axis=0) * (-100.0 * self.weight)
        return wasted

    def score(self, pod_class: int, used: Amounts, nodes: Rows) -> Scores | None:
        """How full the node would be of the devices that the pod asks for: whole nodes stay whole
        for pods that need them.
        """
        asked = self._devices[self.session.request[pod_class][self._devices] > 0]
        if not len(asked):
            return None
        whole = np.maximum(self.session.node_table.allocatable[asked[:, None], nodes], 1)
        filled = (used[asked] + self.session.request[pod_class][asked, None]) / whole
        scores: Scores = filled.mean(axis=0) * (100.0 * self.weight)
        return scores
