"""Priorities: higher jobs and pods first, and only lower ones make room for them."""

from __future__ import annotations

from scheduler.engine.plugin import Key, Plugin
from scheduler.engine.state.gang import Job


class Priority(Plugin):
    name = "priority"

    def job_key(self, job: Job) -> Key:
        return (-job.priority,)

    def task_key(self, kind: int) -> Key:
        return (-int(self.session.snapshot.classes.priority[kind]),)

    def job_starving(self, job: Job) -> bool:
        """A job wants all its pods; beside gang, in the same tier, gang's stricter rule wins."""
        return job.ready + job.waiting < job.tasks

    def may_preempt(self, taker: Job, kind: int, victim: Job, victim_kind: int) -> bool:
        """Another job must be of lower priority, a pod of the same job of lower priority itself."""
        if victim is not taker:
            return victim.priority < taker.priority
        priority = self.session.snapshot.classes.priority
        return bool(priority[victim_kind] < priority[kind])
