from __future__ import annotations

from typing import Any

import pytest

from scheduler.admission.violations import Rejected
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.resources import Resources
from scheduler.models import Command, Event, Job, Pod, PodClass, PodGroup, Queue
from scheduler.services.jobs.pods import template_of
from scheduler.services.jobs.submit import command_job, submit_job
from tests.worlds import job, manifest, node, pass_time, phases, run_session

pytestmark = [pytest.mark.django_db]


def test_a_job_becomes_one_podgroup_and_its_pods():
    made = job("train", replicas=3, least=2, cpu="500m")

    assert made.podgroup.min_member == 2
    assert made.podgroup.min_resources == Resources.parse({"cpu": "1"})
    assert [pod.name for pod in made.podgroup.pods.order_by("index")] == [
        "train-worker-0",
        "train-worker-1",
        "train-worker-2",
    ]
    assert phases(made) == ["Pending"] * 3


def test_pods_that_ask_the_same_share_one_class():
    job("a", replicas=3)
    job("b", replicas=2)

    assert PodClass.objects.count() == 1


def test_a_submission_is_a_few_statements_however_large_it_is(django_assert_num_queries: Any):
    job("first")  # its namespace and its class of pods are there from now on

    for name, replicas in (("one", 1), ("some", 12), ("many", 40)):
        # Savepoint and release; the scene; class; job, podgroup, pods, audit.
        with django_assert_num_queries(8):
            job(name, replicas=replicas)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"queue": "nowhere"}, "queue_not_found"),
        ({"queue": "root"}, "queue_is_root"),
        ({"minAvailable": 9}, "min_available_exceeds_replicas"),
        ({"policies": [{"event": "Sneeze", "action": "AbortJob"}]}, "invalid_policy"),
    ],
)
def test_a_job_that_breaks_a_rule_is_refused_and_leaves_nothing(
    change: dict[str, object], rule: str
):
    asked = manifest("train")
    asked["spec"].update(change)

    with pytest.raises(Rejected) as refusal:
        submit_job(asked)

    assert rule in {violation.rule_id for violation in refusal.value.violations}
    assert not Job.objects.exists()


def test_a_closed_queue_takes_no_job_and_a_suspended_one_does():
    Queue.objects.filter(name="default").update(wish="Closed", state="Closed")
    with pytest.raises(Rejected):
        job("late")
    Queue.objects.filter(name="default").update(
        wish="Suspended", state="Suspended", held_by="default"
    )

    assert job("early").phase == "Pending"


def test_a_name_is_used_once():
    job("train")

    with pytest.raises(Rejected, match="already"):
        job("train")


def test_a_dry_run_says_what_would_be_and_writes_nothing():
    submit_job(manifest("train"), dry_run=True)

    assert not Job.objects.exists()
    assert not PodGroup.objects.exists()


def test_a_job_runs_and_completes():
    node("n1", cpu="8")
    made = job("train", replicas=2, cpu="2", seconds=10)

    run_session()
    assert phases(made) == ["Bound", "Bound"]
    pass_time(3)
    made.refresh_from_db()
    assert (made.phase, phases(made)) == ("Running", ["Running", "Running"])
    pass_time(12)
    made.refresh_from_db()
    assert (made.phase, phases(made)) == ("Completed", ["Succeeded", "Succeeded"])
    assert made.podgroup.phase == "Completed"


def test_a_failed_pod_restarts_the_job_until_its_retries_are_used_up():
    node("n1", cpu="8")
    made = job(
        "crash",
        seconds=1,
        exit_code=1,
        maxRetry=1,
        policies=[{"event": "PodFailed", "action": "RestartJob"}],
    )

    for _ in range(4):
        run_session()
        pass_time(8)
        made.refresh_from_db()

    assert made.phase == "Failed"
    assert made.retry_count == 1
    assert PodGroup.objects.get(job=made).phase == "Completed"


