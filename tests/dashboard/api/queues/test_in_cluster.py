"""Queues of a real cluster through the API and the pages: sent there, and refusals told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from scheduler.models import Queue
from tests.control_plane.fake.faults import Answer
from tests.control_plane.objects import QUEUES as PATH
from tests.control_plane.objects import queue
from tests.dashboard.work import text
from tests.fake_cluster import FakeCluster, fake_cluster

pytestmark = pytest.mark.django_db

JSON = "application/json"
AWAY = Answer(503, "ServiceUnavailable", "away for repairs")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FakeCluster]:
    with fake_cluster(tmp_path) as running:
        yield running


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root-admin", password="x" * 12))
    return client


def patched(admin: Client, **spec: Any) -> Any:
    return admin.patch("/api/v1/queues/research/", {"spec": spec}, "application/merge-patch+json")


def test_the_api_creates_changes_and_commands(cluster, admin):
    made = admin.post("/api/v1/queues/", queue("vision", parent="research", weight=2), JSON)
    assert made.status_code == 201
    assert made.json()["spec"]["parent"] == "research"
    assert [each["code"] for each in made.json()["warnings"]] == ["sent_to_cluster"]
    assert cluster.queue("vision")["spec"]["weight"] == 2
    cluster.tells()

    assert patched(admin, weight=5).status_code == 200
    assert cluster.queue("research")["spec"]["weight"] == 5

    closed = admin.post("/api/v1/queues/vision/close/", {"reason": "repairs"}, JSON)
    assert closed.json()["changed"]
    assert cluster.queue("vision")["spec"]["state"] == "Closed"
    cluster.tells()
    assert admin.delete("/api/v1/queues/vision/").status_code == 200
    cluster.tells()
    assert admin.get("/api/v1/queues/vision/").status_code == 404


def test_a_dry_run_of_the_api_answers_in_full_and_sends_nothing(cluster, admin):
    made = admin.post("/api/v1/queues/?dry_run=true", queue("vision", parent="research"), JSON)

    assert made.json()["status"]["state"] == "Open"
    assert cluster.writes() == []
    assert not Queue.objects.filter(name="vision").exists()


def test_a_list_of_queues_is_answered_one_by_one(cluster, admin):
    cluster.has("taken", parent="root")
    given = [queue("vision", parent="root"), queue("taken", parent="root")]

    answer = admin.post("/api/v1/queues/", given, JSON).json()

    assert [each["status"] for each in answer["results"]] == [201, 409]
    assert cluster.queue("vision")


def test_a_request_with_a_key_is_sent_once(cluster, admin):
    headers = {"Idempotency-Key": "one"}
    body = queue("vision", parent="root")
    first = admin.post("/api/v1/queues/", body, JSON, headers=headers)
    again = admin.post("/api/v1/queues/", body, JSON, headers=headers)

    assert (first.status_code, again.status_code) == (201, 201)
    assert again["Idempotent-Replayed"] == "true"
    assert cluster.writes() == ["POST"]


def test_a_conflict_is_409_and_names_the_field(cluster, admin):
    cluster.changes("research", lambda each: {**each, "spec": {**each["spec"], "weight": 9}})

    answer = patched(admin, weight=5)

    assert answer.status_code == 409
    (violation,) = answer.json()["violations"]
    assert (violation["queue"], violation["field"]) == ("research", "spec.weight")


def test_an_api_server_that_is_away_is_503_with_a_time_to_try_again(cluster, admin):
    cluster.server.plan("GET", f"{PATH}/research", AWAY)

    answer = patched(admin, weight=5)

    assert answer.status_code == 503
    assert answer["Retry-After"]
    assert "The queue research was not changed" in answer.json()["detail"]


def test_a_page_tells_what_the_cluster_refuses(cluster, admin):
    cluster.server.plan("PATCH", f"{PATH}/research", Answer(403, "Forbidden", "no rights"))
    page = admin.post("/queues/research/close/", {"reason": "test"})
    assert page.status_code == 409
    assert "does not allow that the queue research is changed: no rights" in text(page)

    cluster.server.plan("POST", PATH, Answer(422, "Invalid", "too heavy"))
    form = {"name": "new", "parent": "root", "weight": "1"}
    page = admin.post("/queues/-/new/", form)
    assert page.status_code == 400
    assert "too heavy" in text(page)
    assert not Queue.objects.filter(name="new").exists()


def test_a_page_creates_a_queue_and_says_that_it_was_sent(cluster, admin):
    form = {"name": "new", "parent": "root", "weight": "1"}
    page = admin.post("/queues/-/new/", form, follow=True)

    assert page.status_code == 200
    assert "sent to the cluster" in text(page)
    assert cluster.queue("new")["spec"]["weight"] == 1


def test_a_page_closes_a_queue_and_several(cluster, admin):
    page = text(admin.post("/queues/research/suspend/", {"reason": "test"}, follow=True))
    assert "sent to the cluster" in page
    cluster.tells()
    page = text(admin.get("/queues/research/"))
    assert "may go on starting pods of this queue" in page

    several = {"command": "close", "queue": ["research"], "confirmed": "1"}
    admin.post("/queues/-/commands/", several)
    assert cluster.queue("research")["spec"]["state"] == "Closed"


def test_a_queue_page_says_where_the_suspension_is_kept(cluster, admin):
    cluster.defines()
    cluster.tells()
    admin.post("/queues/research/suspend/", {"reason": "test"})
    cluster.tells()

    page = text(admin.get("/queues/research/"))

    assert "It is kept in the annotation fumarole.io/state" in page
