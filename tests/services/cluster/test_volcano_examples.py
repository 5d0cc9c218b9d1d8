"""Work as Volcano's examples have it, from `kubectl apply` to its end, placed by Fumarole.

Volcano's controllers make podgroups and pods, KWOK runs the pods, and no scheduler of Volcano's is
there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.control_plane import objects
from tests.services.cluster.test_scheduled_cluster import NODES, VOLCANO_JOBS, Worker, scheduling

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]

EXAMPLES = Path(__file__).with_name("volcano_examples.yaml")
JOBS = {"plain", "plugins-with-options", "steps", "mpi", "ray", "in-a-tree", "flow-a", "flow-b"}
PODS = "/api/v1/namespaces/default/pods"
FLOW = "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobflows/flow"


def test_every_kind_of_example_runs_to_its_end(control_plane: Any) -> None:
    _make_nodes(control_plane.api)
    with (
        control_plane.kwok(),
        control_plane.controllers(),
        control_plane.volcano_controllers(),
        scheduling(control_plane, "fumarole", "volcano"),
    ):
        _make_default_queues(control_plane.api)
        control_plane.kubectl("apply", "--server-side", "-f", str(EXAMPLES))
        worker = Worker()
        worker.work_until(
            lambda: _phases(control_plane.api) == dict.fromkeys(JOBS, "Completed"),
            "all jobs to be completed",
        )
        worker.work_until(lambda: _flow_has_ended(control_plane.api), "the flow to be told so")
        worker.work_until(lambda: _placed_by_deployment(control_plane.api) >= 2, "two of three")

        # 3 x 800m of 2 cores: the queue holds the third pod back
        assert _placed_by_deployment(control_plane.api) == 2


def _make_nodes(api: Any) -> None:
    for number in range(3):
        name = f"n{number}"
        labels = {"kubernetes.io/os": "linux"}
        api.post(NODES, objects.node(name, cpu="16", labels=labels, is_kwok=True))
        api.patch(f"{NODES}/{name}", {"spec": {"taints": []}})


def _make_default_queues(api: Any) -> None:
    """Volcano's scheduler makes them when it starts; here is none."""
    for name in ("root", "default"):
        api.apply(f"{objects.QUEUES}/{name}", objects.queue(name))


def _phases(api: Any) -> dict[str, str]:
    found = {}
    for job in api.get(VOLCANO_JOBS)["items"]:
        state = job.get("status", {}).get("state", {})
        found[job["metadata"]["name"]] = str(state.get("phase", ""))
    return found


def _flow_has_ended(api: Any) -> bool:
    state = api.get(FLOW).get("status", {}).get("state", {})
    return bool(state.get("phase") == "Succeed")


def _placed_by_deployment(api: Any) -> int:
    pods = api.get(f"{PODS}?labelSelector=app=web")["items"]
    return sum(1 for pod in pods if pod["spec"].get("nodeName"))
