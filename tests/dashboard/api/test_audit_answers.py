"""The audit log answers who closed a queue, and why: by the queue's own name, whoever it was closed
with.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from scheduler.domain.audit_actions import ACTIONS, AuditArea, audit_area, known_actions
from scheduler.models import AuditEntry
from tests.dashboard.api.conftest import Caller, job, node, queue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def tree(admin: Caller) -> None:
    for name, parent in (
        ("research", "root"),
        ("analytics", "research"),
        ("reports", "analytics"),
        ("other", "root"),
    ):
        admin.post("queues/", queue(name, parent), expect=201)


@pytest.fixture
def pages(admin: Caller) -> Client:
    client = Client()
    client.force_login(admin.user)
    return client


def deeds(caller: Caller, asked: str) -> list[dict[str, Any]]:
    return [row["spec"] for row in caller.get(f"audit/?{asked}")["results"]]


@pytest.mark.usefixtures("tree")
class TestACascade:
    def test_is_found_under_each_queue_with_who_and_why(
        self,
        admin: Caller,
        caller: Callable[..., Caller],
    ):
        caller("ruth", admin="research").post(
            "queues/research/close/", {"reason": "moving to the new site"}
        )

        for name, cause in (("research", ""), ("analytics", "research"), ("reports", "research")):
            (deed,) = deeds(admin, f"name={name}&action=CloseQueue")
            assert (deed["actor"], deed["reason"], deed["queue"]) == (
                "ruth",
                "moving to the new site",
                name,
            )
            assert deed["follows"] == cause
            assert deed["after"][name] in ("Closed", "Closing")
        assert deeds(admin, "name=other&action=CloseQueue") == []

    def test_is_told_to_an_admin_of_the_lower_queue_alone(
        self,
        admin: Caller,
        caller: Callable[..., Caller],
    ):
        ann = caller("ann", admin="reports")
        admin.post("queues/research/suspend/", {"reason": "audit week"})

        (deed,) = deeds(ann, "action=SuspendQueue")

        assert (deed["actor"], deed["reason"], deed["after"]) == (
            "boss",
            "audit week",
            {"reports": "Suspended"},
        )

    def test_of_moving_a_queue_below_a_closed_one_is_found_too(self, admin: Caller):
        admin.post("queues/other/close/")

        admin.patch("queues/analytics/?reason=wound%20up", {"spec": {"parent": "other"}})

        (deed,) = deeds(admin, "name=reports&action=UpdateQueue")
        assert (deed["reason"], deed["follows"], deed["after"]) == (
            "wound up",
            "analytics",
            {"reports": "Closed"},
        )

    def test_is_one_line_on_the_page_and_in_full_by_name(self, admin: Caller, pages: Client):
        admin.post("queues/research/close/", {"reason": "moving"})

        everything = pages.get("/audit/").context["entries"]
        by_team = pages.get("/audit/?queue=research").context["entries"]
        by_queue = pages.get("/audit/?queue=analytics&action=CloseQueue").context["entries"]

        assert [
            entry["row"].name for entry in everything if entry["row"].action == "CloseQueue"
        ] == ["research"]
        assert [entry["row"].name for entry in by_team if entry["row"].action == "CloseQueue"] == [
            "research"
        ]
        assert {entry["row"].name for entry in by_queue} == {"analytics", "reports"}
        assert {entry["row"].reason for entry in by_queue} == {"moving"}
        assert pages.get(f"/audit/{by_queue[0]['row'].pk}/").status_code == 200

    def test_of_a_deletion_is_found_under_each_queue(self, admin: Caller):
        admin.post("queues/research/close/")

        admin.delete("queues/research/?cascade=true&reason=no%20longer%20used")

        for name in ("research", "analytics", "reports"):
            (deed,) = deeds(admin, f"queue={name}&name={name}&action=DeleteQueue")
            assert deed["reason"] == "no longer used"


class TestTheReason:
    @pytest.mark.parametrize(
        ("method", "path", "body", "action"),
        [
            ("POST", "queues/", queue("new"), "CreateQueue"),
            ("PATCH", "queues/default/", {"spec": {"weight": 3}}, "UpdateQueue"),
            ("PATCH", "queues/default/", {"spec": {"state": "Suspended"}}, "SuspendQueue"),
            ("POST", "queues/default/close/", None, "CloseQueue"),
            ("POST", "nodes/", node("n1", cpu="4"), "CreateNode"),
            ("POST", "jobs/", job("a"), "SubmitJob"),
            ("POST", "namespaces/", {"metadata": {"name": "lab"}}, "CreateNamespace"),
            (
                "POST",
                "grants/",
                {"user": "boss", "role": "viewer", "queue": "default"},
                "CreateGrant",
            ),
            (
                "POST",
                "apply/",
                {"kind": "Queue", "metadata": {"name": "filed"}, "spec": {"parent": "root"}},
                "CreateQueue",
            ),
        ],
    )
    def test_of_any_write_stands_in_the_log(
        self,
        admin: Caller,
        method: str,
        path: str,
        body: Any,
        action: str,
    ):
        admin.ask(method, f"{path}?reason=quarterly%20review", body)

        assert admin.last.status_code < 300, admin.last.content
        assert AuditEntry.objects.filter(action=action).latest("id").reason == "quarterly review"

    def test_that_is_too_long_is_refused_and_nothing_is_done(self, admin: Caller):
        refused = admin.ask(
            "PATCH",
            f"queues/default/?reason={'x' * 1025}",
            {"spec": {"weight": 3}},
            expect=400,
        )

        assert refused["violations"][0]["field"] == "reason"
        assert admin.get("queues/default/")["spec"]["weight"] == 1

    def test_typed_into_a_form_stands_in_the_log(self, admin: Caller, pages: Client):
        admin.post("queues/", queue("old"), expect=201)
        admin.post("queues/old/close/")
        form = {
            "as": "yaml",
            "yaml": "metadata: {name: default}\nspec: {parent: root, weight: 7}",
            "version": "1",
            "editing": "default",
        }

        pages.post("/queues/default/edit/", {**form, "reason": "more for all"})
        pages.post("/queues/old/delete/", {"queue": "old", "reason": "nobody uses it"})

        assert AuditEntry.objects.get(action="UpdateQueue").reason == "more for all"
        assert AuditEntry.objects.get(action="DeleteQueue").reason == "nobody uses it"
        addresses = [reverse("queue-edit", args=["default"]), reverse("user", args=["boss"])]
        addresses += [reverse(name) for name in ("queue-new", "user-new", "users", "grants")]
        for address in addresses:
            assert 'name="reason"' in pages.get(address).content.decode(), address

    def test_of_a_planned_deletion_stands_with_the_deletion(self, admin: Caller):
        admin.post("queues/", queue("old"), expect=201)

        admin.delete("queues/old/?close_first=true&reason=moved")

        assert {
            deed["action"] for deed in deeds(admin, "name=old") if deed["reason"] == "moved"
        } >= {"CloseQueue", "DeleteQueue"}


class TestWhatIsAskedFor:
    def test_admins_deeds_come_first_and_submits_are_apart(self, admin: Caller, pages: Client):
        admin.post("queues/default/suspend/", {"reason": "maintenance"})
        for number in range(60):
            admin.post("jobs/", job(f"job-{number}"), expect=201)

        first = {entry["row"].action for entry in pages.get("/audit/").context["entries"]}
        work = {entry["row"].action for entry in pages.get("/audit/?deeds=work").context["entries"]}

        assert "SuspendQueue" in first
        assert "SubmitJob" not in first
        assert work == {"SubmitJob"}
        assert "SubmitJob" not in {deed["action"] for deed in deeds(admin, "deeds=admin")}
        assert {deed["action"] for deed in deeds(admin, "deeds=work")} == {"SubmitJob"}

    def test_from_and_until_are_days_or_moments(self, admin: Caller, pages: Client):
        admin.post("queues/default/suspend/")
        now = timezone.now()
        today = now.date().isoformat()
        tomorrow = (now + timedelta(days=1)).date().isoformat()

        def found(**asked: str) -> tuple[int, int]:
            question = "&".join(f"{name}={value}" for name, value in asked.items())
            listed = admin.get(f"audit/?action=SuspendQueue&{question}")
            return len(listed["results"]), len(
                pages.get("/audit/", {"action": "SuspendQueue", **asked}).context["entries"]
            )

        assert found(**{"from": today}) == (1, 1)
        assert found(until=today) == (1, 1)
        assert found(**{"from": tomorrow}) == (0, 0)
        assert found(until="2020-01-31") == (0, 0)
        an_hour_ago = (now - timedelta(hours=1)).isoformat().replace("+", "%2B")
        assert len(deeds(admin, f"until={an_hour_ago}&action=SuspendQueue")) == 0
        assert admin.get("audit/?from=yesterday", expect=400)["violations"][0]["field"] == "from"
        assert pages.get("/audit/?until=later").status_code == 400

    def test_the_page_has_a_list_of_actions(self, pages: Client):
        page = pages.get("/audit/").content.decode()

        assert all(f">{action}</option>" in page for action in known_actions())


def test_every_action_that_is_written_down_is_in_the_list():
    written: set[str] = set()
    for path in Path("scheduler/services").rglob("*.py"):
        written |= set(
            re.findall(
                r'(?:audit\.(?:record|entry)|edit\.record)\(\s*by,\s*"(\w+)"', path.read_text()
            )
        )

    assert {"UpdateQueue", "CreateUser"} <= written
    assert written <= set(known_actions())


def test_what_is_done_to_jobs_is_work_and_to_queues_is_an_admins_deed():
    assert audit_area("SubmitJob", "Job") is AuditArea.WORK
    assert audit_area("SaveView", "View") is AuditArea.OWN
    assert {audit_area(action, "Queue") for action in ACTIONS["Queues"]} == {AuditArea.ADMIN}
