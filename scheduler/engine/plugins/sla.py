"""Service levels: a job that has waited longer than promised is admitted, and the nearest deadline goes first."""

from __future__ import annotations

import math
from collections.abc import Mapping

from scheduler.engine.arguments import duration
from scheduler.engine.plugin import Key, Plugin, Vote
from scheduler.engine.state.gang import Job


class Sla(Plugin):
    """Argument: `sla-waiting-time`, such as 1h30m, for jobs that do not name their own."""

    name = "sla"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        super().__init__(arguments)
        self.waiting_time = duration(arguments, "sla-waiting-time")

    def deadline(self, job: Job) -> float:
        """When its waiting time is over; never, for a job without one."""
        own = float(self.session.snapshot.groups.sla_waiting_time[job.row])
        waiting = self.waiting_time if math.isnan(own) else own
        return math.inf if waiting is None else job.created + waiting

    def job_key(self, job: Job) -> Key:
        return (self.deadline(job),)

    def job_enqueueable(self, job: Job) -> Vote:
        return Vote.PERMIT if self.session.snapshot.taken_at > self.deadline(job) else Vote.ABSTAIN

    def job_pipelined(self, job: Job) -> Vote:
        return self.job_enqueueable(job)
