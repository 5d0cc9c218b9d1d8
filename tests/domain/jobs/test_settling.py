"""Where a job stands by its pods alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.domain.jobs.dependencies import Dependency
from scheduler.domain.jobs.facts import JobFacts, TaskCount
from scheduler.domain.jobs.phases import JobPhase
from scheduler.domain.jobs.settling import ready_tasks, settle
from tests.domain.jobs.builders import job


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
        JobPhase.RUNNING,
        3,
        (TaskCount("worker", 3, 3, running=2, succeeded=1),),
        min_success=1,
    )

    step = settle(facts)

    assert step
    assert step.phase is JobPhase.COMPLETING
    assert step.stop_pods


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
