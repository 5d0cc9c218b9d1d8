"""Sessions, pausing and the policy."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from scheduler.models import (
    ClusterState,
    Decision,
    PodGroup,
    PolicyVersion,
    SchedulingSession,
)
from scheduler.services.sessions.policies import policy_text
from tests.dashboard.work import signed_in, small_cluster, submitted, text
from tests.worlds import run_session

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def applied(client: Client, **given: str) -> Any:
    """Applied as a reader does it: asked, shown what would change, and confirmed."""
    asked = client.post("/policy/", {**given, "do": "save"})
    return client.post("/policy/", {**given, "do": "save", "confirmed": asked.context["confirmed"]})


def test_a_session_shows_what_it_decided_and_can_be_saved():
    number = SchedulingSession.objects.filter(counts__binds__gt=0).earliest("number").number

    page = signed_in("admin").get(f"/sessions/{number}/")
    saved = signed_in("admin").get(f"/sessions/{number}/scenario.json")

    assert "train-1-worker-0" in text(page)
    assert (
        json.loads(saved.content)
        == signed_in("admin").get(f"/api/v1/sessions/{number}/scenario/").json()
    )
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

    applied(admin, text=GOOD, version="0", reason="simpler")
    first = PolicyVersion.objects.get()
    other = GOOD.replace("backfill", "reclaim")
    applied(admin, text=other, version=str(first.pk))
    back = admin.get(f"/policy/{first.pk}/")
    applied(
        admin,
        text=first.text,
        version=str(ClusterState.objects.get().policy_id),
        reason="back",
    )

    assert any(line.kind == "added" for line in back.context["lines"])
    assert policy_text(ClusterState.objects.select_related("policy").get()) == GOOD
    assert PolicyVersion.objects.count() == 3


def test_a_preset_is_shown_with_what_it_would_change_and_applied_once_confirmed():
    admin = signed_in("admin")
    page = text(admin.get("/policy/"))
    assert "preset <strong>fumarole</strong>" in admin.get("/policy/").content.decode()
    assert "pods that started less than this time ago are not evicted" in page

    asked = admin.post("/policy/", {"do": "preset", "preset": "volcano", "version": "0"})
    assert "Apply this policy?" in text(asked)
    assert (asked.context["reason"], asked.context["chosen"]) == ("preset volcano", "volcano")
    assert not PolicyVersion.objects.exists()

    admin.post(
        "/policy/",
        {
            "do": "save",
            "text": asked.context["text"],
            "reason": asked.context["reason"],
            "confirmed": asked.context["confirmed"],
            "version": "0",
        },
    )
    assert admin.get("/policy/").context["preset"] == "volcano"
    assert PolicyVersion.objects.get().reason == "preset volcano"


def test_a_preset_with_other_times_is_called_so():
    """As the sample cluster has it."""
    admin = signed_in("admin")
    built_in = admin.get("/policy/").context["text"]
    applied(admin, text=built_in.replace("Seconds: 300", "Seconds: 60"), version="0")

    page = admin.get("/policy/")

    assert "preset <strong>fumarole</strong>, with other times" in text(page)
    assert "equal to no preset" not in text(page)
    assert page.context["chosen"] == "fumarole"


def test_the_preset_that_ignores_quotas_says_so_before_it_is_applied():
    asked = signed_in("admin").post("/policy/", {"do": "preset", "preset": "bound", "version": "0"})

    assert "weight, guarantee, deserved and capability of queues count for nothing" in text(asked)
    assert not PolicyVersion.objects.exists()


def test_a_preset_that_does_not_exist_changes_nothing():
    answer = signed_in("admin").post("/policy/", {"do": "preset", "preset": "best"}, follow=True)

    assert "There is no preset “best”." in text(answer)
    assert not PolicyVersion.objects.exists()


def test_a_policy_with_mistakes_names_every_place():
    answer = signed_in("admin").post(
        "/policy/",
        {
            "text": "actions: allocate, dance\ntiers:\n- plugins:\n  - name: luck\n",
            "do": "save",
            "version": "0",
        },
    )

    assert len(answer.context["problems"]) == 2
    assert "dance" in text(answer)
    assert not PolicyVersion.objects.exists()


def test_a_policy_that_somebody_else_changed_meanwhile_is_not_overwritten():
    admin = signed_in("admin")
    applied(admin, text=GOOD, version="0")

    late = admin.post(
        "/policy/", {"text": GOOD.replace("backfill", "reclaim"), "do": "save", "version": "0"}
    )

    assert late.status_code == 412
    assert "admin applied another policy while you were editing." in text(late)
    assert (late.context["text"], late.context["is_put_together"]) == (
        GOOD.replace("backfill", "reclaim"),
        False,
    )
    assert PolicyVersion.objects.count() == 1


def test_what_two_people_changed_in_different_lines_of_the_policy_is_put_together():
    admin = signed_in("admin")
    applied(admin, text=GOOD, version="0")
    opened = str(PolicyVersion.objects.get().pk)
    applied(admin, text=GOOD + "# theirs, at the end\n", version=opened)

    asked = admin.post(
        "/policy/", {"text": "# mine, at the beginning\n" + GOOD, "do": "save", "version": opened}
    )

    both = "# mine, at the beginning\n" + GOOD + "# theirs, at the end\n"
    assert (asked.status_code, asked.context["text"], asked.context["is_put_together"]) == (
        412,
        both,
        True,
    )
    assert PolicyVersion.objects.count() == 2
    applied(admin, text=both, version=str(asked.context["version"]))
    assert policy_text(ClusterState.objects.select_related("policy").get()) == both


def test_only_a_cluster_admin_changes_the_policy():
    assert signed_in("ruth").post("/policy/", {"text": GOOD, "do": "save"}).status_code == 403
    assert not PolicyVersion.objects.exists()


def test_the_first_policy_of_ones_own_can_be_taken_back_too():
    client = signed_in("admin")
    built_in = policy_text(ClusterState.objects.get(pk=1))
    applied(client, text=GOOD, version="0")

    page = client.get("/policy/0/")
    applied(client, text=page.context["row"].text, version=str(PolicyVersion.objects.get().pk))

    assert "Go back to this policy" in text(page)
    assert "/policy/0/" in text(client.get("/policy/"))
    assert policy_text(ClusterState.objects.select_related("policy").get(pk=1)) == built_in


def let_time_pass() -> None:
    """Everything that happened did so 53 minutes ago, but for the last session, which is new."""
    then = timezone.now() - timedelta(minutes=53)
    PodGroup.objects.update(created_at=then)
    Decision.objects.update(created_at=then)
    PolicyVersion.objects.update(created_at=then)
    ClusterState.objects.update(last_session_at=timezone.now())


IDLE = "actions: backfill\ntiers:\n- plugins:\n  - name: priority\n"


class TestAPolicyThatStartsNothing:
    @pytest.fixture(autouse=True)
    def waiting(self) -> None:
        """A job that fits into the room that is left."""
        submitted("fresh", "batch", "bert", cpu="2")

    def test_is_not_applied_without_a_word(self):
        asked = signed_in("admin").post("/policy/", {"text": IDLE, "do": "save", "version": "0"})

        assert not PolicyVersion.objects.exists()
        assert "Apply this policy?" in text(asked)
        assert "There is no allocate action: no job that asks for resources will start." in text(
            asked
        )
        assert (asked.context["effect"].now.placed, asked.context["effect"].then.placed) == (1, 0)
        assert "Would no longer get a place:</strong> default/fresh" in text(asked)

    def test_is_applied_by_who_confirms_exactly_that_text(self):
        admin = signed_in("admin")
        asked = admin.post("/policy/", {"text": IDLE, "do": "save", "version": "0"})

        other = admin.post(
            "/policy/",
            {
                "text": IDLE + "# more",
                "do": "save",
                "version": "0",
                "confirmed": asked.context["confirmed"],
            },
        )
        assert "Apply this policy?" in text(other)
        admin.post(
            "/policy/",
            {"text": IDLE, "do": "save", "version": "0", "confirmed": asked.context["confirmed"]},
        )

        assert PolicyVersion.objects.get().text == IDLE
        assert any("no allocate" in warning for warning in PolicyVersion.objects.get().warnings)

    def test_is_told_in_red_on_the_overview_until_somebody_goes_back(self):
        admin = signed_in("admin")
        applied(admin, text=IDLE, version="0")
        run_session()
        assert "Nothing has been placed" not in text(admin.get("/"))  # not yet for long

        let_time_pass()
        page = text(admin.get("/"))
        assert "Nothing has been placed for" in page
        assert "although 1 job would fit." in page
        assert "Go back to the built-in policy" in page
        assert "LeftOutByPolicy" in page
        assert "Has not been looked at yet" not in page

        answer = admin.post(
            "/policy/-/back/",
            {"to": "0", "version": str(PolicyVersion.objects.get().pk), "next": "/"},
            follow=True,
        )
        assert "Back to the built-in policy." in text(answer)
        assert "Nothing has been placed" not in text(answer)
        assert admin.get("/policy/").context["back_to"] is None  # it is there already

    def test_the_way_back_ends_on_the_page_it_began_on(self):
        admin = signed_in("admin")
        applied(admin, text=IDLE, version="0")
        fields = {"to": "0", "version": str(PolicyVersion.objects.get().pk)}

        assert 'name="next" value="/policy/"' in admin.get("/policy/").content.decode()
        answer = admin.post("/policy/-/back/", {**fields, "next": "/policy/"})

        assert answer.headers["Location"] == "/policy/"

    def test_who_may_not_change_it_sees_the_line_without_the_button(self):
        applied(signed_in("admin"), text=IDLE, version="0")
        run_session()
        let_time_pass()

        page = text(signed_in("ruth").get("/"))

        assert "Nothing has been placed for" in page
        assert "/policy/-/back/" not in page
        assert signed_in("ruth").post("/policy/-/back/", {"to": "0"}).status_code == 403
