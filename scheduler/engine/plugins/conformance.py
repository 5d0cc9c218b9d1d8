"""Conformance: what the system itself needs is never evicted."""

from __future__ import annotations

from scheduler.engine.plugin import Plugin
from scheduler.engine.state.gang import Gang


class Conformance(Plugin):
    name = "conformance"

    def may_preempt(self, taker: Gang, pod_class: int, victim: Gang, victim_class: int) -> bool:
        return not self.session.snapshot.classes.critical[victim_class]

    may_reclaim = may_preempt
