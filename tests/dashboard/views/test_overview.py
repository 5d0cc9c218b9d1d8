"""The overview: what it sums up, and that it tells nobody of what he may not see."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from scheduler.models import Eviction, SchedulingSession
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def evicted(
    gang: str,
    queue: str,
    beneficiary: str,
    beneficiary_queue: str,
    pods: int = 1,
) -> SchedulingSession:
    session = SchedulingSession.objects.first()
    assert session is not None
    for number in range(pods):
        Eviction.objects.create(
            session=session,
            session_number=session.number,
            pod_name=f"{gang}-{number}",
            podgroup_name=gang,
            queue_name=queue,
            beneficiary=beneficiary,
            beneficiary_queue=beneficiary_queue,
            action="reclaim",
            common_ancestor="root",
            created_at=timezone.now(),
        )
    return session


def test_evictions_of_one_gang_for_one_job_are_one_line():
    evicted("default/train-1", "vision", "default/nightly", "batch", pods=8)
    evicted("default/label", "language", "default/nightly", "batch")

    page = signed_in("admin").get("/")

    assert [(gang["podgroup_name"], gang["pods"]) for gang in page.context["evictions"]] == [
        ("default/label", 1),
        ("default/train-1", 8),
    ]
    assert "8 pods of" in text(page)
    assert 'href="/jobs/default/nightly/"' in text(page)


def test_the_costs_of_the_last_hour_stand_beside_how_full_it_is():
    for number in range(3):
        Eviction.objects.create(
            session_number=number,
            pod_name="default/train-1-0",
            podgroup_name="default/train-1",
            queue_name="vision",
            action="reclaim",
            core_seconds=600,
            created_at=timezone.now(),
        )
    SchedulingSession.objects.update(counts={"binds": 0})
    session = SchedulingSession.objects.first()
    SchedulingSession.objects.filter(pk=session.pk).update(counts={"binds": 60})

    page = text(signed_in("admin").get("/"))

    assert "Last hour: 0.05 evictions per placement (3 for 60) · 30 min of CPU time lost" in page
    assert "Evicted more than twice in the last hour" in page
    assert "3 times, 3 pods" in page


def test_an_hour_without_evictions_says_so():
    SchedulingSession.objects.update(counts={"binds": 2})

    assert "Last hour: no eviction, " in text(signed_in("admin").get("/"))


def test_who_may_not_see_the_beneficiary_is_not_told_its_name():
    session = evicted("default/train-1", "vision", "default/nightly", "batch")

    overview, of_session = (
        text(signed_in("vera").get(path)) for path in ("/", f"/sessions/{session.number}/")
    )

    assert "default/train-1" in overview
    for page in (overview, of_session):
        assert "nightly" not in page
        assert "a job in a queue that you may not see" in page


def test_only_who_sees_everything_is_offered_a_session_as_a_file():
    pages = {who: text(signed_in(who).get("/sessions/")) for who in ("admin", "vera")}

    assert "/scenario.json" in pages["admin"]
    assert "/scenario.json" not in pages["vera"]


def test_who_has_no_role_is_shown_no_figure_and_told_whom_to_ask():
    get_user_model().objects.create(username="newcomer")
    client = signed_in("newcomer")

    overview = client.get("/")
    jobs = client.get("/jobs/")

    assert "How full is it?" not in text(overview)
    assert "Ask admin for the role" in text(overview)
    assert 'href="/nodes/"' not in text(overview)
    assert "There are no jobs that you may see" in text(jobs)
    assert client.post("/queues/-/check/", {"name": "x", "parent": "research"}).status_code == 403
