"""/healthz and /readyz, as a load balancer reads them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.live.notices import site_notices
from scheduler.models import ClusterState, Mirror, SchedulingSession
from scheduler.services.demo.setup import ensure_builtin_objects
from tests.dashboard.conftest import RedisServer, free_port
from tests.mirrored import kubernetes_mode

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(db: None, redis_server: RedisServer) -> None:
    ensure_builtin_objects()
    ClusterState.objects.update(last_session_at=timezone.now(), period_seconds=1.0)


def session_ended_ago(seconds: float) -> None:
    ClusterState.objects.update(last_session_at=timezone.now() - timedelta(seconds=seconds))


def test_healthz_answers_without_sign_in(client: Client):
    answer = client.get("/healthz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.usefixtures("cluster")
class TestReady:
    def test_ready_when_all_parts_answer(self, client: Client):
        answer = client.get("/readyz")

        assert answer.status_code == 200
        assert answer.json()["status"] == "ok"
        assert set(answer.json()["checks"]) == {"database", "redis", "sessions"}

    def test_not_ready_when_the_last_session_is_more_than_ten_periods_old(self, client: Client):
        session_ended_ago(12)

        answer = client.get("/readyz")

        assert answer.status_code == 503
        message = answer.json()["checks"]["sessions"]["message"]
        assert re.match(r"No scheduling for \d+ s \(normally every 1 s\)\.", message)

    def test_a_redis_that_hangs_is_named(self, client: Client, redis_server: RedisServer):
        with redis_server.hung():
            answer = client.get("/readyz")

        assert answer.status_code == 503
        assert answer.json()["checks"]["redis"]["message"].startswith(
            "Redis does not answer within 2 s."
        )

    def test_a_session_of_the_future_is_named(self, client: Client):
        session_ended_ago(-3600)

        answer = client.get("/readyz")

        assert answer.status_code == 503
        message = answer.json()["checks"]["sessions"]["message"]
        assert "s in the future, and none has run since. Was the clock put back" in message
        assert "s ago" not in message

    def test_clocks_that_differ_a_little_make_no_negative_age(self, client: Client):
        session_ended_ago(-3)

        answer = client.get("/readyz")

        assert answer.status_code == 200
        assert answer.json()["checks"]["sessions"]["message"] == "last session 0.0 s ago"

    @pytest.mark.parametrize(
        ("did_its_work_ago", "words"),
        [(12, "Since then they fail"), (None, "Every session so far has failed")],
    )
    def test_not_ready_when_sessions_are_begun_but_fail(
        self,
        client: Client,
        did_its_work_ago: float | None,
        words: str,
    ):
        now = timezone.now()
        if did_its_work_ago:
            ended = now - timedelta(seconds=did_its_work_ago)
            SchedulingSession.objects.create(
                number=1,
                state="Done",
                started_at=ended,
                finished_at=ended,
            )
        SchedulingSession.objects.create(number=2, state="Failed", started_at=now, finished_at=now)

        answer = client.get("/readyz")

        assert answer.status_code == 503
        assert words in answer.json()["checks"]["sessions"]["message"]

    def test_one_failed_session_is_forgiven(self, client: Client):
        now = timezone.now()
        SchedulingSession.objects.create(number=1, state="Done", started_at=now, finished_at=now)
        SchedulingSession.objects.create(number=2, state="Failed", started_at=now, finished_at=now)

        assert client.get("/readyz").status_code == 200

    def test_a_longer_period_allows_an_older_session(self, client: Client):
        session_ended_ago(12)
        ClusterState.objects.update(period_seconds=5.0)

        assert client.get("/readyz").status_code == 200

    def test_what_fails_beside_sessions_is_told_and_the_site_stays_ready(self, client: Client):
        ClusterState.objects.update(
            failing={
                "observing the cluster": {
                    "problem": "ValueError",
                    "since": "2026-01-02T03:04:05+00:00",
                }
            }
        )

        answer = client.get("/readyz")

        assert (answer.status_code, answer.json()["status"]) == (200, "impaired")
        told = answer.json()["checks"]["observing the cluster"]
        assert told == {
            "ok": False,
            "message": "Fails since 2026-01-02 03:04:05 UTC. The log of the worker says why.",
        }

    def test_paused_counts_as_ready(self, client: Client):
        session_ended_ago(3600)
        ClusterState.objects.update(paused=True)

        answer = client.get("/readyz")

        assert answer.status_code == 200
        assert answer.json()["checks"]["sessions"]["message"] == "paused"

    def test_not_ready_before_the_first_session(self, client: Client):
        ClusterState.objects.update(last_session_at=None)

        answer = client.get("/readyz")

        assert answer.status_code == 503
        assert "No session has run yet" in answer.json()["checks"]["sessions"]["message"]

    def test_not_ready_without_redis_and_the_others_are_still_told(
        self,
        client: Client,
        settings: Any,
    ):
        settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"

        answer = client.get("/readyz")

        assert answer.status_code == 503
        assert {name: check["ok"] for name, check in answer.json()["checks"].items()} == {
            "database": True,
            "redis": False,
            "sessions": True,
        }


# A real cluster that is mirrored


def _mirror(**columns):
    Mirror.objects.update_or_create(pk=1, defaults=columns)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"problem": "connection refused"}, "has not been heard yet. connection refused"),
        ({"heard": 12, "synced": True}, "was not heard for"),
        ({"heard": 1, "synced": False}, "is being read"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_a_cluster_that_is_not_heard_makes_it_unready(client, columns, words):
    now = timezone.now()
    heard = columns.get("heard")
    _mirror(
        problem=columns.get("problem", ""),
        heard_at=None if heard is None else now - timedelta(seconds=heard),
        synced_at=now if columns.get("synced") else None,
    )

    with kubernetes_mode():
        answer = client.get("/readyz")
        notices = site_notices()

    assert answer.status_code == 503
    assert words in answer.json()["checks"]["cluster"]["message"]
    assert any("cluster" in notice["text"] for notice in notices)


@pytest.mark.usefixtures("cluster")
def test_a_cluster_that_is_heard_is_in_order(client):
    _mirror(heard_at=timezone.now(), synced_at=timezone.now())

    with kubernetes_mode():
        answer = client.get("/readyz")

    assert answer.json()["checks"]["cluster"]["ok"]


@pytest.mark.usefixtures("cluster")
def test_a_simulated_cluster_is_not_asked_for(client):
    assert "cluster" not in client.get("/readyz").json()["checks"]
