"""The page of a pod of a real cluster: how its containers are, and what they have written.

And the same in the API and on the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from scheduler.models import Pod
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role
from scheduler.services.cluster import api_server
from tests.dashboard.work import text
from tests.scheduled import PODS, ScheduledCluster, scheduled_cluster

pytestmark = pytest.mark.django_db

PAGE = "/jobs/default/gang/pods/gang-0/"
LOG = "/api/v1/pods/default/gang-0/log/"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ScheduledCluster]:
    with scheduled_cluster(tmp_path) as running:
        running.has_gang("gang", 1)
        running.server.logs["gang-0"] = "<b>step 1</b>\nstep 2\n"
        _fails(running)
        running.tells()
        yield running
    api_server._client.cache_clear()


def _fails(cluster: ScheduledCluster) -> None:
    ended = {"exitCode": 3, "reason": "Error", "message": "out of luck"}
    containers = [{"name": "main", "state": {"terminated": ended}, "restartCount": 2}]

    def change(pod: dict[str, Any]) -> dict[str, Any]:
        spec = {**pod["spec"], "nodeName": "n1"}
        return {**pod, "spec": spec, "status": {"phase": "Failed", "containerStatuses": containers}}

    cluster.server.store.change(PODS, "default", "gang-0", change)


def signed_in(name: str, role: str) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_user(name, password="x" * 12))
    grant_role(user=name, role=role, queue="root", by=SYSTEM)
    return client


def test_an_operator_reads_the_log_and_what_became_of_the_containers(cluster):
    page = signed_in("ann", "admin").get(PAGE)

    assert "Exit code 3." in text(page)
    assert "main: out of luck" in text(page)
    assert "&lt;b&gt;step 1&lt;/b&gt;\nstep 2" in page.content.decode()
    assert 'name="previous"' in page.content.decode()
    assert Pod.objects.get().exit_code == 3


def test_who_may_only_look_is_told_who_may_read(cluster):
    viewer = signed_in("bob", "viewer")

    page = text(viewer.get(PAGE))
    answer = viewer.get(LOG)

    assert "Operators of the queue and the owner of the job may read logs." in page
    assert "step 2" not in page
    assert "out of luck" in page
    assert answer.status_code == 403
    assert not [path for _, path in cluster.server.requests if "/log" in path]


def test_the_api_gives_the_log_and_the_containers(cluster):
    answer = signed_in("ann", "admin").get(f"{LOG}?lines=50&container=main&previous=true")

    found = answer.json()
    assert found["log"].endswith("step 2\n")
    assert found["cut"] is False
    assert found["containers"] == [
        {
            "name": "main",
            "state": "terminated",
            "reason": "Error",
            "message": "out of luck",
            "exitCode": 3,
            "restarts": 2,
        }
    ]
    asked = next(path for _, path in cluster.server.requests if "/log" in path)
    assert "tailLines=50" in asked
    assert "container=main" in asked
    assert "previous=true" in asked


def test_the_log_can_be_kept_as_a_file_with_its_times(cluster):
    answer = signed_in("ann", "admin").get(f"{PAGE}log/?container=main&times=true")
    refused = signed_in("bob", "viewer").get(f"{PAGE}log/")

    assert answer["Content-Disposition"] == 'attachment; filename="gang-0.log"'
    assert answer["Content-Type"].startswith("text/plain")
    assert answer.content.endswith(b"2026-11-18T04:00:01.000000000Z step 2\n")
    assert refused.status_code == 403


@pytest.mark.parametrize("lines", ["0", "5001", "many"])
def test_the_api_takes_a_number_of_lines(cluster, lines):
    answer = signed_in("ann", "admin").get(f"{LOG}?lines={lines}")

    assert answer.status_code == 400


def test_the_list_of_pods_says_why_a_container_does_not_start(cluster):
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}

    def change(pod: dict[str, Any]) -> dict[str, Any]:
        status = {"phase": "Pending", "containerStatuses": [{"name": "main", "state": waiting}]}
        return {**pod, "status": status}

    cluster.server.store.change(PODS, "default", "gang-0", change)
    cluster.tells()

    page = text(signed_in("ann", "admin").get("/jobs/default/gang/"))
    assert "main: ImagePullBackOff: Back-off pulling image" in page
