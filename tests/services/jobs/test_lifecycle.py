"""What policies and fates of pods make of jobs, one by one and many at once."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import Job, Pod, PodGroup, Queue
from scheduler.services.jobs.lifecycle import sync_jobs, tell_jobs_of_unknown
from scheduler.services.jobs.podgroups import delete_podgroup, submit_podgroup
from scheduler.services.jobs.single_pods import delete_pod, submit_pod
from scheduler.services.jobs.submit import submit_job
from scheduler.services.queues.commands import command_queue
from tests.histories import broken_rules
from tests.worlds import (
    job,
    let_age,
    let_wait,
    manifest,
    node,
    pass_time,
    phases,
    queue,
    run_session,
)

pytestmark = [pytest.mark.django_db]


def two_tasks(name: str = "two", bad_code: int = 1, **spec: Any) -> Job:
    """One task runs long, the other ends after a second with this exit code."""
    asked = manifest(name, minAvailable=2, **spec)
    (first,) = asked["spec"]["tasks"]
    annotations = {"fumarole.io/run-seconds": "1", "fumarole.io/exit-code": str(bad_code)}
    template = {**first["template"], "metadata": {"annotations": annotations}}
    asked["spec"]["tasks"] = [first, {**first, "name": "short", "template": template}]
    return submit_job(asked).job


def run_a_while(made: Job) -> Job:
    run_session()
    pass_time(5)
    made.refresh_from_db()
    return made


@pytest.mark.parametrize("action", ["RestartTask", "RestartPod"])
def test_only_the_part_that_failed_starts_anew_and_that_counts_as_a_retry(action: str):
    node("n1", cpu="8")
    made = run_a_while(two_tasks(policies=[{"event": "PodFailed", "action": action}]))

    assert made.retry_count == 1
    assert dict(Pod.objects.values_list("task", "phase")) == {
        "worker": "Running",
        "short": "Pending",
    }


def test_a_part_that_fails_again_and_again_makes_the_job_fail():
    node("n1", cpu="8")
    made = two_tasks(maxRetry=1, policies=[{"event": "PodFailed", "action": "RestartTask"}])
    for _ in range(3):
        run_a_while(made)
    pass_time(5)
    made.refresh_from_db()

    assert (made.phase, made.retry_count) == ("Failed", 1)
    assert PodGroup.objects.get(job=made).phase == "Completed"


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [
        ({"event": "TaskCompleted", "action": "CompleteJob"}, 0, "Completed"),
        ({"event": "TaskFailed", "action": "TerminateJob"}, 1, "Terminated"),
        ({"exitCode": 7, "action": "AbortJob"}, 7, "Aborted"),
        ({"exitCode": 7, "action": "AbortJob"}, 8, "Running"),
        ({"events": ["*"], "action": "AbortJob"}, 1, "Aborted"),
    ],
)
def test_a_policy_decides_what_an_event_or_an_exit_code_means(
    policy: dict[str, object],
    code: int,
    phase: str,
):
    node("n1", cpu="8")
    made = run_a_while(two_tasks(bad_code=code, policies=[policy]))
    run_a_while(made)

    assert made.phase == phase


def test_a_task_has_policies_of_its_own_that_come_first():
    node("n1", cpu="8")
    asked = manifest(
        "train",
        seconds=1,
        exit_code=1,
        policies=[{"event": "PodFailed", "action": "AbortJob"}],
    )
    asked["spec"]["tasks"][0]["policies"] = [{"event": "PodFailed", "action": "TerminateJob"}]
    made = submit_job(asked).job
    run_a_while(made)

    assert (
        made.phase in ("Terminating", "Terminated", "Pending")
        or run_a_while(made).phase == "Terminated"
    )
    assert Job.objects.get(pk=made.pk).phase == "Terminated"


def test_a_gang_in_trouble_tells_its_job():
    node("n1", cpu="8")
    made = run_a_while(
        job("train", replicas=2, policies=[{"event": "JobUnknown", "action": "AbortJob"}])
    )

    tell_jobs_of_unknown([made.podgroup.pk])

    made.refresh_from_db()
    assert made.phase == "Aborting"


def test_an_evicted_pod_follows_its_policy():
    node("n1", cpu="2")
    queue("rich", deserved={"cpu": "1"})
    queue("poor", deserved={"cpu": "1"})
    made = run_a_while(
        job(
            "old",
            "rich",
            replicas=2,
            least=1,
            policies=[{"event": "PodEvicted", "action": "TerminateJob"}],
        )
    )
    let_age()
    job("new", "poor")
    let_wait()
    run_session()
    for _ in range(3):
        pass_time(4)
        run_session()
    made.refresh_from_db()

    assert made.phase == "Terminated"
    assert broken_rules() == []


def test_many_jobs_move_on_with_as_many_queries_as_one():
    node("n1", cpu="400")
    counts = []
    for number, jobs in enumerate((1, 25)):
        made = [
            job(f"j{number}-{index}", seconds=3600) for index in range(jobs)
        ]  # none ends by itself, however slow the machine
        run_session()
        pass_time(3)
        Pod.objects.filter(podgroup__job__in=[row.pk for row in made]).update(phase="Succeeded")
        with CaptureQueriesContext(connection) as log:
            sync_jobs([row.pk for row in made])
        counts.append(len(log.captured_queries))
        assert set(
            Job.objects.filter(pk__in=[row.pk for row in made]).values_list("phase", flat=True)
        ) == {"Completed"}

    assert counts[0] == counts[1]


def pod_manifest(name: str, **metadata: Any) -> dict[str, Any]:
    spec = {
        "containers": [
            {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
        ]
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def test_a_gang_from_outside_starts_when_its_pods_are_there():
    node("n1", cpu="8")
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "outside", "namespace": "default"},
        "spec": {"minMember": 2, "queue": "default"},
    }
    submit_podgroup(group)
    belongs = {"annotations": {"scheduling.k8s.io/group-name": "outside"}}
    submit_pod(pod_manifest("one", **belongs))
    run_session()
    assert list(Pod.objects.values_list("phase", flat=True)) == ["Pending"]
    submit_pod(pod_manifest("two", **belongs))
    run_session()

    assert list(Pod.objects.values_list("phase", flat=True)) == ["Bound", "Bound"]
    pass_time(200)
    run_session()
    assert PodGroup.objects.get(name="outside").phase == "Completed"


def test_a_bare_pod_is_a_gang_of_its_own():
    node("n1", cpu="8")
    submit_pod(pod_manifest("alone"))

    run_session()

    assert Pod.objects.get(name="alone").phase == "Bound"
    assert PodGroup.objects.get().job is None


def test_a_gang_from_outside_that_is_deleted_keeps_its_room_until_its_pods_have_left():
    node("n1", cpu="1")
    submit_pod(pod_manifest("alone"))
    run_session()
    pass_time(3)
    group = PodGroup.objects.get()
    delete_podgroup(group.namespace, group.name)
    late = job("late")
    run_session()
    assert phases(late) == ["Pending"]
    assert broken_rules() == []

    pass_time(5)
    run_session()

    assert not PodGroup.objects.filter(pk=group.pk).exists()
    assert phases(late) == ["Bound"]


def test_a_bare_pod_that_is_deleted_takes_its_gang_with_it_and_lets_the_queue_close():
    queue("shut")
    submit_pod(pod_manifest("alone", annotations={"scheduling.volcano.sh/queue-name": "shut"}))
    command_queue("shut", QueueCommand.CLOSE)
    assert Queue.objects.get(name="shut").state == "Closing"

    delete_pod("default", "alone")

    assert not PodGroup.objects.exists()
    assert Queue.objects.get(name="shut").state == "Closed"


@pytest.mark.parametrize(
    "delete", [delete_pod, delete_podgroup], ids=lambda function: function.__name__
)
def test_a_queue_closes_when_the_last_pod_of_a_deleted_gang_has_left_its_node(delete: Any):
    node("n1", cpu="1")
    queue("shut")
    submit_pod(pod_manifest("alone", annotations={"scheduling.volcano.sh/queue-name": "shut"}))
    run_session()
    pass_time(3)
    command_queue("shut", QueueCommand.CLOSE)

    delete("default", "alone")
    run_session()
    assert Queue.objects.get(name="shut").state == "Closing"
    pass_time(5)

    assert not PodGroup.objects.exists()
    assert Queue.objects.get(name="shut").state == "Closed"


def test_a_pod_of_a_gang_from_outside_leaves_the_gang_behind():
    submit_podgroup(
        {
            "metadata": {"name": "outside", "namespace": "default"},
            "spec": {"minMember": 1, "queue": "default"},
        }
    )
    submit_pod(pod_manifest("one", annotations={"scheduling.k8s.io/group-name": "outside"}))

    delete_pod("default", "one")

    assert PodGroup.objects.get().name == "outside"


def test_one_eviction_starts_a_task_anew_once():
    node("n1", cpu="8")
    made = run_a_while(
        job(
            "train",
            replicas=3,
            maxRetry=3,
            policies=[{"event": "PodEvicted", "action": "RestartTask"}],
            seconds=3600,
        )
    )
    delete_pod("default", "train-worker-0")

    for _ in range(6):
        run_session()
        pass_time(4)
    made.refresh_from_db()

    assert (made.phase, made.retry_count, phases(made)) == ("Running", 1, ["Running"] * 3)
