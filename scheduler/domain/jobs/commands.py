"""What a command of its owner begins with a job, or why its phase does not permit it."""

from __future__ import annotations

from scheduler.domain.jobs.facts import JobFacts, JobStep
from scheduler.domain.jobs.phases import FINISHED, STOPPING, JobPhase
from scheduler.domain.jobs.policies import JobAction

COMMANDS = frozenset(
    {JobAction.ABORT, JobAction.RESUME, JobAction.RESTART, JobAction.TERMINATE, JobAction.COMPLETE}
)


class NotPossible(Exception):
    """The job's phase does not permit this command; the message says why, for its owner."""


def command(facts: JobFacts, action: JobAction) -> JobStep | None:
    """The first step of a command; None when the job is already there. Raises `NotPossible`."""
    going, gone = STOPPING.get(action, (None, None))
    if facts.phase is going or (facts.phase is gone and action is not JobAction.RESTART):
        return None
    if action is JobAction.RESUME:
        return _resume_step(facts)
    if facts.phase in FINISHED and action is not JobAction.RESTART:
        raise NotPossible(f"it is {facts.phase} and has no pods left to stop")
    if facts.phase is JobPhase.ABORTED and action is JobAction.RESTART:
        raise NotPossible("it is suspended; resume it instead")
    assert going is not None
    return JobStep(going, _COMMANDED[action], stop_pods=True, forgives=action is JobAction.RESTART)


_COMMANDED = {
    JobAction.ABORT: "suspended on request",
    JobAction.TERMINATE: "cancelled on request",
    JobAction.COMPLETE: "completed on request",
    JobAction.RESTART: "restarted on request",
}


def _resume_step(facts: JobFacts) -> JobStep | None:
    if facts.phase in (JobPhase.ABORTED, JobPhase.ABORTING):
        return JobStep(JobPhase.RESTARTING, "resumed on request", stop_pods=True)
    if facts.phase in FINISHED:
        raise NotPossible(f"it is {facts.phase}; restart it to run it again")
    return None
