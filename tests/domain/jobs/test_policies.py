"""Policies as a manifest has them, and which of them answers."""

from __future__ import annotations

from scheduler.domain.jobs.policies import (
    JobAction,
    JobEvent,
    LifePolicy,
    action_for,
    read_policies,
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
