"""/comparison/, its API and its command: two schedulers beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from scheduler.models import Comparison, Grant, Queue
from scheduler.services.sessions.runner import SessionRunner
from tests.dashboard.work import text
from tests.mirrored import MadeUpCluster, kubernetes_mode, moved, node, pod, podgroup, queue

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _watched_cluster() -> Iterator[None]:
    """`late` was started long after ours would have; `quick` at once; `private` only by theirs."""
    with kubernetes_mode():
        cluster = MadeUpCluster()
        late = pod("late-0", group="late", cpu="1")
        quick = pod("quick-0", group="quick", cpu="1")
        private = pod("private-0", group="private", cpu="64")
        cluster.lists(
            node("n1", cpu="8"),
            queue("research"),
            queue("secret"),
            podgroup("late", queue="research", phase="Inqueue"),
            podgroup("quick", queue="research", phase="Inqueue"),
            podgroup("private", queue="secret", phase="Inqueue"),
            late,
            quick,
            private,
        )
        runner = SessionRunner("test")
        runner.run()
        cluster.has(
            moved(late, node="n1", phase="Running"),
            moved(quick, node="n1", phase="Running"),
            moved(private, node="n1", phase="Running"),
        )
        runner.run()
        earlier = timezone.now() - timedelta(seconds=200)
        Comparison.objects.filter(podgroup_name="default/late").update(
            since=earlier, ours_at=earlier
        )
        yield


@pytest.fixture
def viewer() -> Client:
    """Of the queue research alone."""
    user = get_user_model().objects.create_user("vera", password="x" * 12)
    Grant.objects.create(user=user, queue=Queue.objects.get(name="research"), role="viewer")
    client = Client()
    client.force_login(user)
    return client


def test_the_page_tells_the_rate_and_every_difference(root_admin):
    page = text(root_admin.get("/comparison/"))

    assert "33 %" in page
    assert "1 of 3 gangs" in page
    assert "default/late" in page
    assert "Fumarole would have started it earlier" in page
    assert "started it after 3 min" in page
    assert "Only the other scheduler started it" in page
    assert "ExceedsCluster" in page
    assert "default/quick" not in page
    assert "within 10 seconds" in page


def test_a_filter_limits_the_rows_by_kind_and_queue(root_admin):
    agreed = text(root_admin.get("/comparison/?kind=together"))
    of_secret = text(root_admin.get("/comparison/?queue=secret"))

    assert "default/quick" in agreed
    assert "default/late" not in agreed
    assert "default/private" in of_secret
    assert "default/late" not in of_secret
    assert root_admin.get("/comparison/?kind=nonsense").status_code == 400


def test_a_reader_sees_only_gangs_of_their_queues(viewer):
    page = text(viewer.get("/comparison/?kind=all"))
    rows = viewer.get("/api/v1/comparisons/").json()["results"]
    totals = viewer.get("/api/v1/comparison/").json()["status"]

    assert "private" not in page
    assert "1 of 2 gangs" in page
    assert {row["spec"]["podgroup"] for row in rows} == {"default/late", "default/quick"}
    assert totals["starts"] == {"agreed": 1, "decided": 2, "rate": 0.5}


def test_the_page_and_the_api_are_saved_as_csv(root_admin):
    page = b"".join(root_admin.get("/comparison/?kind=all&format=csv")).decode()
    answer = root_admin.get("/api/v1/comparisons/", headers={"accept": "text/csv"})

    assert page.splitlines()[0].startswith("podgroup,queue,about,verdict")
    assert page == b"".join(answer).decode()
    assert len(page.splitlines()) == 4


def test_the_api_filters_by_verdict(root_admin):
    rows = root_admin.get("/api/v1/comparisons/?verdict=onlyTheirs").json()["results"]

    assert [row["spec"]["podgroup"] for row in rows] == ["default/private"]
    assert rows[0]["spec"]["reason"] == "ExceedsCluster"
    assert rows[0]["spec"]["oursAt"] is None
    assert root_admin.get("/api/v1/comparisons/?verdict=nonsense").status_code == 400


def test_totals_are_limited_by_queue_and_window(root_admin):
    Comparison.objects.filter(podgroup_name="default/late").update(
        since=timezone.now() - timedelta(hours=2)
    )

    lately = root_admin.get("/api/v1/comparison/?window=1h").json()["status"]
    of_research = root_admin.get("/api/v1/comparison/?window=24h&queue=research").json()["status"]

    assert lately["window"] == "1h"
    assert lately["starts"]["decided"] == 2
    assert of_research["starts"] == {"agreed": 1, "decided": 2, "rate": 0.5}
    assert root_admin.get("/api/v1/comparison/?window=2h").status_code == 400


def test_an_empty_page_says_what_it_waits_for(root_admin):
    Comparison.objects.all().delete()

    page = text(root_admin.get("/comparison/"))

    assert "It begins with the first gang that has all the pods it needs" in page


def test_the_navigation_has_it_only_where_another_scheduler_decides(root_admin):
    assert 'href="/comparison/"' in root_admin.get("/").content.decode()

    with kubernetes_mode(mode="schedule"):
        assert 'href="/comparison/"' not in root_admin.get("/").content.decode()
        assert "Fumarole itself decides in this cluster" in text(root_admin.get("/comparison/"))


def test_a_gang_that_is_gone_has_no_link(root_admin):
    Comparison.objects.filter(podgroup_name="default/late").update(podgroup_number=10**9)

    page = root_admin.get("/comparison/").content.decode()

    assert 'href="/jobs/default/late/"' not in page
    assert 'href="/jobs/default/private/"' in page
