"""What policies make of the events in a job."""

from __future__ import annotations

import pytest

from scheduler.domain.jobs.facts import JobFacts, TaskCount
from scheduler.domain.jobs.phases import JobPhase
from scheduler.domain.jobs.policies import (
    JobAction,
    JobEvent,
    LifePolicy,
)
from scheduler.domain.jobs.reactions import PolicyEvents, follow_policies, react
from tests.domain.jobs.builders import job

HAPPENINGS = {
    JobEvent.POD_FAILED: ("worker", 7),
    JobEvent.POD_EVICTED: ("worker", None),
    JobEvent.TASK_COMPLETED: ("worker", None),
    JobEvent.TASK_FAILED: ("worker", None),
    JobEvent.JOB_UNKNOWN: ("", None),
}


WHAT_FOLLOWS = {
    JobAction.SYNC: (),
    JobAction.RESUME: (),
    JobAction.ABORT: (("Aborting", True, 0, "", False),),
    JobAction.TERMINATE: (("Terminating", True, 0, "", False),),
    JobAction.COMPLETE: (("Completing", True, 0, "", False),),
    JobAction.RESTART: (("Restarting", True, 1, "", False),),
    JobAction.RESTART_TASK: (("Running", False, 1, "worker", False),),
    JobAction.RESTART_POD: (("Running", False, 1, "worker", True),),
}


@pytest.mark.parametrize("action", JobAction)
@pytest.mark.parametrize("named", ["its own", "any", "exit code"])
@pytest.mark.parametrize("event", HAPPENINGS)
def test_every_action_follows_every_event(event: JobEvent, named: str, action: JobAction):
    task, code = HAPPENINGS[event]
    policy = {
        "its own": LifePolicy(action, (event,)),
        "any": LifePolicy(action, (JobEvent.ANY,)),
        "exit code": LifePolicy(action, (), 7),
    }
    is_answered = named != "exit code" or event is JobEvent.POD_FAILED
    if (event, action) == (JobEvent.TASK_COMPLETED, JobAction.RESTART_POD):  # no pod of it failed
        is_answered = False

    steps = follow_policies(
        job(running=3),
        PolicyEvents([(event, task, code)]),
        {},
        [policy[named]],
    )

    found = tuple(
        (step.phase.value, step.stop_pods, step.retries, step.again, step.only_failed)
        for step in steps
    )
    wanted = WHAT_FOLLOWS[
        JobAction.RESTART
        if not task and action in (JobAction.RESTART_TASK, JobAction.RESTART_POD)
        else action
    ]
    assert found == (wanted if is_answered else ())


@pytest.mark.parametrize(
    "phase",
    [
        "Restarting",
        "Aborting",
        "Completing",
        "Terminating",
        "Aborted",
        "Completed",
        "Terminated",
        "Failed",
    ],
)
@pytest.mark.parametrize("action", JobAction)
def test_a_job_that_ends_or_has_ended_follows_no_policy(action: JobAction, phase: str):
    policies = [LifePolicy(action, (JobEvent.ANY,))]

    assert (
        follow_policies(
            job(phase, leaving=1),
            PolicyEvents([(JobEvent.POD_FAILED, "worker", 1)]),
            {},
            policies,
        )
        == []
    )


def test_a_job_fails_when_its_retries_are_used_up():
    facts = JobFacts(
        JobPhase.RUNNING,
        1,
        (TaskCount("worker", 1, 1, failed=1),),
        retry_count=3,
        max_retry=3,
    )

    step = react(facts, JobAction.RESTART)

    assert step
    assert step.phase is JobPhase.FAILED
    assert "3 of 3" in step.message
