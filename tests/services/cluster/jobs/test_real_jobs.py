"""Volcano Jobs of a real API server from apply to their end, with our own controller.

KWOK plays the kubelets. Volcano's controller manager does not run.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from scheduler.models import AuditEntry, Command, Job
from tests.control_plane import objects
from tests.control_plane.objects import wait_until
from tests.mirrored import kubernetes_mode
from tests.services.cluster.jobs.examples import EXAMPLES, MPI, job, task
from tests.services.cluster.mirror.beside import watcher_process
from tests.services.cluster.test_scheduled_cluster import (
    GROUPS,
    PODS,
    VOLCANO_JOBS,
    Worker,
    make_node,
    scheduling,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]
OURS = ("fumarole", "volcano")


def phase(api: Any, name: str) -> str:
    status = api.get(f"{VOLCANO_JOBS}/{name}").get("status") or {}
    return str((status.get("state") or {}).get("phase", ""))


def status(api: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"{VOLCANO_JOBS}/{name}")["status"]
    return found


def pods(api: Any) -> dict[str, dict[str, Any]]:
    return {pod["metadata"]["name"]: pod for pod in api.get(PODS)["items"]}


def phases(api: Any) -> Counter[str]:
    return Counter(pod["status"]["phase"] for pod in api.get(PODS)["items"])


def ends(api: Any, name: str, code: int, message: str = "") -> None:
    """As a kubelet tells that the only container of this pod has ended."""
    ended = {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}
    container = {
        "name": "nginx",
        "image": "nginx",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }
    phase = "Failed" if code else "Succeeded"
    change = {"status": {"phase": phase, "containerStatuses": [container]}}
    api.patch(f"{PODS}/{name}/status", change)


@contextmanager
def running_pods(plane: Any) -> Iterator[None]:
    """KWOK starts pods, and they run until somebody ends them."""
    stages = [each for each in plane.programs.stages() if each.stem != "pod-complete"]
    with plane.kwok(stages):
        yield


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_of_volcano_runs_to_its_end(control_plane, name):
    api = control_plane.api
    for number in range(3):
        make_node(api, f"n{number}")
        labels = {"kubernetes.io/os": "linux"}
        api.patch(f"/api/v1/nodes/n{number}", {"metadata": {"labels": labels}})
    example = EXAMPLES[name]

    with control_plane.kwok(), scheduling(control_plane, *OURS):
        api.post(VOLCANO_JOBS, example)
        Worker().work_until(
            lambda: phase(api, example["metadata"]["name"]) == "Completed", "the job to complete"
        )
        wait_until(lambda: api.get(GROUPS)["items"] == [], "the podgroup to go")

    told = status(api, example["metadata"]["name"])
    replicas = sum(task["replicas"] for task in example["spec"]["tasks"])
    assert told["succeeded"] == replicas
    assert told["conditions"][0]["status"] == "Pending"
    assert told["conditions"][-1]["status"] == "Completed"
    assert phases(api) == {"Succeeded": replicas}
    told_of = [each.get("note", "") for each in api.get(_EVENTS)["items"]]
    asks_for_ssh = "ssh" in example["spec"].get("plugins", {})
    assert ("The job runs without what it asks for: the plugin ssh." in told_of) is asks_for_ssh


_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def test_a_job_completes_with_its_master_and_its_pods_know_each_other(control_plane):
    api = control_plane.api
    make_node(api, "n1")

    with running_pods(control_plane), scheduling(control_plane, *OURS):
        api.post(VOLCANO_JOBS, MPI)
        worker = Worker()
        worker.work_until(lambda: phase(api, "mpi") == "Running", "the gang to run")
        master = pods(api)["mpi-mpimaster-0"]
        ends(api, "mpi-mpimaster-0", 0)
        worker.work_until(lambda: phase(api, "mpi") == "Completed", "the job to complete")

    variables = {each["name"]: each["value"] for each in master["spec"]["containers"][0]["env"]}
    assert variables["VC_MPIWORKER_HOSTS"] == "mpi-mpiworker-0.mpi,mpi-mpiworker-1.mpi"
    assert variables["VC_TASK_INDEX"] == "0"
    service = api.get("/api/v1/namespaces/default/services/mpi")
    assert service["spec"]["selector"]["volcano.sh/job-name"] == "mpi"
    assert set(pods(api)) == {"mpi-mpimaster-0"}
    owner = master["metadata"]["ownerReferences"][0]
    assert owner["uid"] == api.get(f"{VOLCANO_JOBS}/mpi")["metadata"]["uid"]


def test_a_job_starts_again_as_often_as_it_may_and_has_failed_then(control_plane):
    api = control_plane.api
    make_node(api, "n1")
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    given = job("train", task("worker", 2), minAvailable=2, maxRetry=2, policies=policies)

    with running_pods(control_plane), scheduling(control_plane, *OURS):
        api.post(VOLCANO_JOBS, given)
        worker = Worker()
        uids = set()
        for retry in range(3):
            worker.work_until(
                lambda retry=retry: (
                    phases(api) == {"Running": 2}
                    and phase(api, "train") == "Running"
                    and status(api, "train").get("version", 0) == retry
                ),
                f"both pods to run after {retry} retries",
            )
            uids |= {pod["metadata"]["uid"] for pod in pods(api).values()}
            ends(api, "train-worker-1", 3, "out of luck")
        worker.work_until(lambda: phase(api, "train") == "Failed", "the job to fail")

        assert status(api, "train")["retryCount"] == 2
        assert status(api, "train")["state"]["message"] == "failed after 2 of 2 retries"
        assert len(uids) == 6
        worker.work_until(lambda: phases(api) == {"Failed": 1}, "the other pod to go")
        wait_until(lambda: Job.objects.get(name="train").phase == "Failed", "the mirror")


def test_volcanos_vcctl_suspends_and_resumes_a_job(control_plane):
    api = control_plane.api
    make_node(api, "n1")

    with running_pods(control_plane), scheduling(control_plane, *OURS):
        api.post(VOLCANO_JOBS, job("train", task("worker", 2), minAvailable=2))
        worker = Worker()
        worker.work_until(lambda: phase(api, "train") == "Running", "the job to run")
        control_plane.vcctl("job", "suspend", "--name", "train")
        worker.work_until(lambda: phase(api, "train") == "Aborted", "the job to be suspended")
        assert phases(api) == {}
        control_plane.vcctl("job", "resume", "--name", "train")
        worker.work_until(lambda: phase(api, "train") == "Running", "the job to run again")

    assert api.get(_COMMANDS)["items"] == []
    told = Command.objects.order_by("id").values_list("action", "result")
    assert list(told) == [("AbortJob", Command.DONE), ("ResumeJob", Command.DONE)]
    audited = AuditEntry.objects.order_by("id").values_list("action", "actor", "name")
    assert list(audited) == [
        ("AbortJob", "kubernetes", "train"),
        ("ResumeJob", "kubernetes", "train"),
    ]


_COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"


def test_a_job_that_is_scaled_gets_the_pods_that_it_asks_for(control_plane):
    api = control_plane.api
    make_node(api, "n1")
    given = job("train", task("worker", 1), minAvailable=1)

    with running_pods(control_plane), scheduling(control_plane, *OURS):
        api.post(VOLCANO_JOBS, given)
        worker = Worker()
        worker.work_until(lambda: phases(api) == {"Running": 1}, "the pod to run")
        _scale(api, given, 3)
        worker.work_until(lambda: phases(api) == {"Running": 3}, "three pods to run")
        _scale(api, given, 2)
        worker.work_until(
            lambda: set(pods(api)) == {"train-worker-0", "train-worker-1"}, "the last to go"
        )


def _scale(api: Any, given: dict[str, Any], replicas: int) -> None:
    tasks = [{**given["spec"]["tasks"][0], "replicas": replicas, "minAvailable": 1}]
    api.patch(f"{VOLCANO_JOBS}/train", {"spec": {"tasks": tasks}})


def test_a_job_goes_when_its_time_after_the_end_is_over(control_plane):
    api = control_plane.api
    make_node(api, "n1")
    given = job("short", task("worker", 1), minAvailable=1, ttlSecondsAfterFinished=2)

    with control_plane.kwok(), scheduling(control_plane, *OURS):
        api.post(VOLCANO_JOBS, given)
        Worker().work_until(lambda: api.get(VOLCANO_JOBS)["items"] == [], "the job to go")


def test_what_the_server_refuses_is_told_in_the_status(control_plane):
    api = control_plane.api
    given = job("broken", task("worker", 1), minAvailable=1)
    given["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = ""

    with scheduling(control_plane, *OURS):
        api.post(VOLCANO_JOBS, given)
        wait_until(lambda: "state" in (api.get(f"{VOLCANO_JOBS}/broken").get("status") or {}), "")
        wait_until(lambda: "image" in status(api, "broken")["state"].get("message", ""), "words")

    assert phase(api, "broken") == "Pending"


@pytest.mark.parametrize("kills", [4])
def test_whenever_the_controller_is_killed_no_pod_is_made_twice_and_no_retry_counts_twice(
    control_plane, kills
):
    """The watcher is a process of its own, killed while pods fail and jobs start again."""
    api = control_plane.api
    make_node(api, "n1")
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    given = job("train", task("worker", 2), minAvailable=2, maxRetry=20, policies=policies)
    settings = {
        "KUBERNETES_MODE": "schedule",
        "KUBERNETES_SCHEDULER_NAMES": "fumarole,volcano",
    }
    asked = {"mode": "schedule", "kubeconfig": str(control_plane.kubeconfig)}
    failures = 0
    with running_pods(control_plane), kubernetes_mode(**asked, scheduler_names=OURS):
        api.post(VOLCANO_JOBS, given)
        worker = Worker()
        for number in range(kills):
            with watcher_process(control_plane, **settings) as process:
                worker.work_until(
                    lambda number=number: (
                        phases(api) == {"Running": 2}
                        and phase(api, "train") == "Running"
                        and status(api, "train").get("version", 0) == number
                    ),
                    f"both pods to run, {number} kills",
                )
                ends(api, "train-worker-0", 1)
                failures += 1
                _wait_for_a_moment_of(api, number)
                process.send_signal(signal.SIGKILL)
                process.wait(30)
        with watcher_process(control_plane, **settings):
            worker.work_until(
                lambda: phases(api) == {"Running": 2} and phase(api, "train") == "Running",
                "both pods to run in the end",
            )

    assert status(api, "train")["retryCount"] == failures
    assert status(api, "train")["version"] == failures


def _wait_for_a_moment_of(api: Any, number: int) -> None:
    """Another one each time: at once, when it is decided, when pods go, when they are made."""
    moments = [
        lambda: True,
        lambda: phase(api, "train") == "Restarting",
        lambda: len(pods(api)) < 2,
        lambda: phase(api, "train") == "Pending",
    ]
    wait_until(moments[number % len(moments)], "the moment of the kill")


def test_a_pod_of_somebody_else_is_not_taken_for_ours(control_plane):
    api = control_plane.api
    api.post(PODS, objects.pod("train-worker-0"))

    with scheduling(control_plane, *OURS):
        api.post(VOLCANO_JOBS, job("train", task("worker", 1), minAvailable=1))
        wait_until(lambda: "state" in (api.get(f"{VOLCANO_JOBS}/train").get("status") or {}), "")
        wait_until(
            lambda: "not of this job" in status(api, "train")["state"].get("message", ""), "words"
        )

    assert "ownerReferences" not in pods(api)["train-worker-0"]["metadata"]
