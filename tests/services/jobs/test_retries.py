"""How often a job, and a task of it, is tried again; and what people change of that."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.models import Job, Pod, PodGroup, SimulatedPod
from scheduler.services.jobs.changes import update_job
from scheduler.services.jobs.submit import command_job, submit_job
from tests.worlds import job, manifest, node, pass_time, phases, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

RESTART_JOB = [{"event": "PodFailed", "action": "RestartJob"}]


def live(made: Job, rounds: int = 1) -> Job:
    """Each round is long enough for a pod to start and fail, and for another to leave."""
    for _ in range(rounds):
        run_session()
        pass_time(8)
    made.refresh_from_db()
    return made


def end_pod(name: str, exit_code: int = 0) -> None:
    SimulatedPod.objects.filter(pk=Pod.objects.get(name=name).pk).update(
        next_at=0, exit_code=exit_code
    )
    pass_time(0.1)


def test_who_restarts_a_failed_job_gives_it_all_its_retries_again():
    node("n1", cpu="8")
    made = live(job("crash", seconds=1, exit_code=1, maxRetry=1, policies=RESTART_JOB), rounds=4)
    assert (made.phase, made.retry_count) == ("Failed", 1)

    command_job("default", "crash", "Restart")
    made.refresh_from_db()
    assert (made.phase, made.retry_count) == ("Pending", 0)

    assert live(made).retry_count == 1
    assert live(made, rounds=3).phase == "Failed"


def test_suspending_and_resuming_a_job_is_no_way_around_its_limit():
    node("n1", cpu="8")
    made = live(job("crash", seconds=1, exit_code=1, maxRetry=1, policies=RESTART_JOB))
    assert made.retry_count == 1

    command_job("default", "crash", "Suspend")
    command_job("default", "crash", "Resume")
    made.refresh_from_db()
    assert (made.phase, made.retry_count) == ("Pending", 1)

    assert live(made, rounds=2).phase == "Failed"


def two_tasks(
    max_retry: int | None,
    *more: dict[str, Any],
    action: str = "RestartTask",
    **spec: Any,
) -> Job:
    """One task runs long, the other ends badly after a second and may be tried so often."""
    asked = manifest(
        "two",
        seconds=3600,
        minAvailable=2,
        policies=[{"event": "PodFailed", "action": action}, *more],
        **spec,
    )
    (first,) = asked["spec"]["tasks"]
    annotations = {"fumarole.io/run-seconds": "1", "fumarole.io/exit-code": "1"}
    short = {
        **first,
        "name": "short",
        "template": {**first["template"], "metadata": {"annotations": annotations}},
    }
    asked["spec"]["tasks"] = [
        first,
        short if max_retry is None else {**short, "maxRetry": max_retry},
    ]
    return submit_job(asked).job


@pytest.mark.parametrize("action", ["RestartTask", "RestartPod"])
def test_a_task_that_was_tried_as_often_as_it_may_be_stays_failed_and_the_job_goes_on(action: str):
    node("n1", cpu="8")
    made = live(two_tasks(1, action=action, maxRetry=5), rounds=5)

    assert (made.phase, made.retry_count, made.task_retries) == ("Running", 1, {"short": 1})
    assert dict(Pod.objects.values_list("task", "phase")) == {
        "worker": "Running",
        "short": "Failed",
    }


def test_a_policy_says_what_the_failure_of_a_task_means():
    node("n1", cpu="8")
    made = live(
        two_tasks(1, {"event": "TaskFailed", "action": "TerminateJob"}, maxRetry=5), rounds=5
    )

    assert (made.phase, made.retry_count) == ("Terminated", 1)


@pytest.mark.parametrize("max_retry", [None, -1])
def test_without_a_limit_of_its_own_a_task_is_tried_as_often_as_the_job(max_retry: int | None):
    node("n1", cpu="8")
    made = live(two_tasks(max_retry, maxRetry=5), rounds=8)

    assert (made.phase, made.retry_count) == ("Failed", 5)


def test_the_tries_of_a_task_begin_anew_with_the_job():
    node("n1", cpu="8")
    made = live(two_tasks(1, maxRetry=5), rounds=4)
    command_job("default", "two", "Restart")

    assert live(made).task_retries == {}
    assert live(made).task_retries == {"short": 1}


def test_pods_of_a_task_that_fail_together_are_one_retry():
    node("n1", cpu="8")
    made = live(
        job(
            "crash",
            replicas=3,
            seconds=1,
            exit_code=1,
            maxRetry=1,
            policies=[{"event": "PodFailed", "action": "RestartPod"}],
        )
    )

    assert (made.retry_count, phases(made)) == (1, ["Pending"] * 3)


def test_a_task_that_completed_uses_up_no_retries_of_its_job():
    """Whatever happens, restart the pods that failed: none did."""
    node("n1", cpu="8")
    asked = manifest(
        "train",
        seconds=3600,
        maxRetry=1,
        policies=[{"event": "*", "action": "RestartPod"}],
    )
    (first,) = asked["spec"]["tasks"]
    asked["spec"]["tasks"] = [{**first, "name": name} for name in ("a", "b", "c")]
    made = live(submit_job(asked).job)
    for task in "abc":
        end_pod(f"train-{task}-0")

    made.refresh_from_db()
    assert (made.phase, made.retry_count) == ("Completed", 0)


def with_a_side(**spec: Any) -> Job:
    """Two workers, and another task beside them; all run long."""
    asked = manifest("train", replicas=2, least=1, seconds=3600, **spec)
    (first,) = asked["spec"]["tasks"]
    asked["spec"]["tasks"] = [first, {**first, "name": "side", "replicas": 1}]
    return live(submit_job(asked).job)


def test_a_task_may_be_completed_by_taking_away_what_still_runs():
    node("n1", cpu="8")
    made = with_a_side(policies=[{"event": "TaskCompleted", "action": "CompleteJob"}])
    end_pod("train-worker-0")
    assert Job.objects.get().phase == "Running"

    update_job(
        "default",
        "train",
        {"spec": {"tasks": [{**task, "replicas": 1} for task in made.tasks]}},
        merge=True,
    )

    assert Job.objects.get().phase == "Completing"


def test_what_is_changed_of_a_job_and_completes_no_task_follows_no_policy():
    node("n1", cpu="8")
    made = with_a_side(policies=[{"event": "TaskCompleted", "action": "RestartJob"}])
    Pod.objects.filter(task="worker").update(phase="Succeeded")

    update_job("default", "train", {"metadata": {"labels": {"a": "b"}}}, merge=True)

    made.refresh_from_db()
    assert (made.phase, made.retry_count) == ("Running", 0)


def test_a_podgroup_has_the_labels_and_annotations_of_its_job_also_after_a_change():
    asked = manifest("train")
    asked["metadata"] |= {"labels": {"team": "red"}, "annotations": {"sla-waiting-time": "90s"}}
    submit_job(asked)
    group = PodGroup.objects.get()
    assert (group.labels, group.annotations, group.sla_waiting_seconds) == (
        {"team": "red"},
        {"sla-waiting-time": "90s"},
        90,
    )

    changed = {
        "metadata": {
            "labels": {"team": "blue"},
            "annotations": {"sla-waiting-time": "2m", "note": "urgent"},
        }
    }
    update_job("default", "train", changed, merge=True)

    group.refresh_from_db()
    assert (group.labels, group.sla_waiting_seconds) == ({"team": "blue"}, 120)
    assert group.annotations == {"sla-waiting-time": "2m", "note": "urgent"}

    update_job(
        "default",
        "train",
        {"metadata": {"annotations": {"sla-waiting-time": None}}},
        merge=True,
    )
    assert PodGroup.objects.get().sla_waiting_seconds is None
