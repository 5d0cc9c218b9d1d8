"""Conformance: what the system itself needs is never evicted."""

from __future__ import annotations

from scheduler.engine.plugin import Plugin
from scheduler.engine.state.gang import Job


class Conformance(Plugin):
    name = "conformance"

    def may_preempt(self, taker: Job, kind: int, victim: Job, victim_kind: int) -> bool:
        return not self.session.snapshot.classes.critical[victim_kind]

    may_reclaim = may_preempt
