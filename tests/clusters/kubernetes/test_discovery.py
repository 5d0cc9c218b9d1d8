"""Which pods Volcano's scheduler places, as its own pods tell."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.discovery import names_served_by_volcano
from tests.control_plane import objects
from tests.control_plane.plane import ControlPlane

PODS = "/api/v1/namespaces/default/pods"


def make_scheduler_pod(plane: ControlPlane, *args: str) -> None:
    pod: dict[str, Any] = objects.pod("volcano-scheduler", labels={"app": "volcano-scheduler"})
    (container,) = pod["spec"]["containers"]
    container["args"] = list(args)
    plane.api.post(PODS, pod)


def start_scheduler_pod(plane: ControlPlane) -> None:
    plane.api.patch(f"{PODS}/volcano-scheduler/status", {"status": {"phase": "Running"}})


def test_volcanos_scheduler_is_found_once_it_runs(
    real_client: Client, control_plane: ControlPlane
) -> None:
    make_scheduler_pod(control_plane, "--logtostderr")
    assert names_served_by_volcano(real_client) == frozenset()

    start_scheduler_pod(control_plane)

    assert names_served_by_volcano(real_client) == {"volcano"}


@pytest.mark.parametrize(
    "args",
    [
        ("--scheduler-name=one", "--scheduler-name=two"),
        ("--scheduler-name", "one", "--scheduler-name", "two"),
        ("exec /vc-scheduler --scheduler-name=one --scheduler-name two -v=3",),
    ],
)
def test_it_serves_the_names_of_its_options(
    real_client: Client, control_plane: ControlPlane, args: tuple[str, ...]
) -> None:
    make_scheduler_pod(control_plane, *args)
    start_scheduler_pod(control_plane)

    assert names_served_by_volcano(real_client) == {"one", "two"}
