"""Lines for kubectl are run as they are shown, by the real kubectl beside a real API server."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from scheduler.models import Job, Node, Queue
from scheduler.services.cluster import kubectl_lines
from tests.control_plane import objects
from tests.control_plane.objects import wait_until
from tests.control_plane.plane import ProgramFailed
from tests.services.sessions.test_beside_another_scheduler import watching

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]

NODES = "/api/v1/nodes"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def run_line(plane: Any, line: str) -> None:
    """As a shell would run it, with kubectl of the control plane."""
    head, _, document = line.partition(" <<'END'\n")
    words = shlex.split(head)
    assert words[0] == "kubectl"
    plane.kubectl(*words[1:], given=document.removesuffix("\nEND"))


def stored(plane: Any, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plane.kubectl("get", kind, name, "-o", "json"))
    return found


def test_lines_for_kubectl_do_what_they_say(extended_control_plane):
    plane = extended_control_plane
    plane.api.post(NODES, objects.node("n1"))
    kind = "queues.scheduling.volcano.sh"
    with watching(plane):
        manifest = objects.queue("research", weight=4, parent="root", owner="Ann")
        run_line(plane, kubectl_lines.queue_apply_lines(manifest))
        wait_until(lambda: Queue.objects.filter(name="research", weight=4).exists(), "the queue")

        run_line(plane, kubectl_lines.queue_command_line("suspend", "research"))
        assert stored(plane, kind, "research")["spec"]["state"] == "Suspended"
        run_line(plane, kubectl_lines.queue_command_line("close", "research"))
        assert stored(plane, kind, "research")["spec"]["state"] == "Closed"

        run_line(plane, kubectl_lines.queue_delete_line("research"))
        with pytest.raises(ProgramFailed):
            stored(plane, kind, "research")

        run_line(plane, kubectl_lines.node_line("cordon", "n1"))
        wait_until(lambda: Node.objects.filter(unschedulable=True).exists(), "the cordon")
        run_line(plane, kubectl_lines.node_line("uncordon", "n1"))
        wait_until(lambda: Node.objects.filter(unschedulable=False).exists(), "the uncordon")

        plane.api.post(JOBS, objects.volcano_job("train"))
        wait_until(Job.objects.exists, "the job")
        train = Job.objects.get()
        run_line(plane, kubectl_lines.job_command_lines(train, "AbortJob"))
        command = json.loads(plane.kubectl("get", "commands.bus.volcano.sh", "-o", "json"))
        assert command["items"][0]["action"] == "AbortJob"
        assert command["items"][0]["target"]["uid"] == str(train.uid)
