"""What somebody keeps and sets for himself, and one command for many jobs: the same as on the
pages, for programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from scheduler.models import AuditEntry, BulkRun, Job, Queue
from scheduler.services.demo.sample import QUEUES
from scheduler.services.jobs.bulk import carry_out_bulk_runs
from tests.dashboard.api.conftest import Caller, job, node, queue

pytestmark = pytest.mark.django_db
NOBODY = "00000000-0000-4000-8000-000000000000"


# Views


def test_a_view_is_kept_shared_changed_and_forgotten(caller: Callable[..., Caller]):
    ann = caller("ann")
    ben = caller("ben")
    made = ann.post("views/", {"name": "My  waiting", "query": "q=state%3Awaiting"}, expect=201)
    where = f"views/{made['metadata']['name']}/"

    assert made["spec"] == {
        "page": "jobs",
        "name": "My waiting",
        "query": "q=state%3Awaiting",
        "shared": False,
    }
    assert made["status"] == {"owner": "ann", "address": "/jobs/?q=state%3Awaiting"}
    ben.get(where, expect=404)
    ann.patch(where, {"spec": {"shared": True}})
    assert ben.get(where)["spec"]["query"] == "q=state%3Awaiting"
    assert "ann" in ben.patch(where, {"shared": False}, expect=403)["detail"]
    ben.delete(where, expect=403)
    assert [view["spec"]["name"] for view in ben.get("views/")["results"]] == ["My waiting"]
    ann.delete(where)
    assert ben.get("views/")["results"] == []
    assert list(
        AuditEntry.objects.filter(kind="View").order_by("pk").values_list("action", flat=True)
    ) == [
        "SaveView",
        "SaveView",
        "DeleteView",
    ]


def test_the_same_name_again_replaces_ones_own_view(caller: Callable[..., Caller]):
    ann = caller("ann")
    first = ann.post("views/", {"name": "x", "query": "q=a"}, expect=201)
    second = ann.post("views/", {"name": "x", "query": "q=b"}, expect=201)

    assert first["metadata"]["name"] == second["metadata"]["name"]
    assert [view["spec"]["query"] for view in ann.get("views/")["results"]] == ["q=b"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "spec.name"),
        ({"name": "x" * 81}, "name"),
        ({"name": "x", "page": "nodes"}, "spec.page"),
        ({"name": "x", "shared": "yes"}, "spec.shared"),
        ({"name": "x", "query": "x" * 1025}, "spec.query"),
        ({"name": "x", "query": 5}, "spec.query"),
    ],
)
def test_a_view_that_can_not_be_kept_is_refused_by_field(
    caller: Callable[..., Caller],
    body: Any,
    field: str,
):
    assert caller("ann").post("views/", body, expect=400)["violations"][0]["field"] == field


# Preferences and passwords


def test_preferences_are_ones_own(caller: Callable[..., Caller], admin: Caller):
    admin.post("queues/", [queue("team"), queue("other")])
    ann = caller("ann", viewer="team")

    assert ann.get("users/~/preferences/")["spec"] == {
        "timeZone": "",
        "theme": "system",
        "calendarNotices": True,
        "folded": [],
        "unfolded": [],
        "levels": None,
        "pinned": [],
        "pinnedViews": [],
    }
    changed = ann.patch(
        "users/ann/preferences/",
        {"spec": {"timeZone": "Europe/Berlin", "theme": "dark", "calendarNotices": False}},
    )
    assert changed["spec"] == {
        "timeZone": "Europe/Berlin",
        "theme": "dark",
        "calendarNotices": False,
        "folded": [],
        "unfolded": [],
        "levels": None,
        "pinned": [],
        "pinnedViews": [],
    }
    folded = ann.patch("users/~/preferences/", {"folded": ["team", "other", "never-was"]})
    assert folded["spec"] == {
        "timeZone": "Europe/Berlin",
        "theme": "dark",
        "calendarNotices": False,
        "folded": ["team"],
        "unfolded": [],
        "levels": None,
        "pinned": [],
        "pinnedViews": [],
    }
    admin.get("users/ann/preferences/", expect=403)
    ann.get("users/boss/preferences/", expect=404)
    entry = AuditEntry.objects.get(action="ChangePreferences")
    assert (entry.before["theme"], entry.after["theme"], entry.door) == ("system", "dark", "API")


def test_the_pages_show_what_was_set_by_the_api(caller: Callable[..., Caller]):
    ann = caller("ann")
    ann.patch("users/~/preferences/", {"timeZone": "Asia/Tokyo"})
    browser = Client()
    browser.force_login(ann.user)

    assert 'data-time-zone="Asia/Tokyo"' in browser.get("/account/").content.decode()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"timeZone": "Moon/Sea"}, "timeZone"),
        ({"theme": "pink"}, "theme"),
        ({"folded": "team"}, "spec.folded"),
        ({"unfolded": [7]}, "spec.unfolded"),
        ({"levels": -1}, "spec.levels"),
        ({"levels": True}, "spec.levels"),
        ({"calendarNotices": "no"}, "spec.calendarNotices"),
        ({"colour": 1}, "colour"),
    ],
)
def test_a_preference_that_is_none_is_refused_by_field(
    caller: Callable[..., Caller],
    body: Any,
    field: str,
):
    assert (
        caller("ann").patch("users/~/preferences/", body, expect=400)["violations"][0]["field"]
        == field
    )


def test_a_password_is_changed_by_whoever_knows_it(caller: Callable[..., Caller], admin: Caller):
    ann = caller("ann")
    ann.user.set_password("an old password")
    ann.user.save()
    browser = Client()
    browser.force_login(ann.user)

    assert (
        ann.post("users/~/password/", {"old": "wrong", "new": "another long password"}, expect=400)[
            "violations"
        ][0]["field"]
        == "old"
    )
    assert (
        ann.post("users/~/password/", {"old": "an old password", "new": "123"}, expect=400)[
            "violations"
        ][0]["field"]
        == "new"
    )
    admin.post(
        "users/ann/password/",
        {"old": "an old password", "new": "another long password"},
        expect=403,
    )
    ann.post(
        "users/~/password/?dry_run=true", {"old": "an old password", "new": "another long password"}
    )
    assert browser.get("/account/").status_code == 200
    ann.post("users/~/password/", {"old": "an old password", "new": "another long password"})
    assert browser.get("/account/").status_code == 302  # that session has to sign in again
    ann.user.refresh_from_db()
    assert ann.user.check_password("another long password")
    assert "long password" not in str(
        list(AuditEntry.objects.values_list("before", "after", "message"))
    )


def test_a_browser_that_changes_its_password_by_the_api_stays_signed_in(
    caller: Callable[..., Caller],
):
    ann = caller("ann")
    ann.user.set_password("an old password")
    ann.user.save()
    browser = Client()
    browser.force_login(ann.user)
    body = {"old": "an old password", "new": "another long password"}

    assert (
        browser.post("/api/v1/users/~/password/", body, content_type="application/json").status_code
        == 200
    )
    assert browser.get("/account/").status_code == 200


@pytest.mark.parametrize(("scope", "least"), [("read", 403), ("submit", 200)])
def test_a_token_for_reading_writes_nothing_of_ones_own_either(
    admin: Caller,
    scope: str,
    least: int,
):
    narrow = Caller("boss", (scope,))

    narrow.ask("POST", "views/?dry_run=true", {"name": "x"}, expect=least)
    narrow.ask("PATCH", "users/~/preferences/?dry_run=true", {"theme": "dark"}, expect=least)
    narrow.ask("POST", "users/~/password/", {"old": "x", "new": "y"}, expect=403)


# One command for many jobs


@pytest.fixture
def work(admin: Caller) -> Caller:
    admin.post("queues/", [queue("a"), queue("b")])
    admin.post("jobs/", [job(name, "a") for name in ("one", "two")] + [job("three", "b")])
    return admin


def test_a_run_over_named_jobs_tells_how_far_it_is(work: Caller):
    made = work.post(
        "bulkruns/",
        {"action": "suspend", "jobs": ["default/one", "two"], "reason": "moving"},
        expect=201,
    )
    where = f"bulkruns/{made['metadata']['name']}/"
    assert work.last.headers["Location"] == f"/api/v1/{where}"
    assert made["spec"] == {"action": "suspend", "query": "", "reason": "moving"}
    assert (made["status"]["state"], made["status"]["jobs"], made["status"]["left"]) == (
        "Waiting",
        2,
        2,
    )

    carry_out_bulk_runs()

    status = work.get(where)["status"]
    assert (status["state"], status["done"], status["left"], status["owner"]) == (
        "Done",
        2,
        0,
        "boss",
    )
    items = work.get(f"{where}items/")
    assert {(item["name"], item["result"]) for item in items["results"]} == {
        ("one", "Done"),
        ("two", "Done"),
    }
    assert Job.objects.get(name="one").phase == "Aborted"
    entry = AuditEntry.objects.filter(action="AbortJob").first()
    assert (entry.door, entry.reason, entry.request_id) == (
        "API",
        "moving",
        BulkRun.objects.get().request_id,
    )
    assert [run["metadata"]["name"] for run in work.get("bulkruns/")["results"]] == [
        made["metadata"]["name"]
    ]


def test_a_run_over_a_query_takes_what_matches_and_names_what_it_leaves_out(work: Caller):
    work.post("jobs/default/two/suspend/")

    made = work.post("bulkruns/", {"action": "suspend", "query": "queue:a"}, expect=201)

    assert made["status"]["jobs"] == 1
    assert [(warning["code"], warning["message"]) for warning in made["warnings"]] == [
        ("left_out", "default/two: it is Aborted already")
    ]


def test_a_dry_run_of_a_run_begins_nothing(work: Caller):
    shown = work.post("bulkruns/?dry_run=true", {"action": "cancel", "query": ""})

    assert (shown["status"]["jobs"], BulkRun.objects.count()) == (3, 0)


def test_what_was_refused_can_be_tried_again(work: Caller):
    made = work.post("bulkruns/", {"action": "cancel", "jobs": ["one", "two"]}, expect=201)
    where = f"bulkruns/{made['metadata']['name']}/"
    work.post("queues/a/close/")
    BulkRun.objects.get().items.filter(name="one").update(result="Refused", message="no")
    carry_out_bulk_runs()

    again = work.post(f"{where}retry/", {"reason": "now"}, expect=201)

    assert (
        again["status"]["jobs"],
        again["spec"]["reason"],
        again["metadata"]["name"] != made["metadata"]["name"],
    ) == (1, "now", True)
    carry_out_bulk_runs()
    work.post(f"bulkruns/{again['metadata']['name']}/retry/", expect=409)


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"jobs": ["one"]}, 400, "spec.action"),
        ({"action": "explode", "jobs": ["one"]}, 400, "spec.action"),
        ({"action": "suspend"}, 400, "spec.jobs"),
        ({"action": "suspend", "jobs": ["one"], "query": "x"}, 400, "spec.jobs"),
        ({"action": "suspend", "jobs": "one"}, 400, "spec.jobs"),
        ({"action": "suspend", "jobs": ["never-was"]}, 400, "spec.jobs"),
        ({"action": "suspend", "query": "state:nonsense"}, 400, "spec.query"),
        ({"action": "suspend", "jobs": ["one"], "force": True}, 400, "force"),
        ({"action": "resume", "jobs": ["one"]}, 409, "jobs"),
        ({"action": "suspend", "jobs": []}, 409, "jobs"),
    ],
)
def test_a_run_that_can_not_be_is_refused_by_field(work: Caller, body: Any, code: int, field: str):
    assert work.post("bulkruns/", body, expect=code)["violations"][0]["field"] == field
    assert BulkRun.objects.count() == 0


def test_a_run_does_only_what_its_owner_may(work: Caller, caller: Callable[..., Caller]):
    ann = caller("ann", submitter="a")
    ann.post("jobs/", job("mine", "a"), expect=201)

    refused = ann.post("bulkruns/", {"action": "cancel", "jobs": ["one"]}, expect=403)
    assert (refused["permission"], refused["queue"]) == ("operate", "a")
    ann.post("bulkruns/", {"action": "cancel", "jobs": ["three"]}, expect=400)
    made = ann.post("bulkruns/", {"action": "cancel", "query": ""}, expect=201)
    assert (made["status"]["jobs"], len(made["warnings"])) == (1, 2)
    caller("ben", admin="root").get(
        f"bulkruns/{made['metadata']['name']}/"
    )  # an admin of root sees everybody's
    caller("eve", viewer="a").get(f"bulkruns/{made['metadata']['name']}/", expect=404)
    ann.get(f"bulkruns/{NOBODY}/", expect=404)
    ann.get("bulkruns/nonsense/", expect=404)


def test_a_run_may_no_more_than_the_token_that_began_it(work: Caller):
    """Whatever becomes possible for its owner later: a token for submitting commands only his own
    jobs.
    """
    narrow = Caller("ann", ("submit",))
    work.post("grants/", {"user": "ann", "role": "admin", "queue": "a"}, expect=201)
    narrow.post("bulkruns/", {"action": "cancel", "jobs": ["one"]}, expect=403)
    narrow.post("jobs/", job("mine", "a"), expect=201)
    made = narrow.post("bulkruns/", {"action": "cancel", "jobs": ["mine"]}, expect=201)
    BulkRun.objects.get().items.create(namespace="default", name="one")

    carry_out_bulk_runs()

    items = narrow.get(f"bulkruns/{made['metadata']['name']}/items/")["results"]
    assert {item["name"]: item["result"] for item in items} == {"mine": "Done", "one": "Refused"}


# The rest of the console


def test_the_sample_tree_is_for_an_empty_cluster(admin: Caller):
    admin.post("nodes/", node("n1", cpu="64", memory="256Gi"), expect=201)
    shown = admin.post("sample/?dry_run=true")
    assert (len(shown["queues"]), Queue.objects.count()) == (len(QUEUES), 2)

    made = admin.post("sample/", expect=201)

    assert {*made["queues"], "root", "default"} == set(Queue.objects.values_list("name", flat=True))
    assert admin.post("sample/", expect=409)["violations"][0]["ruleId"] == "tree_not_empty"


def test_a_forecast_says_what_would_become_of_a_job(admin: Caller):
    admin.post("nodes/", node("n1", cpu="4", memory="8Gi"), expect=201)
    admin.post("queues/", queue("a"), expect=201)

    starts = admin.post("forecast/", job("x", "a", replicas=2))
    assert (starts["prospect"], starts["placed"], starts["nodes"], starts["request"]["cpu"]) == (
        "starts",
        2,
        {"n1": 2},
        "2",
    )
    never = admin.post("forecast/", job("x", "a", cpu="100"))
    assert (never["prospect"], never["reason"] in ("ExceedsCluster", "NoNodeFits")) == (
        "never",
        True,
    )
    refused = admin.post("forecast/", job("x", "nowhere"))
    assert (refused["prospect"], refused["violations"][0]["ruleId"]) == (
        "refused",
        "queue_not_found",
    )
    assert Job.objects.count() == 0


def test_the_next_sessions_are_kept_on_demand(admin: Caller):
    changed = admin.patch("cluster/", {"spec": {"keepSessions": 5}})

    assert (changed["changed"], changed["spec"]["keepSessions"]) == (True, 5)
    assert AuditEntry.objects.get(action="KeepSessions").after == {"keepSessions": 5}
    for wrong in (-1, 101, "x", None, True, "1.5"):
        assert (
            admin.patch("cluster/", {"spec": {"keepSessions": wrong}}, expect=400)["violations"][0][
                "field"
            ]
            == "spec.keepSessions"
        )


def test_earlier_policies_can_be_read(admin: Caller):
    text = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'
    admin.put("policy/", {"spec": {"policy": text}, "reason": "first"})
    admin.put("policy/", {"spec": {"policy": text + "  - name: priority\n"}})

    newest, oldest = admin.get("policyversions/")["results"]
    assert (newest["status"]["inForce"], oldest["status"]["inForce"]) == (True, False)
    assert (oldest["spec"]["policy"], oldest["status"]["author"], oldest["status"]["reason"]) == (
        text,
        "boss",
        "first",
    )
    assert "allocate" in admin.get("policyversions/0/")["spec"]["policy"]
    admin.get("policyversions/99999/", expect=404)


def test_the_timeline_of_a_job(work: Caller, caller: Callable[..., Caller]):
    work.post("jobs/default/one/suspend/")

    steps = work.get("podgroups/default/one/timeline/")["steps"]

    assert steps[0]["title"] == "Submitted"
    assert steps[0]["before"] is None
    assert any(step["kind"] == "command" for step in steps)
    caller("eve", viewer="b").get("podgroups/default/one/timeline/", expect=404)
