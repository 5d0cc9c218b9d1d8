"""A whole Fumarole beside a real API server: it binds, and goes on after kills."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control_plane import objects
from tests.control_plane.fumarole import Fumarole
from tests.control_plane.objects import wait_until
from tests.control_plane.placed import GROUP, broken_gangs, node_of, overcommitted
from tests.control_plane.plane import ControlPlane

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"


def make_gang(plane: ControlPlane, name: str, size: int) -> None:
    plane.api.post(GROUPS, objects.podgroup(name, min_member=size))
    for number in range(size):
        plane.api.post(PODS, objects.pod(f"{name}-{number}", annotations={GROUP: name}))


def placed(plane: ControlPlane) -> int:
    return sum(1 for pod in plane.api.get(PODS)["items"] if node_of(pod))


@pytest.mark.processes
def test_it_binds_and_goes_on_after_a_kill_of_each_process(
    control_plane: ControlPlane, postgres_database: str, tmp_path: Path
):
    control_plane.api.post(NODES, objects.node("n1"))
    control_plane.api.patch(f"{NODES}/n1", {"spec": {"taints": []}})
    make_gang(control_plane, "first", 3)
    given = {"kubeconfig": control_plane.kubeconfig, "database": postgres_database}

    with Fumarole(tmp_path, **given, schedulers=2) as fumarole:
        wait_until(lambda: placed(control_plane) == 3, "the first gang to be bound")
        for name in fumarole.names:
            fumarole.kill(name)
            assert fumarole.processor_seconds(name) > 0
            fumarole.start(name)
        assert fumarole.start_what_has_ended() == []
        make_gang(control_plane, "second", 3)
        wait_until(lambda: placed(control_plane) == 6, "the second gang to be bound")


def pod_on(node: str, gang: str = "", cpu: str = "1") -> dict:
    pod = objects.pod("p", cpu=cpu, annotations={GROUP: gang})
    pod["spec"]["nodeName"] = node
    return {**pod, "status": {"phase": "Running"}}


def test_a_node_that_holds_too_much_is_named():
    node = objects.node("n1", cpu="2")

    assert overcommitted([node], [pod_on("n1"), pod_on("n1", cpu="1000m")]) == []
    found = overcommitted([node], [pod_on("n1"), pod_on("n1", cpu="1001m")])
    assert found == ["n1 has 2 cpu and holds 2.001"]


def test_what_has_ended_holds_nothing():
    ended = {**pod_on("n1", cpu="9"), "status": {"phase": "Succeeded"}}

    assert overcommitted([objects.node("n1")], [ended]) == []


def test_a_gang_with_some_of_its_pods_is_named_and_one_that_waits_is_not():
    pods = [pod_on("n1", "half"), pod_on("n1", "whole"), pod_on("", "waits")]

    found = broken_gangs(pods, {"half": 2, "whole": 1, "waits": 2})

    assert found == ["half needs 2 pods and has 1"]
