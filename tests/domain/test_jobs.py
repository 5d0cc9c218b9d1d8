from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.domain.job_policies import JobAction, JobEvent, LifePolicy, action_for, read_policies
from scheduler.domain.jobs import (
    Dependency,
    JobFacts,
    JobPhase,
    NotPossible,
    PolicyEvents,
    TaskCount,
    command,
    follow_policies,
    react,
    ready_tasks,
    settle,
)


def job(phase: str = "Running", *, least: int = 2, **counts: int) -> JobFacts:
    return JobFacts(JobPhase(phase), least, (TaskCount("worker", 3, least, **counts),))


@pytest.mark.parametrize(
    ("facts", "phase"),
    [
        (job("Pending", pending=3), None),
        (job("Pending", running=1, pending=2), None),
        (job("Pending", running=2, pending=1), "Running"),
        (job(running=2, succeeded=1), None),
        (job(succeeded=3), "Completed"),
        (job(succeeded=2, failed=1), "Completed"),
        (job(succeeded=1, failed=2), "Failed"),
        (job("Pending", succeeded=3), "Completed"),
        (job(failed=2, pending=1), "Failed"),
        (job(failed=1, succeeded=1, pending=1), None),
        (job(failed=2, running=1), None),
        (job(failed=1, leaving=1, pending=1), None),
        (job("Aborting", leaving=1), None),
        (job("Aborting"), "Aborted"),
        (job("Terminating"), "Terminated"),
        (job("Restarting"), "Pending"),
        (job("Completing"), "Completed"),
        (job("Aborted"), None),
    ],
)
def test_a_job_settles_by_its_pods(facts: JobFacts, phase: str | None):
    step = settle(facts)

    assert (step.phase.value if step else None) == phase


def test_a_gang_of_which_too_few_are_left_is_not_waited_for():
    """Of four the gang needs three, two of them of one task: one of that task is left."""
    tasks = (
        TaskCount("a", 2, 2, failed=1, pending=1),
        TaskCount("b", 2, 0, succeeded=1, pending=1),
    )
    facts = JobFacts(JobPhase.RUNNING, 3, tasks)

    step = settle(facts)
    assert step
    assert (step.phase, step.stop_pods) == (JobPhase.FAILED, True)
    assert step.message == "1 pod failed: with those that are left the gang cannot be whole again"
    assert (
        settle(replace(facts, min_available=1)) is None
    )  # then the tasks' own minimums do not count


def test_enough_successes_complete_a_job_before_its_last_pod():
    facts = JobFacts(
        JobPhase.RUNNING, 3, (TaskCount("worker", 3, 3, running=2, succeeded=1),), min_success=1
    )

    step = settle(facts)

    assert step
    assert step.phase is JobPhase.COMPLETING
    assert step.stop_pods


@pytest.mark.parametrize(
    ("phase", "action", "result"),
    [
        ("Running", JobAction.ABORT, "Aborting"),
        ("Pending", JobAction.ABORT, "Aborting"),
        ("Aborted", JobAction.ABORT, None),
        ("Aborting", JobAction.ABORT, None),
        ("Aborted", JobAction.RESUME, "Restarting"),
        ("Running", JobAction.RESUME, None),
        ("Running", JobAction.TERMINATE, "Terminating"),
        ("Completed", JobAction.RESTART, "Restarting"),
        ("Failed", JobAction.RESTART, "Restarting"),
    ],
)
def test_what_a_command_begins(phase: str, action: JobAction, result: str | None):
    step = command(job(phase), action)

    assert (step.phase.value if step else None) == result


@pytest.mark.parametrize(
    ("phase", "action"),
    [("Completed", JobAction.ABORT), ("Failed", JobAction.RESUME), ("Aborted", JobAction.RESTART)],
)
def test_a_command_that_the_phase_forbids_says_why(phase: str, action: JobAction):
    with pytest.raises(NotPossible, match="it is"):
        command(job(phase), action)


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
        job(running=3), PolicyEvents([(event, task, code)]), {}, [policy[named]]
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
            job(phase, leaving=1), PolicyEvents([(JobEvent.POD_FAILED, "worker", 1)]), {}, policies
        )
        == []
    )


def test_the_tasks_policy_comes_before_the_jobs():
    task = (LifePolicy(JobAction.COMPLETE, (JobEvent.TASK_COMPLETED,)),)
    whole = (LifePolicy(JobAction.RESTART, (JobEvent.ANY,)),)

    assert action_for(JobEvent.TASK_COMPLETED, None, task, whole) is JobAction.COMPLETE
    assert action_for(JobEvent.POD_FAILED, 1, task, whole) is JobAction.RESTART
    assert action_for(JobEvent.POD_FAILED, 1, (), ()) is JobAction.SYNC


def test_an_exit_code_policy_answers_only_that_code():
    policy = (LifePolicy(JobAction.ABORT, exit_code=3),)

    assert action_for(JobEvent.POD_FAILED, 3, policy, ()) is JobAction.ABORT
    assert action_for(JobEvent.POD_FAILED, 4, policy, ()) is JobAction.SYNC


def test_a_job_fails_when_its_retries_are_used_up():
    facts = JobFacts(
        JobPhase.RUNNING, 1, (TaskCount("worker", 1, 1, failed=1),), retry_count=3, max_retry=3
    )

    step = react(facts, JobAction.RESTART)

    assert step
    assert step.phase is JobPhase.FAILED
    assert "3 of 3" in step.message


def test_a_task_waits_until_the_one_it_depends_on_runs():
    def job_with(**master: int) -> JobFacts:
        tasks = (TaskCount("master", 1, 1, **master), TaskCount("worker", 4, 4, created=False))
        return JobFacts(JobPhase.PENDING, 5, tasks, {"worker": Dependency(("master",))})

    assert ready_tasks(job_with(pending=1)) == []
    assert ready_tasks(job_with(running=1)) == ready_tasks(job_with(succeeded=1)) == ["worker"]
    assert settle(job_with(succeeded=1)) is None
    failed = settle(job_with(failed=1))
    assert failed
    assert (failed.phase, failed.message) == (
        JobPhase.FAILED,
        "task worker cannot begin: too few pods of master succeeded",
    )


def test_policies_that_can_not_be_meant_are_told_with_their_place():
    reading = read_policies(
        [
            {"event": "PodFailed", "action": "Explode"},
            {"action": "AbortJob"},
            {"exitCode": 0, "action": "AbortJob"},
        ],
        "spec.policies",
    )

    assert [problem.split(":")[0] for problem in reading.problems] == [
        "spec.policies[0].action",
        "spec.policies[1]",
        "spec.policies[2].exitCode",
    ]
