"""Sessions, pausing and the policy."""

from __future__ import annotations

import json

import pytest

from scheduler.models import (
    ClusterState,
    PolicyVersion,
    SchedulingSession,
)
from scheduler.services.policies import policy_text
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def test_a_session_shows_what_it_decided_and_can_be_saved():
    number = SchedulingSession.objects.filter(counts__binds__gt=0).first().number  # type: ignore[union-attr]

    page, saved = signed_in("admin").get(f"/sessions/{number}/"), signed_in("admin").get(f"/sessions/{number}/scenario.json")

    assert "train-1-worker-0" in text(page)
    assert json.loads(saved.content) == signed_in("admin").get(f"/api/v1/sessions/{number}/scenario/").json()
    assert signed_in("admin").get("/api/v1/sessions/999999/scenario/").status_code == 404
    assert signed_in("vera").get(f"/sessions/{number}/scenario.json").status_code == 403
    assert "nightly" not in text(signed_in("vera").get(f"/sessions/{number}/"))


def test_pausing_shows_a_banner_on_every_page_until_resumed():
    admin = signed_in("admin")
    admin.post("/sessions/-/pause/", {"reason": "change window"})

    paused = text(signed_in("vera").get("/jobs/"))
    assert ClusterState.objects.get().paused
    admin.post("/sessions/-/resume/")

    assert "Scheduling is paused by admin: “change window”" in paused
    assert "Scheduling is paused" not in text(signed_in("vera").get("/jobs/"))


@pytest.mark.parametrize("who", ["ruth", "sam", "vera"])
def test_only_a_cluster_operator_pauses(who: str):
    assert signed_in(who).post("/sessions/-/pause/").status_code == 403
    assert not ClusterState.objects.get().paused


GOOD = "actions: allocate, backfill\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n"


def test_a_policy_is_checked_put_in_force_and_taken_back():
    admin = signed_in("admin")
    checked = admin.post("/policy/", {"text": GOOD, "do": "check", "version": "0"})
    assert not PolicyVersion.objects.exists()
    assert any(line.kind == "removed" for line in checked.context["lines"])

    admin.post("/policy/", {"text": GOOD, "do": "save", "version": "0", "reason": "simpler"})
    first = PolicyVersion.objects.get()
    other = GOOD.replace("backfill", "reclaim")
    admin.post("/policy/", {"text": other, "do": "save", "version": str(first.pk)})
    back = admin.get(f"/policy/{first.pk}/")
    admin.post("/policy/", {"text": first.text, "do": "save", "version": str(ClusterState.objects.get().policy_id), "reason": "back"})

    assert any(line.kind == "added" for line in back.context["lines"])
    assert policy_text(ClusterState.objects.select_related("policy").get()) == GOOD
    assert PolicyVersion.objects.count() == 3


def test_a_policy_with_mistakes_names_every_place():
    answer = signed_in("admin").post(
        "/policy/", {"text": "actions: allocate, dance\ntiers:\n- plugins:\n  - name: luck\n", "do": "save", "version": "0"}
    )

    assert len(answer.context["problems"]) == 2
    assert "dance" in text(answer)
    assert not PolicyVersion.objects.exists()


def test_a_policy_that_somebody_else_changed_meanwhile_is_not_overwritten():
    admin = signed_in("admin")
    admin.post("/policy/", {"text": GOOD, "do": "save", "version": "0"})

    late = admin.post("/policy/", {"text": GOOD.replace("backfill", "reclaim"), "do": "save", "version": "0"})

    assert "changed by admin" in late.context["conflict"]
    assert PolicyVersion.objects.count() == 1


def test_only_a_cluster_admin_changes_the_policy():
    assert signed_in("ruth").post("/policy/", {"text": GOOD, "do": "save"}).status_code == 403
    assert not PolicyVersion.objects.exists()


def test_the_first_policy_of_ones_own_can_be_taken_back_too():
    client = signed_in("admin")
    built_in = policy_text(ClusterState.objects.get(pk=1))
    client.post("/policy/", {"text": GOOD, "do": "save", "version": "0"})

    page = client.get("/policy/0/")
    client.post("/policy/", {"text": page.context["row"].text, "do": "save", "version": str(PolicyVersion.objects.get().pk)})

    assert "Go back to this policy" in text(page)
    assert "/policy/0/" in text(client.get("/policy/"))
    assert policy_text(ClusterState.objects.select_related("policy").get(pk=1)) == built_in
