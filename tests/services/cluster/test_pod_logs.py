"""Logs of pods, as a real API server fetches them from their kubelet, and as it refuses them.

KWOK is the kubelet: it serves a file as the log of every container.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.domain.access import Forbidden
from scheduler.models import Pod
from scheduler.selectors.jobs.log_pods import LogPods
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.accounts.grants import grant_role
from scheduler.services.cluster.log_following import Following, NewLines
from scheduler.services.cluster.pod_logs import (
    MOST_LINES,
    LogQuestion,
    containers_of,
    read_containers,
    read_log,
)
from tests import worlds
from tests.control_plane.certificates import Authority
from tests.control_plane.fake.faults import Answer
from tests.mirrored import kubernetes_mode
from tests.running import random_port
from tests.scheduled import scheduled_cluster
from tests.services.cluster.jobs.examples import job, task
from tests.services.cluster.test_job_writes import ANN
from tests.services.cluster.test_scheduled_cluster import (
    VOLCANO_JOBS,
    Worker,
    make_node,
    scheduling,
)

STRANGER = "mallory"


@contextmanager
def kubelets(plane: Any, folder: Path) -> Iterator[None]:
    """KWOK, with three lines in every log. The API server asks it where the nodes say."""
    written = folder / "written.log"
    moment = "2026-11-17T12:00:0{}.000000000Z stdout F line {}\n"
    written.write_text("".join(moment.format(number, number) for number in range(3)))
    logs = {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "ClusterLogs",
        "metadata": {"name": "logs"},
        "spec": {"logs": [{"containers": ["nginx"], "logsFile": str(written)}]},
    }
    given = folder / "logs.yaml"
    given.write_text(yaml.safe_dump(logs))
    certificate, key = Authority(folder / "kubelet").issue_server("kubelet", "127.0.0.1")
    port = random_port()
    stages = [each for each in plane.programs.stages() if each.stem != "pod-complete"]
    with plane.kwok(
        [*stages, given],
        f"--server-address=127.0.0.1:{port}",
        "--node-ip=127.0.0.1",
        f"--node-port={port}",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
    ):
        yield


@pytest.mark.kubernetes
@pytest.mark.django_db(transaction=True)
def test_the_last_lines_of_a_container_come_from_its_kubelet(control_plane, tmp_path):
    api = control_plane.api
    make_node(api, "n1")
    addresses = [
        {"type": "Hostname", "address": "127.0.0.1"},
        {"type": "InternalIP", "address": "127.0.0.1"},
    ]
    api.patch("/api/v1/nodes/n1/status", {"status": {"addresses": addresses}})

    with kubelets(control_plane, tmp_path), scheduling(control_plane, "fumarole", "volcano"):
        api.post(VOLCANO_JOBS, job("train", task("worker", 1), minAvailable=1))
        Worker().work_until(Pod.objects.filter(phase="Running").exists, "the pod to run")
        pod = Pod.objects.select_related("podgroup__queue").first()

        whole = read_log(ANN, pod)
        last = read_log(ANN, pod, LogQuestion("nginx", lines=1))
        missing = read_log(ANN, pod, LogQuestion("other"))

        assert whole.problem == ""
        assert whole.text == "line 0\nline 1\nline 2\n"
        assert last.text == "line 2\n"
        assert "container other is not valid" in missing.problem
        _follows_what_is_written(pod, tmp_path / "written.log")
        assert [(each.name, each.state) for each in read_containers(pod)] == [("nginx", "running")]


def _follows_what_is_written(pod: Pod, written: Path) -> None:
    """What the kubelet has after the last look, and no line twice; then the pod goes."""
    following = Following(ANN, LogPods(pod.podgroup_id, pod.name), LogQuestion("nginx", lines=2))
    first = following.look()
    with written.open("a") as log:
        log.write("2026-11-17T12:00:02.000000001Z stdout F line 3\n")
        log.write("2026-11-17T12:00:09.000000000Z stdout F line 4\n")
    second = following.look()
    third = following.look()

    assert [_texts(piece) for piece in first] == [["line 1", "line 2"]]
    assert [_texts(piece) for piece in second] == [["line 3", "line 4"]]
    assert third == []


def _texts(piece: Any) -> list[str]:
    assert isinstance(piece, NewLines)
    return [line.text for line in piece.lines]


@pytest.mark.django_db
def test_what_is_asked_of_the_server_is_bounded(tmp_path):
    with scheduled_cluster(tmp_path) as cluster:
        cluster.has_gang("gang", 1)
        cluster.tells()
        pod = Pod.objects.select_related("podgroup__queue").first()

        words = "previous terminated container not found"
        cluster.server.plan("GET", "*/log*", Answer(400, "BadRequest", words))
        found = read_log(ANN, pod, LogQuestion(lines=10**9, previous=True))

        asked = [path for _, path in cluster.server.requests if "/log" in path]
        assert found.problem == f"The API server has no log of gang-0: {words}"
        assert f"tailLines={MOST_LINES}" in asked[-1]
        assert "limitBytes=" in asked[-1]
        assert "previous=true" in asked[-1]


@pytest.mark.django_db
def test_only_operators_and_the_owner_read_logs(django_user_model):
    stranger = django_user_model.objects.create_user(STRANGER)
    grant_role(user=STRANGER, role="submitter", queue="root", by=SYSTEM)
    worlds.job("train")
    pod = Pod.objects.select_related("podgroup__queue").first()

    with pytest.raises(Forbidden) as refused:
        read_log(Actor(STRANGER, user=stranger), pod)

    assert "read the logs of a job that is not your own" in str(refused.value)
    pod.podgroup.owner = STRANGER
    assert read_log(Actor(STRANGER, user=stranger), pod).problem  # of a simulated pod


@pytest.mark.django_db
def test_one_that_has_not_started_says_so_and_one_that_is_only_watched_is_left_to_kubectl():
    worlds.job("train")
    pod = Pod.objects.select_related("podgroup__queue").first()

    words = "train-worker-0 has not started, so it has written nothing."
    assert read_log(ANN, pod).problem == words
    with kubernetes_mode():
        assert f"kubectl logs --namespace default {pod.name}" in read_log(ANN, pod).problem


def test_containers_say_how_they_are():
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}}
    ended = {"terminated": {"exitCode": 3, "reason": "Error", "message": "out of luck"}}
    status = {
        "initContainerStatuses": [{"name": "fetch", "state": waiting}],
        "containerStatuses": [{"name": "main", "state": ended, "restartCount": 2}],
    }

    found = list(containers_of({"status": status}))

    assert [each.reason for each in found] == ["ImagePullBackOff", "Error"]
    assert (found[1].exit_code, found[1].message, found[1].restarts) == (3, "out of luck", 2)
