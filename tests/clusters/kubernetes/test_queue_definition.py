"""Where fields of a queue are kept that the cluster's definition does not know."""

from __future__ import annotations

from typing import Any

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.discovery import volcano_controllers_run
from scheduler.clusters.kubernetes.queue_definition import (
    VOLCANO_FIELDS,
    known_queue_fields,
    with_annotations_for_fields,
    with_fields_from_annotations,
)
from tests.control_plane import objects

PODS = "/api/v1/namespaces/default/pods"


def manifest(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "q", "annotations": {"team": "a"}}, "spec": spec}


def test_unknown_fields_go_into_annotations_and_come_back():
    given = manifest(weight=2, owner="Ann", minRunSeconds=60, description="")

    stored = with_annotations_for_fields(given, VOLCANO_FIELDS)

    assert stored["spec"] == {"weight": 2}
    assert stored["metadata"]["annotations"] == {
        "team": "a",
        "fumarole.io/owner": "Ann",
        "fumarole.io/min-run-seconds": "60",
    }
    assert with_fields_from_annotations(stored) == manifest(weight=2, owner="Ann", minRunSeconds=60)


def test_a_field_counts_before_its_annotation():
    given = manifest(state="Open")
    given["metadata"]["annotations"] = {"fumarole.io/state": "Closed"}

    assert with_fields_from_annotations(given)["spec"]["state"] == "Open"


def test_what_a_definition_knows_is_read_from_a_real_server(real_client: Client, control_plane):
    assert known_queue_fields(real_client) == VOLCANO_FIELDS


def test_what_our_definition_knows(real_client: Client, extended_control_plane):
    assert known_queue_fields(real_client) == VOLCANO_FIELDS | {"state"}


def test_volcanos_controllers_are_found_by_their_running_pods(real_client: Client, control_plane):
    assert not volcano_controllers_run(real_client)
    pod = objects.pod("volcano-controllers-1", labels={"app": "volcano-controller"})
    control_plane.api.post(PODS, pod)
    assert not volcano_controllers_run(real_client)

    running = {"status": {"phase": "Running"}}
    control_plane.api.patch(f"{PODS}/volcano-controllers-1/status", running)

    assert volcano_controllers_run(real_client)
