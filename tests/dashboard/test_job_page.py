"""One job: why it waits, its timeline, who may command it."""

from __future__ import annotations

import pytest

from scheduler.models import (
    Job,
    PodGroup,
)
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def test_a_waiting_job_says_why_with_every_check():
    page = signed_in("sam").get("/jobs/default/train-2/")

    reason = page.context["reason"]
    assert reason["code"] == PodGroup.objects.get(name="train-2").reason_code
    assert reason["message"] in page.context["gang"].reason_message
    assert any(not check["passed"] for check in reason["checks"])
    assert signed_in("sam").get("/jobs/default/train-1/").context["reason"] is None


@pytest.mark.parametrize(("who", "phases"), [("sam", ("Aborting", "Aborted")), ("ruth", ("Aborting", "Aborted")), ("vera", ("Running",))])
def test_who_may_suspend_a_job(who: str, phases: tuple[str, ...]):
    client = signed_in(who)
    page = client.get("/jobs/default/train-1/")

    answer = client.post("/jobs/default/train-1/suspend/", {"reason": "a test"})

    assert ("Suspend…" in text(page)) is (who != "vera")
    assert answer.status_code == (403 if who == "vera" else 302)
    assert Job.objects.get(name="train-1").phase in phases


def test_what_the_state_forbids_is_told():
    client = signed_in("sam")
    client.post("/jobs/default/train-1/resume/")

    assert "Running already" in text(client.get("/jobs/default/train-1/")) or "is Running" in text(client.get("/jobs/default/train-1/"))


def test_a_timeline_tells_what_was_asked_and_how_long_it_waited():
    client = signed_in("sam")
    client.post("/jobs/default/train-2/suspend/", {"reason": "not today"})

    page = client.get("/jobs/default/train-2/timeline/")

    titles = [entry["step"].title for entry in page.context["steps"]]
    assert titles[0] == "Submitted"
    assert "Suspend, asked for by sam" in titles
    assert titles[-1] == "Suspended"
    assert "waited" in text(page)
