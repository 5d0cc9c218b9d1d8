"""The control plane that tests use: it starts, is clean for each test, and ends for sure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.control_plane import objects
from tests.control_plane.api import ApiError
from tests.control_plane.plane import ControlPlane
from tests.running import BASE, children_of, is_running

_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
_PODS = "/api/v1/namespaces/default/pods"


def test_the_version_is_told(control_plane: ControlPlane) -> None:
    assert control_plane.api.get("/version")["gitVersion"] == "v1.36.3"


def test_kubectl_and_the_real_vcctl_see_the_same_queue(control_plane: ControlPlane) -> None:
    control_plane.api.post(_QUEUES, objects.queue("research", weight=3))

    assert "research" in control_plane.kubectl("get", "queues.scheduling.volcano.sh")
    assert "research" in control_plane.vcctl("queue", "list")


@pytest.mark.parametrize("turn", ["first", "second"])
def test_what_another_test_has_made_is_gone(control_plane: ControlPlane, turn: str) -> None:
    assert control_plane.api.get(_QUEUES)["items"] == []
    assert control_plane.api.get("/api/v1/nodes")["items"] == []
    assert control_plane.api.get(_PODS)["items"] == []

    control_plane.api.post(_QUEUES, objects.queue("research"))
    control_plane.api.post("/api/v1/nodes", objects.node("n1"))
    control_plane.api.post(_PODS, objects.pod("p1", finalizers=["example.com/never-removed"]))


def test_what_was_there_at_first_is_put_back(control_plane: ControlPlane) -> None:
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/queues.scheduling.volcano.sh"
    control_plane.api.patch("/api/v1/namespaces/default", {"metadata": {"labels": {"a": "b"}}})
    control_plane.api.delete(crd)

    control_plane.reset()

    labels = control_plane.api.get("/api/v1/namespaces/default")["metadata"]["labels"]
    assert "a" not in labels
    assert control_plane.api.get(crd)["spec"]["names"]["kind"] == "Queue"


def test_a_user_may_only_do_what_rbac_says(control_plane: ControlPlane) -> None:
    reader = control_plane.api_of("reader")
    with pytest.raises(ApiError) as refused:
        reader.get("/api/v1/nodes")
    assert refused.value.code == 403

    rights = ("--verb=get,list", "--resource=nodes")
    control_plane.kubectl("create", "clusterrole", "reads-nodes", *rights)
    binding = ("--clusterrole=reads-nodes", "--user=reader")
    control_plane.kubectl("create", "clusterrolebinding", "reader-reads-nodes", *binding)

    objects.wait_until(lambda: reader.answers("/api/v1/nodes"), "the right to read nodes")


def test_a_service_account_gets_a_token_that_works(control_plane: ControlPlane) -> None:
    control_plane.kubectl("create", "serviceaccount", "robot")
    token = control_plane.kubectl("create", "token", "robot").strip()

    kubeconfig = control_plane.token_user("robot", token)

    who = control_plane.kubectl("auth", "whoami", kubeconfig=kubeconfig)
    assert "system:serviceaccount:default:robot" in who


def test_a_killed_api_server_comes_back_with_what_it_knew(control_plane: ControlPlane) -> None:
    control_plane.api.post(_QUEUES, objects.queue("research"))

    control_plane.kill_api_server()
    assert not control_plane.is_ready()
    control_plane.start_api_server()

    assert control_plane.api.get(f"{_QUEUES}/research")["metadata"]["name"] == "research"


def test_kwok_makes_nodes_ready_and_bound_pods_running(control_plane: ControlPlane) -> None:
    api = control_plane.api
    with control_plane.kwok():
        api.post("/api/v1/nodes", objects.node("n1", is_kwok=True))
        api.post(_PODS, objects.pod("p1"))
        api.post(f"{_PODS}/p1/binding", objects.binding("p1", "n1"))

        objects.wait_until(lambda: _phase(control_plane, "p1") == "Running", "a running pod")
        objects.wait_until(lambda: _is_node_ready(control_plane, "n1"), "a node that is ready")


def test_the_controllers_end_a_namespace(control_plane: ControlPlane) -> None:
    control_plane.kubectl("create", "namespace", "short-lived")
    with control_plane.controllers():
        control_plane.api.delete("/api/v1/namespaces/short-lived")

        objects.wait_until(
            lambda: not control_plane.api.answers("/api/v1/namespaces/short-lived"),
            "the end of the namespace",
        )


def test_volcanos_own_controllers_make_the_pods_of_its_job(control_plane: ControlPlane) -> None:
    jobs = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    control_plane.api.post(_QUEUES, objects.queue("default"))
    with control_plane.volcano_controllers():
        control_plane.api.post(jobs, objects.volcano_job("training", replicas=2))
        group_list = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
        objects.wait_until(lambda: control_plane.api.get(group_list)["items"], "a podgroup")
        group = control_plane.api.get(group_list)["items"][0]["metadata"]["name"]
        # A scheduler would do this.
        control_plane.api.patch(f"{group_list}/{group}", {"status": {"phase": "Inqueue"}})

        objects.wait_until(lambda: len(control_plane.api.get(_PODS)["items"]) == 2, "two pods")


def test_no_server_is_left_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    start = (
        "from pathlib import Path; from tests.control_plane.process import Process; "
        f"Process('sleep', ['sleep', '600'], Path({str(tmp_path / 'log')!r})); input()"
    )
    starter = subprocess.Popen([sys.executable, "-c", start], cwd=BASE, stdin=subprocess.PIPE)
    objects.wait_until(lambda: children_of(starter.pid), "the server")
    servers = children_of(starter.pid)

    starter.kill()
    starter.wait()

    objects.wait_until(lambda: not any(map(is_running, servers)), "the end of the server")


@pytest.mark.kubernetes
def test_ctrl_c_stops_a_control_plane_started_by_hand_and_removes_its_folder(
    tmp_path: Path,
) -> None:
    # as in the background of a shell script, where SIGINT is ignored unless a program asks for it
    command = 'trap "" INT; exec "$0" -m tests.control_plane'
    starter = subprocess.Popen(
        ["/bin/sh", "-c", command, sys.executable],
        cwd=BASE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    lines = []
    for line in starter.stdout:
        lines.append(line)
        if "Ctrl-C" in line:
            break
    kubeconfig = next(line for line in lines if "KUBECONFIG" in line).strip().partition("=")[2]
    assert Path(kubeconfig).exists()

    starter.send_signal(signal.SIGINT)

    assert starter.wait(timeout=120) == 0
    assert list(tmp_path.iterdir()) == []


def _phase(control_plane: ControlPlane, name: str) -> str:
    return str(control_plane.api.get(f"{_PODS}/{name}")["status"]["phase"])


def _is_node_ready(control_plane: ControlPlane, name: str) -> bool:
    conditions = control_plane.api.get(f"/api/v1/nodes/{name}")["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
