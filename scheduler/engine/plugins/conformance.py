"""Conformance: what the system itself needs is never evicted."""

from __future__ import annotations

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.engine.plugin import Plugin
from scheduler.engine.state.gang import Gang


class Conformance(Plugin):
    name = "conformance"
    only_tightens = True

    def may_preempt(self, taker: Gang, pod_class: int, victim: Gang, victim_class: int) -> bool:
        return not self.session.snapshot.classes.critical[victim_class]

    def may_preempt_each(
        self, taker: Gang, pod_class: int, victims: Rows, victim_classes: Rows
    ) -> Mask:
        may_go: Mask = ~self.session.snapshot.classes.critical[victim_classes]
        return may_go

    may_reclaim = may_preempt
    may_reclaim_each = may_preempt_each
