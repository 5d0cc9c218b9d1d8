"""A job of three workers, in few words."""

from __future__ import annotations

from scheduler.domain.jobs.facts import JobFacts, TaskCount
from scheduler.domain.jobs.phases import JobPhase


def job(phase: str = "Running", *, least: int = 2, **counts: int) -> JobFacts:
    return JobFacts(JobPhase(phase), least, (TaskCount("worker", 3, least, **counts),))
