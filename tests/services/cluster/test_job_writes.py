"""Jobs of the console in a real cluster: submitted, commanded, scaled and deleted through it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler.admission.violations import Rejected
from scheduler.models import AuditEntry, Command, Job, Pod
from scheduler.services.accounts.actors import Actor
from scheduler.services.cluster.server_refusals import ClusterAway
from scheduler.services.files.apply import apply_documents
from scheduler.services.jobs.changes import delete_job, update_job
from scheduler.services.jobs.run_limits import end_overrunning_jobs
from scheduler.services.jobs.submit import command_job, submit_job
from scheduler.services.queues.create_update import update_queue
from tests.control_plane import objects
from tests.control_plane.objects import wait_until
from tests.services.cluster.jobs.examples import job, task
from tests.services.cluster.jobs.test_real_jobs import phase, phases, pods, running_pods
from tests.services.cluster.test_queues_both_ways import watching
from tests.services.cluster.test_scheduled_cluster import (
    PODS,
    QUEUES,
    VOLCANO_JOBS,
    Worker,
    make_node,
    scheduling,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]
ANN = Actor("ann")


def plain_job(name: str = "train", replicas: int = 2, **spec: Any) -> dict[str, Any]:
    """As the form makes one: it names no scheduler."""
    found = job(name, task("worker", replicas), **spec)
    del found["spec"]["schedulerName"]
    return found


def test_a_job_runs_is_suspended_scaled_cancelled_and_deleted_from_here(control_plane):
    api = control_plane.api
    make_node(api, "n1")

    with running_pods(control_plane), scheduling(control_plane):
        worker = Worker()
        submitted = submit_job(plain_job(), by=ANN)
        stored = api.get(f"{VOLCANO_JOBS}/train")
        assert str(submitted.job.uid) == stored["metadata"]["uid"]
        assert submitted.job.pk is not None
        assert submitted.job.owner == "ann"
        assert stored["spec"]["schedulerName"] == "fumarole"
        assert stored["spec"]["minAvailable"] == 2
        worker.work_until(lambda: phases(api) == {"Running": 2}, "its pods to run")
        _wait_for_phase("Running")

        assert command_job("default", "train", "Suspend", by=ANN, reason="too early").changed
        worker.work_until(lambda: phase(api, "train") == "Aborted", "it to be suspended")
        assert pods(api) == {}
        _wait_for_phase("Aborted")
        command_job("default", "train", "Resume", by=ANN)
        worker.work_until(lambda: phases(api) == {"Running": 2}, "its pods to run again")
        _wait_for_phase("Running")

        tasks = [{**stored["spec"]["tasks"][0], "replicas": 3}]
        update_job("default", "train", {"spec": {"tasks": tasks}}, by=ANN, merge=True)
        worker.work_until(lambda: phases(api) == {"Running": 3}, "a third pod to run")

        command_job("default", "train", "Cancel", by=ANN)
        worker.work_until(lambda: phase(api, "train") == "Terminated", "it to be cancelled")
        _wait_for_phase("Terminated")
        wait_until(lambda: not Pod.objects.exists(), "its pods to go")
        delete_job("default", "train", by=ANN)
        assert api.get(VOLCANO_JOBS)["items"] == []
        wait_until(lambda: not Job.objects.exists(), "the mirror")

    given = Command.objects.order_by("id").values_list("action", "actor", "result")
    assert list(given) == [
        ("AbortJob", "ann", Command.DONE),
        ("ResumeJob", "ann", Command.DONE),
        ("TerminateJob", "ann", Command.DONE),
    ]
    assert AuditEntry.objects.filter(actor="ann", name="train").count() == 6


def test_a_job_that_runs_for_too_long_is_ended_in_the_cluster(control_plane):
    api = control_plane.api
    make_node(api, "n1")
    api.post(QUEUES, objects.queue("default"))

    with running_pods(control_plane), scheduling(control_plane):
        worker = Worker()
        update_queue("default", {"spec": {"maxRunSeconds": 1}}, merge=True)
        stored = api.get(f"{QUEUES}/default")
        assert stored["metadata"]["annotations"]["fumarole.io/max-run-seconds"] == "1"
        submit_job(plain_job(), by=ANN)
        worker.work_until(lambda: phases(api) == {"Running": 2}, "its pods to run")
        _wait_for_phase("Running")

        wait_until(lambda: end_overrunning_jobs() == 1, "it to be told")
        assert end_overrunning_jobs() == 0
        worker.work_until(lambda: phase(api, "train") == "Terminated", "it to be ended")
        _wait_for_phase("Terminated")

    words = "it ran for longer than the 1 s that default allows"
    assert Job.objects.get().shown_message == words
    assert AuditEntry.objects.get(action="TerminateJob").reason == words
    assert Command.objects.get().actor == "system"


def _wait_for_phase(name: str) -> None:
    wait_until(Job.objects.filter(name="train", phase=name).exists, f"the mirror to say {name}")


def test_what_the_server_refuses_is_told_with_the_field_and_nothing_is_stored(control_plane):
    api = control_plane.api

    with scheduling(control_plane):
        api.post(VOLCANO_JOBS, job("taken", task("worker", 0), minAvailable=0))
        wait_until(Job.objects.filter(name="taken").exists, "the mirror")
        refused = {
            "already_exists": plain_job("taken"),
            "namespace_not_found": plain_job() | {"metadata": {"name": "x", "namespace": "no"}},
            "queue_not_found": plain_job(queue="nowhere"),
        }
        for rule, manifest in refused.items():
            with pytest.raises(Rejected) as told:
                submit_job(manifest, by=ANN)
            assert [each.rule_id for each in told.value.violations] == [rule]
        submit_job(plain_job("later"), by=ANN, dry_run=True)

        assert [each["metadata"]["name"] for each in api.get(VOLCANO_JOBS)["items"]] == ["taken"]
        control_plane.kill_api_server()
        with pytest.raises(ClusterAway):
            submit_job(plain_job("later"), by=ANN)
        control_plane.start_api_server()

    assert set(Job.objects.values_list("name", flat=True)) == {"taken"}


def test_somebody_else_scaled_it_meanwhile(control_plane):
    api = control_plane.api

    with scheduling(control_plane):
        stored = submit_job(plain_job(), by=ANN)
        control_plane.kubectl(
            "patch",
            "jobs.batch.volcano.sh",
            "train",
            "--type=json",
            "-p",
            json.dumps([{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 7}]),
        )
        Job.objects.filter(pk=stored.job.pk).update(tasks=stored.job.tasks)  # not heard yet
        tasks = [{**stored.job.tasks[0], "replicas": 3}]
        with pytest.raises(Rejected) as told:
            update_job("default", "train", {"spec": {"tasks": tasks}}, by=ANN, merge=True)

    assert "it is 7 by now, and was 2" in told.value.violations[0].message
    assert api.get(f"{VOLCANO_JOBS}/train")["spec"]["tasks"][0]["replicas"] == 7


def test_a_file_with_a_queue_and_a_job_for_it_is_sent_when_all_of_it_is_right(control_plane):
    api = control_plane.api
    queue = objects.queue("research", weight=2, parent="root")
    good = plain_job(queue="research")

    with scheduling(control_plane):
        with pytest.raises(Rejected):
            apply_documents([queue, good, plain_job("bad", queue="nowhere")], by=ANN)
        assert api.get(VOLCANO_JOBS)["items"] == []
        assert api.get(QUEUES)["items"] == []
        apply_documents([queue, good], by=ANN)

    assert api.get(f"{VOLCANO_JOBS}/train")["spec"]["queue"] == "research"


def test_volcanos_own_controllers_obey_the_commands_of_the_console(control_plane):
    api = control_plane.api
    api.post(QUEUES, objects.queue("default"))

    with (
        control_plane.volcano_controllers(),
        scheduling(control_plane, "fumarole", job_controller="volcano"),
    ):
        submit_job(plain_job(), by=ANN)
        wait_until(lambda: phase(api, "train") == "Pending", "Volcano to look at it")
        _wait_for_phase("Pending")
        command_job("default", "train", "Suspend", by=ANN)
        wait_until(lambda: phase(api, "train") == "Aborted", "Volcano to suspend it")

    assert api.get(PODS)["items"] == []


def test_where_the_cluster_is_only_watched_no_job_is_submitted(control_plane):
    with watching(control_plane), pytest.raises(Rejected) as told:
        submit_job(plain_job(), by=ANN)

    assert told.value.violations[0].rule_id == "mirrored"
