"""Predicates: which nodes a pod may run on at all."""

from __future__ import annotations

from scheduler.domain.nodes import Mask
from scheduler.engine.plugin import Plugin
from scheduler.engine.state.constraints import suitable_nodes


class Predicates(Plugin):
    """Node selector, required node affinity, taints and the unschedulable mark; compiled once per
    distinct constraint.
    """

    name = "predicates"
    node_answers_last = True

    def suitable(self, pod_class: int) -> Mask | None:
        classes = self.session.snapshot.classes
        constraint = classes.constraints[int(classes.constraint[pod_class])]
        return suitable_nodes(constraint, self.session.snapshot.nodes)
