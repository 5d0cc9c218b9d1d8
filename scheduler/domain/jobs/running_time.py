"""How long a job has run, through restarts and suspensions.

It is kept as the moment at which an unbroken run of this length would have begun. While the job
does not run, that moment moves along with the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from scheduler.domain.jobs.phases import JobPhase

_ADMITTED_AGAIN: Final = (JobPhase.COMPLETED, JobPhase.TERMINATED, JobPhase.FAILED)
"""A job that leaves one of these has been asked for anew, and has all its time again."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A phase, since when, when the run is taken to have begun, and since when no pod runs."""

    phase: str
    since: datetime | None
    begun: datetime | None = None
    paused: datetime | None = None


def run_begun(before: Stage | None, phase: str, since: datetime | None) -> datetime | None:
    """When the run of a job is taken to have begun, now that it has this phase since then."""
    if before is None or before.since is None or since is None:
        return _first_begin(phase, since)
    if before.phase in _ADMITTED_AGAIN and phase != before.phase:
        return _first_begin(phase, since)
    if before.phase == JobPhase.RUNNING:
        return _after_running(before, since)
    if before.begun is None:
        return _first_begin(phase, since)
    return before.begun + (since - before.since)


def _first_begin(phase: str, since: datetime | None) -> datetime | None:
    if phase == JobPhase.RUNNING:
        return since
    return None


def _after_running(before: Stage, since: datetime) -> datetime | None:
    begun = before.begun or before.since
    if begun is None or before.paused is None:
        return begun
    return begun + max(since - before.paused, timedelta())
