"""Pages and API for jobs of a real cluster where pods are placed here: what is offered and sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from scheduler.clusters.kubernetes.read.workloads import read_job
from scheduler.models import Command, Job
from scheduler.services.cluster import api_server
from tests.control_plane.fake.faults import Answer
from tests.control_plane.fake.resources import resource_of
from tests.dashboard.work import text
from tests.scheduled import ScheduledCluster, scheduled_cluster
from tests.services.cluster.jobs.examples import job, task

pytestmark = pytest.mark.django_db

JOBS = resource_of("batch.volcano.sh/v1alpha1", "jobs")
COMMANDS = resource_of("bus.volcano.sh/v1alpha1", "commands")
FORM = {
    "name": "fresh",
    "namespace": "default",
    "queue": "default",
    "task": "worker",
    "replicas": "2",
    "image": "busybox",
    "cpu": "1",
    "memory": "1Gi",
    "do": "submit",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ScheduledCluster]:
    """With a job train that runs."""
    with scheduled_cluster(tmp_path) as running:
        running.tells()
        given = job("train", task("worker", 2), minAvailable=2)
        running.server.store.create(
            JOBS, "default", {**given, "status": {"state": {"phase": "Running"}}}
        )
        running.mirror.has(read_job(running.server.store.get(JOBS, "default", "train")))
        yield running
    api_server._client.cache_clear()


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("boss", password="x" * 12))
    return client


def sent(cluster: ScheduledCluster, resource: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = cluster.server.store.list(resource, "default")[0]
    return items


def test_the_page_of_a_job_offers_commands_and_sends_them(cluster, admin):
    page = text(admin.get("/jobs/default/train/"))
    answer = admin.post("/jobs/default/train/suspend/", {"reason": "too early"})

    assert "Watched only" not in page
    assert "/jobs/default/train/suspend/" in page
    assert answer.status_code in (200, 302)
    order = sent(cluster, COMMANDS)[0]
    assert order["action"] == "AbortJob"
    assert order["target"]["name"] == "train"
    assert order["target"]["uid"] == str(Job.objects.get().uid)
    assert Command.objects.get().request_id == order["metadata"]["uid"]
    assert Job.objects.get().phase == "Running"  # until the cluster says otherwise


def test_the_form_submits_to_the_cluster_and_says_that_it_shows_later(cluster, admin):
    answer = admin.post("/jobs/-/new/", FORM, follow=True)

    made = cluster.server.store.get(JOBS, "default", "fresh")
    assert made["metadata"]["annotations"] == {"fumarole.io/owner": "boss"}
    assert made["spec"]["schedulerName"] == "fumarole"
    assert "It was sent to the cluster" in text(answer)
    assert not Job.objects.filter(name="fresh").exists()


def test_what_a_webhook_refuses_is_told_on_the_form(cluster, admin):
    words = 'admission webhook "jobs.example.com" denied the request: not on Fridays'
    cluster.server.plan("POST", "*/jobs", Answer(403, "Forbidden", words))

    answer = admin.post("/jobs/-/new/", FORM)

    assert "not on Fridays" in text(answer)


def test_the_api_submits_scales_and_refuses_as_the_cluster_does(cluster, admin):
    given = job("new", task("worker", 1), minAvailable=1)
    made = admin.post("/api/v1/jobs/", given, content_type="application/json")
    again = admin.post("/api/v1/jobs/", given, content_type="application/json")
    tasks = [{**job("train", task("worker", 5))["spec"]["tasks"][0], "minAvailable": 2}]
    scaled = admin.patch(
        "/api/v1/jobs/default/train/",
        {"spec": {"tasks": tasks}},
        content_type="application/merge-patch+json",
    )

    assert made.status_code == 201
    assert made.json()["warnings"][0]["message"].startswith("It was sent to the cluster")
    assert again.status_code == 409
    assert scaled.status_code == 200, scaled.content
    stored = cluster.server.store.get(JOBS, "default", "train")
    assert stored["spec"]["tasks"][0]["replicas"] == 5
    assert stored["status"] == {"state": {"phase": "Running"}}


def test_a_dry_run_sends_nothing(cluster, admin):
    given = job("new", task("worker", 1), minAvailable=1)
    made = admin.post("/api/v1/jobs/?dry_run=true", given, content_type="application/json")
    cancelled = admin.post("/api/v1/jobs/default/train/cancel/?dry_run=true")

    assert (made.status_code, cancelled.status_code) == (200, 200)
    assert [method for method, _ in cluster.server.requests if method != "GET"] == []
