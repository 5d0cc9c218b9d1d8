"""Service levels: a gang that has waited longer than promised is admitted, and the nearest deadline
goes first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from scheduler.domain.tables import Rows
from scheduler.engine.arguments import duration
from scheduler.engine.plugin import Key, Plugin, Vote
from scheduler.engine.state.gang import Gang


class Sla(Plugin):
    """Argument: `sla-waiting-time`, such as 1h30m, for gangs that do not name their own."""

    name = "sla"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        super().__init__(arguments)
        self.waiting_time = duration(arguments, "sla-waiting-time")

    def deadline(self, gang: Gang) -> float:
        """When its waiting time is over; never, for a gang without one."""
        own = float(self.session.snapshot.groups.sla_waiting_time[gang.row])
        waiting = self.waiting_time if math.isnan(own) else own
        if waiting is None:
            return math.inf
        return gang.created + waiting

    def job_key(self, gang: Gang) -> Key:
        return (self.deadline(gang),)

    def job_enqueueable(self, gang: Gang) -> Vote:
        if self.session.snapshot.taken_at > self.deadline(gang):
            return Vote.PERMIT
        return Vote.ABSTAIN

    def count_enqueueable(self, rows: Rows) -> int:
        return len(rows)

    def job_pipelined(self, gang: Gang) -> Vote:
        return self.job_enqueueable(gang)
