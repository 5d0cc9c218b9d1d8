"""The phases of a job, and which of them follow each other when its pods are stopped."""

from __future__ import annotations

from enum import StrEnum

from scheduler.domain.jobs.policies import JobAction


class JobPhase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


FINISHED = frozenset({JobPhase.ABORTED, JobPhase.COMPLETED, JobPhase.TERMINATED, JobPhase.FAILED})


STOPPING = {
    JobAction.ABORT: (JobPhase.ABORTING, JobPhase.ABORTED),
    JobAction.TERMINATE: (JobPhase.TERMINATING, JobPhase.TERMINATED),
    JobAction.COMPLETE: (JobPhase.COMPLETING, JobPhase.COMPLETED),
    JobAction.RESTART: (JobPhase.RESTARTING, JobPhase.PENDING),
}


AFTER_STOPPING = dict(STOPPING.values())