def test_suspend_stops_the_pods_and_resume_starts_new_ones():
    node("n1", cpu="8")
    made = job("train", replicas=2)
    run_session()
    pass_time(3)

    command_job("default", "train", "Suspend")
    made.refresh_from_db()
    assert (made.phase, phases(made)) == ("Aborting", ["Releasing", "Releasing"])
    run_session()
    pass_time(5)
    made.refresh_from_db()
    assert (made.phase, phases(made)) == ("Aborted", [])
    assert PodGroup.objects.get(job=made).phase == "Completed"

    command_job("default", "train", "Resume")
    made.refresh_from_db()
    assert (made.phase, phases(made)) == ("Pending", ["Pending", "Pending"])
    run_session()
    assert phases(made) == ["Bound", "Bound"]


def test_a_second_suspend_is_a_no_op_and_says_so():
    job("train")
    command_job("default", "train", "Suspend")

    result = command_job("default", "train", "Suspend")

    assert not result.changed
    assert "already" in result.message
    assert [row.result for row in Command.objects.order_by("id")] == ["Done", "NoOp"]


def test_resume_needs_a_queue_that_takes_jobs():
    job("train")
    command_job("default", "train", "Suspend")
    Queue.objects.filter(name="default").update(wish="Closed", state="Closed")

    with pytest.raises(Rejected) as refusal:
        command_job("default", "train", "Resume")

    assert refusal.value.by_state


def test_a_job_restarted_inside_a_closing_queue_keeps_its_podgroup():
    node("n1", cpu="8")
    made = job("train")
    before = made.podgroup.pk
    run_session()
    pass_time(3)
    Queue.objects.filter(name="default").update(wish="Closed", state="Closing")

    command_job("default", "train", "Restart")
    run_session()
    pass_time(5)
    made.refresh_from_db()

    assert made.phase == "Pending"
    assert PodGroup.objects.get(job=made).pk == before


def test_an_unknown_command_is_refused():
    job("train")

    with pytest.raises(NotPossible, match="Explode"):
        command_job("default", "train", "Explode")


def test_tasks_wait_for_those_they_depend_on():
    node("n1", cpu="8")
    asked = manifest("pipeline", minAvailable=1)
    (first,) = asked["spec"]["tasks"]
    asked["spec"]["tasks"] = [
        {**first, "name": "prepare"},
        {**first, "name": "train", "dependsOn": {"name": ["prepare"]}},
    ]
    asked["spec"]["minAvailable"] = 1

    made = submit_job(asked).job
    assert list(made.podgroup.pods.values_list("task", flat=True)) == ["prepare"]
    run_session()
    pass_time(3)

    assert set(made.podgroup.pods.values_list("task", flat=True)) == {"prepare", "train"}


def test_an_evicted_pod_comes_back_to_wait_for_a_place():
    node("n1", cpu="8")
    made = job("train", replicas=2, least=1)
    run_session()
    pass_time(3)
    pod = Pod.objects.filter(podgroup=made.podgroup).first()
    assert pod
    Pod.objects.filter(pk=pod.pk).update(phase="Releasing")
    from scheduler.models import Decision

    Decision.objects.create(
        kind="Evict",
        pod=pod,
        pod_name="x",
        action="reclaim",
        created_at=pod.created_at,
    )
    from scheduler.services.cluster.dispatch import dispatch

    dispatch()
    pass_time(4)
    again = Pod.objects.get(pk=pod.pk)

    assert (again.phase, again.node_id) == ("Pending", None)
    assert again.uid != pod.uid


def test_what_happened_to_a_job_is_told_in_events():
    job("train")
    command_job("default", "train", "Cancel")

    assert Event.objects.filter(kind="Job", name="train", reason="Terminated").exists()


def test_alike_templates_are_read_once_and_long_ones_are_not_kept():
    small = {"spec": {"containers": [{"resources": {"requests": {"cpu": "3"}}}]}}
    large = {"metadata": {"annotations": {"note": "x" * 10_000}}, **small}

    assert template_of(small) is template_of(dict(small))
    assert template_of(large) is not template_of(large)
    assert (
        template_of(large).requests == template_of(small).requests == Resources.parse({"cpu": "3"})
    )
