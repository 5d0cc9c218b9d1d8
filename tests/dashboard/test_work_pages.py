"""The pages of jobs, nodes, records, policy and accounts: who may see and do what, what is said, and that nothing is left half done."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from scheduler.models import (
    ApiToken,
    AuditEntry,
    BulkRun,
    ClusterState,
    Grant,
    Job,
    Node,
    PodGroup,
    PolicyVersion,
    Preference,
    SavedView,
    SchedulingSession,
)
from scheduler.services.policies import policy_text
from tests.dashboard.work import PASSWORD, PEOPLE, signed_in, small_cluster

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def text(answer: Any) -> str:
    return str(answer.content.decode())


def job_names(answer: Any) -> list[str]:
    return sorted(row["name"] for row in answer.context["rows"])


EVERYBODYS = ["/jobs/", "/jobs/default/train-1/", "/jobs/default/train-2/timeline/", "/jobs/default/train-1/events/", "/jobs/default/train-1/yaml/",
              "/jobs/default/train-1/evictions/", "/jobs/-/new/", "/nodes/", "/nodes/?view=map", "/nodes/n1/", "/sessions/", "/activity/", "/policy/", "/account/"]  # fmt: skip
ADMINS = ["/audit/", "/users/", "/users/-/grants/", "/users/sam/"]
CLUSTER_ADMINS = ["/users/-/new/", "/nodes/n1/drain/", "/sessions/-/pause/"]


def statuses(who: str, paths: list[str]) -> dict[str, int]:
    client = signed_in(who)
    return {path: client.get(path).status_code for path in paths}


@pytest.mark.parametrize("who", PEOPLE)
def test_everybody_who_sees_a_queue_gets_the_pages(who: str):
    assert statuses(who, EVERYBODYS) == dict.fromkeys(EVERYBODYS, 200)


@pytest.mark.parametrize(("who", "expected"), [("admin", 200), ("ruth", 200), ("sam", 403), ("vera", 403)])
def test_pages_of_admins(who: str, expected: int):
    assert statuses(who, ADMINS) == dict.fromkeys(ADMINS, expected)


@pytest.mark.parametrize(("who", "expected"), [("admin", 200), ("ruth", 403), ("sam", 403), ("vera", 403)])
def test_pages_of_cluster_admins(who: str, expected: int):
    assert statuses(who, CLUSTER_ADMINS) == dict.fromkeys(CLUSTER_ADMINS, expected)


def test_a_refusal_says_what_is_missing_and_whom_to_ask():
    answer = signed_in("sam").get("/audit/")

    assert "You need the permission “admin” on the queue root to read the audit log. Ask an admin of root" in text(answer)
    assert "Who can give it to you: <strong>admin</strong>." in text(answer)


def test_whom_to_ask_begins_with_the_nearest():
    answer = signed_in("vera").post("/jobs/default/train-1/suspend/")

    assert "Who can give it to you: <strong>ruth, admin</strong>." in text(answer)


@pytest.mark.parametrize(
    ("who", "expected"),
    [("admin", ["label", "nightly", "train-1", "train-2"]), ("ruth", ["label", "train-1", "train-2"]), ("vera", ["train-1", "train-2"])],
)
def test_the_table_holds_what_may_be_seen(who: str, expected: list[str]):
    assert job_names(signed_in(who).get("/jobs/")) == expected


def test_a_job_out_of_sight_is_not_there():
    client = signed_in("vera")

    hidden, missing = client.get("/jobs/default/nightly/"), client.get("/jobs/default/no-such/")

    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert text(hidden).count("nightly") == text(missing).count("no-such")


def test_a_filter_with_a_mistake_says_so_and_holds_otherwise():
    answer = signed_in("admin").get("/jobs/", {"q": "user:sam stat:running"})

    assert job_names(answer) == ["train-1", "train-2"]
    assert "There is no field “stat”: did you mean “state”?" in text(answer)


def test_my_jobs_are_mine():
    assert job_names(signed_in("sam").get("/jobs/", {"q": "user:me"})) == ["train-1", "train-2"]


def test_columns_are_chosen_by_the_address():
    page = text(signed_in("admin").get("/jobs/", {"cols": "state,priority"}))

    assert ">Priority</th>" in page
    assert ">Asks for</th>" not in page


def test_a_view_is_kept_shared_used_and_deleted():
    sam, vera = signed_in("sam"), signed_in("vera")
    answer = sam.post("/jobs/-/views/", {"name": "big ones", "q": "cpu>=8", "shared": "1"})
    assert answer["Location"] == "/jobs/?q=cpu%3E%3D8"

    offered = vera.get("/jobs/").context["views"]
    vera.post(f"/jobs/-/views/{offered[0]['id']}/forget/")

    assert [(view["name"], view["own"]) for view in offered] == [("big ones", False)]
    assert SavedView.objects.count() == 1  # somebody else's can not be deleted
    sam.post(f"/jobs/-/views/{offered[0]['id']}/forget/")
    assert not SavedView.objects.exists()


# Actions on many


def test_before_an_action_on_many_it_is_said_who_can_be_helped():
    answer = signed_in("ruth").get("/jobs/-/bulk/", {"action": "suspend", "all": "1", "q": ""})

    assert (answer.context["chosen"], answer.context["possible"]) == (3, 3)
    assert "3 chosen" in text(answer)


def test_an_action_on_many_is_written_down_and_has_a_page():
    client = signed_in("sam")
    answer = client.post(
        "/jobs/-/bulk/", {"action": "suspend", "job": ["default/train-1", "default/train-2", "default/label"], "reason": "later"}
    )

    run = BulkRun.objects.get()
    assert answer["Location"] == f"/jobs/-/bulk/{run.uid}/"
    assert sorted(run.items.values_list("name", flat=True)) == ["train-1", "train-2"]
    assert "Suspend: 0 of 2 done" in text(client.get(answer["Location"]))
    assert signed_in("vera").get(answer["Location"]).status_code == 404


def test_somebody_elses_jobs_can_not_be_chosen():
    answer = signed_in("vera").post("/jobs/-/bulk/", {"action": "cancel", "job": ["default/train-1"]})

    assert answer.status_code == 200
    assert answer.context["possible"] == 0
    assert not BulkRun.objects.exists()


# Submitting


FORM = {
    "name": "fresh",
    "namespace": "default",
    "queue": "vision",
    "task": "worker",
    "replicas": "2",
    "image": "busybox",
    "cpu": "1",
    "memory": "1Gi",
}


def test_only_queues_that_take_jobs_from_one_are_offered():
    assert [choice.name for choice in signed_in("sam").get("/jobs/-/new/").context["choices"]] == ["vision"]
    assert signed_in("vera").get("/jobs/-/new/").context["choices"] == []


def test_the_picker_says_what_is_free():
    choice = signed_in("sam").get("/jobs/-/new/").context["choices"][0]

    assert choice.words == "free: 8 CPU · 64 Gi"  # the cluster has 16 CPU of which 8 are in use; the limit of 12 leaves 8


def test_a_check_submits_nothing():
    answer = signed_in("sam").post("/jobs/-/new/", {**FORM, "do": "check"})

    assert "Starts now" in text(answer)
    assert not Job.objects.filter(name="fresh").exists()


def test_the_form_submits():
    answer = signed_in("sam").post("/jobs/-/new/", {**FORM, "do": "submit"})

    assert answer["Location"] == "/jobs/default/fresh/"
    assert Job.objects.get(name="fresh").owner == "sam"


def test_what_breaks_a_rule_is_told_where():
    answer = signed_in("sam").post("/jobs/-/new/", {**FORM, "cpu": "lots", "needed": "9", "do": "submit"})

    assert "Can not be submitted" in text(answer)
    assert not Job.objects.filter(name="fresh").exists()


@pytest.mark.parametrize("text_given", ["", "- a", "{", "kind: Job\nkind: Job", "!!python/object:os.system {}"])
def test_yaml_that_can_not_be_read_is_told(text_given: str):
    answer = signed_in("sam").post("/jobs/-/new/", {"as": "yaml", "yaml": text_given, "do": "submit"})

    assert answer.status_code == 400 or "Can not be submitted" in text(answer)
    assert text_given.partition("\n")[0] in answer.context["yaml"]


def test_a_clone_has_the_next_free_name_and_the_same_shape():
    form = signed_in("sam").get("/jobs/-/new/", {"clone": "default/train-1"}).context

    manifest = form["yaml"]
    assert "name: train-3" in manifest
    assert "replicas: 4" in manifest


# One job


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


# Nodes


def test_what_is_free_but_nowhere_together_is_told():
    page = text(signed_in("vera").get("/nodes/"))

    assert "CPU" in page
    assert "on one node" in page or "no node with" in page


def test_a_drain_says_whom_it_evicts_before_it_does():
    client = signed_in("admin")
    name = Node.objects.filter(pods__podgroup__name="train-1").first().name  # type: ignore[union-attr]

    asked = client.get(f"/nodes/{name}/drain/")
    assert Node.objects.get(name=name).unschedulable is False
    client.post(f"/nodes/{name}/drain/", {"reason": "new fans"})

    assert "default/train-1" in text(asked)
    assert Node.objects.get(name=name).unschedulable is True
    assert AuditEntry.objects.filter(action="DrainNode", reason="new fans").exists()


def test_who_may_not_operate_the_cluster_cordons_nothing():
    assert signed_in("ruth").post("/nodes/n1/cordon/").status_code == 403
    assert not Node.objects.filter(unschedulable=True).exists()


# Records


def test_a_queue_admin_reads_the_record_of_his_queues_only():
    signed_in("admin").post("/jobs/default/nightly/suspend/", {"reason": "far away"})
    signed_in("sam").post("/jobs/default/train-1/suspend/", {"reason": "close by"})

    everything, limited = text(signed_in("admin").get("/audit/")), text(signed_in("ruth").get("/audit/"))

    assert "far away" in everything
    assert "close by" in everything
    assert "close by" in limited
    assert "far away" not in limited


def test_the_record_is_exported_as_it_is_filtered():
    signed_in("sam").post("/jobs/default/train-1/suspend/", {"reason": "=1+1"})

    as_json = signed_in("admin").get("/audit/", {"actor": "sam", "format": "json"})
    as_csv = signed_in("admin").get("/audit/", {"actor": "sam", "format": "csv"})

    entries = [entry for entry in json.loads(as_json.content) if entry["reason"]]
    assert [entry["reason"] for entry in entries] == ["=1+1"]
    assert "'=1+1" in text(as_csv)  # no spreadsheet takes it for a formula


def test_an_entry_shows_before_and_after():
    signed_in("admin").post("/nodes/n1/cordon/", {"reason": "dust"})
    entry = AuditEntry.objects.get(action="CordonNode")

    page = text(signed_in("admin").get(reverse("audit-entry", args=[entry.pk])))

    assert "<del>no</del>" in page
    assert "<ins>yes</ins>" in page


def test_events_are_filtered_and_those_out_of_sight_left_out():
    admin, vera = signed_in("admin").get("/activity/", {"kind": "Job"}), signed_in("vera").get("/activity/")

    assert {event["row"].kind for event in admin.context["events"]} == {"Job"}
    assert all(event["row"].queue_name in ("vision", "") for event in vera.context["events"])


# Sessions and policy


def test_a_session_shows_what_it_decided_and_can_be_saved():
    number = SchedulingSession.objects.filter(counts__binds__gt=0).first().number  # type: ignore[union-attr]

    page, saved = signed_in("admin").get(f"/sessions/{number}/"), signed_in("admin").get(f"/sessions/{number}/scenario.json")

    assert "train-1-worker-0" in text(page)
    assert json.loads(saved.content)
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


# Accounts


def test_a_token_is_shown_once():
    client = signed_in("sam")
    made = client.post("/account/tokens/", {"name": "laptop", "scope": "submit", "days": "30"})

    secret = made.context["new"].secret
    assert secret in text(made)
    assert "no-store" in made["Cache-Control"]
    assert secret not in text(client.get("/account/"))
    assert ApiToken.objects.get().scopes == ["submit"]


def test_one_revokes_ones_own_tokens_only():
    signed_in("sam").post("/account/tokens/", {"name": "laptop", "scope": "read", "days": ""})
    token = ApiToken.objects.get()

    signed_in("vera").post(f"/account/tokens/{token.pk}/revoke/")
    assert ApiToken.objects.get().revoked_at is None
    signed_in("sam").post(f"/account/tokens/{token.pk}/revoke/")
    assert ApiToken.objects.get().revoked_at is not None


@pytest.mark.parametrize(
    ("old", "new", "again", "said"),
    [
        ("wrong", "another long one", "another long one", "The old password is not right."),
        (PASSWORD, "short", "short", "too short"),
        (PASSWORD, "another long one", "another wrong one", "The two new passwords differ."),
    ],
)
def test_a_password_is_changed_by_who_knows_the_old_one(old: str, new: str, again: str, said: str):
    answer = signed_in("sam").post("/account/password/", {"old": old, "new": new, "again": again})

    assert said in text(answer)
    assert get_user_model().objects.get(username="sam").check_password(PASSWORD)


def test_a_changed_password_keeps_one_signed_in_and_is_in_the_record():
    client = signed_in("sam")
    client.post("/account/password/", {"old": PASSWORD, "new": "another long one", "again": "another long one"})

    assert client.get("/account/").status_code == 200
    assert get_user_model().objects.get(username="sam").check_password("another long one")
    entry = AuditEntry.objects.get(action="ChangePassword")
    assert "another" not in json.dumps([entry.before, entry.after, entry.message])


def test_time_zone_and_theme_are_kept():
    client = signed_in("sam")
    client.post("/account/display/", {"time_zone": "Asia/Tokyo", "theme": "dark"})
    wrong = client.post("/account/display/", {"time_zone": "Mars/Base", "theme": "dark"})

    assert "There is no time zone “Mars/Base”." in text(wrong)
    page = text(client.get("/jobs/"))
    assert 'data-time-zone="Asia/Tokyo"' in page
    assert 'data-theme="dark"' in page
    assert Preference.objects.get().theme == "dark"


def test_a_queue_admin_grants_and_revokes_below_his_queue_only():
    ruth = signed_in("ruth")
    ruth.post("/users/-/grant/", {"who": "user:vera", "role": "submitter", "queue": "language"})
    refused = ruth.post("/users/-/grant/", {"who": "user:vera", "role": "admin", "queue": "root"})

    made = Grant.objects.get(user__username="vera", queue__name="language")
    assert refused.status_code in (403, 404)
    shown = text(ruth.get("/users/-/grants/", {"queue": "language"}))
    assert "inherited from" in shown  # ruth's own role, from research
    ruth.post(f"/users/-/grants/{made.pk}/revoke/")
    assert not Grant.objects.filter(pk=made.pk).exists()


def test_accounts_are_made_switched_off_and_deleted_by_a_cluster_admin():
    admin = signed_in("admin")
    made = admin.post("/users/-/new/", {"username": "newt", "password": "a fine long one", "active": "1"})
    assert made["Location"] == "/users/newt/"

    admin.post("/users/newt/", {"do": "save", "email": "n@example.com"})
    assert get_user_model().objects.get(username="newt").is_active is False
    admin.post("/users/newt/", {"do": "delete"})
    assert not get_user_model().objects.filter(username="newt").exists()
    assert signed_in("ruth").post("/users/sam/", {"do": "delete"}).status_code == 403


def test_the_last_admin_can_not_be_deleted():
    answer = signed_in("admin").post("/users/admin/", {"do": "delete"})

    assert "is the last cluster admin" in text(answer)


def test_pages_for_nobody_lead_to_the_sign_in():
    for path in [*EVERYBODYS, *ADMINS, *CLUSTER_ADMINS]:
        assert Client().get(path)["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize(("who", "begins"), [("admin", "/"), ("ruth", "/"), ("sam", "/jobs/?q=user:me"), ("vera", "/")])
def test_a_submitter_begins_with_his_own_jobs(who: str, begins: str):
    answer = Client(REMOTE_ADDR="127.0.0.1").post("/accounts/login/", {"username": who, "password": PASSWORD})

    assert answer["Location"] == begins


def test_a_timeline_tells_what_was_asked_and_how_long_it_waited():
    client = signed_in("sam")
    client.post("/jobs/default/train-2/suspend/", {"reason": "not today"})

    page = client.get("/jobs/default/train-2/timeline/")

    titles = [entry["step"].title for entry in page.context["steps"]]
    assert titles[0] == "Submitted"
    assert "Suspend, asked for by sam" in titles
    assert titles[-1] == "Suspended"
    assert "waited" in text(page)


def test_pods_have_their_own_place_in_the_feed():
    admin = signed_in("admin")

    without, everything, only = (admin.get("/activity/", {"kind": kind}).context["events"] for kind in ("", "all", "Pod"))

    assert "Pod" not in {event["row"].kind for event in without}
    assert "Pod" in {event["row"].kind for event in everything}
    assert {event["row"].kind for event in only} == {"Pod"}
