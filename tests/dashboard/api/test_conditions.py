"""Conditions have a type, a status, a reason, a message and a time, on every object.

And what is told of queues is true of them.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from scheduler.models import Event, PodGroup
from scheduler.services.queues.states import refresh_states
from tests.dashboard.api.conftest import Caller, job, node, queue
from tests.worlds import run_session

pytestmark = [pytest.mark.django_db]


def assert_whole(conditions: list[dict[str, Any]]) -> None:
    assert conditions
    for condition in conditions:
        assert condition["status"] in ("True", "False")
        for field in ("type", "reason", "message", "lastTransitionTime"):
            assert condition[field], (field, condition)


@pytest.fixture
def drained(admin: Caller) -> None:
    admin.post("queues/", queue("team"), expect=201)
    admin.post("queues/", queue("ml", "team"), expect=201)
    admin.post("jobs/", job("train", "ml"), expect=201)
    admin.post("queues/team/close/")


@pytest.mark.usefixtures("drained")
class TestADrainingQueue:
    @pytest.mark.parametrize(
        "address", ["queues/team/", "queues/ml/", "queues/?state=Closing", "queues/team/tree/"]
    )
    def test_says_how_much_is_left_since_when_and_why(self, admin: Caller, address: str):
        body = admin.get(address)
        for found in body.get("results", [body]):
            (condition,) = found["status"]["conditions"]
            assert_whole([condition])
            assert (condition["type"], condition["status"], condition["reason"]) == (
                "Draining",
                "True",
                "QueueClosing",
            )
            assert condition["message"] == "Draining: 1 of 1 podgroup left."

    def test_says_so_anew_when_less_is_left(self, admin: Caller):
        admin.get("queues/ml/")
        admin.post("queues/team/open/")
        admin.post("jobs/", job("second", "ml"), expect=201)
        admin.post("queues/team/close/")
        PodGroup.objects.filter(name="train").update(phase="Completed")

        assert (
            admin.get("queues/ml/")["status"]["conditions"][0]["message"]
            == "Draining: 1 of 2 podgroups left."
        )

    def test_is_not_said_to_have_lost_a_podgroup_that_it_never_had(self):
        PodGroup.objects.update(phase="Completed")
        refresh_states()

        told = dict(
            Event.objects.filter(
                reason="CloseQueue", message__contains="is now Closed"
            ).values_list("name", "message")
        )
        assert told["ml"] == "ml is now Closed: nothing is left in it."
        assert (
            told["team"]
            == "team is now Closed: nothing is left in it and every queue below it is Closed."
        )


def test_a_suspended_queue_says_by_whom(admin: Caller):
    admin.post("queues/", queue("team"), expect=201)
    admin.post("queues/", queue("ml", "team"), expect=201)
    admin.post("queues/team/suspend/")

    conditions = admin.get("queues/ml/")["status"]["conditions"]

    assert_whole(conditions)
    assert conditions[0]["message"] == "Nothing is started here because team is suspended."


def test_nodes_gangs_and_pods_have_whole_conditions_too(admin: Caller):
    admin.post("nodes/", node("n1", cpu="1", memory="8Gi"), expect=201)
    admin.post("jobs/", job("runs"), expect=201)
    admin.post("jobs/", job("waits", cpu="1"), expect=201)
    run_session()

    assert_whole(admin.get("nodes/n1/")["status"]["conditions"])
    assert_whole(admin.get("podgroups/default/waits/")["status"]["conditions"])
    for pod in admin.get("pods/")["results"]:
        assert_whole(pod["status"]["conditions"])


class TestWhatIsNeverDeleted:
    @pytest.mark.parametrize("name", ["root", "default"])
    @pytest.mark.parametrize(
        "how", ["", "?cascade=true", "?close_first=true", "?close_first=true&cascade=true"]
    )
    def test_is_refused_without_advice_that_never_helps(self, admin: Caller, name: str, how: str):
        admin.post("queues/", queue("team"), expect=201)

        refused = admin.delete(f"queues/{name}/{how}", expect=409)

        (violation,) = refused["violations"]
        assert (violation["ruleId"], violation["fix"]) == ("protected_queue", "")
        assert admin.get(f"queues/{name}/")["status"]["state"] == "Open"

    @pytest.mark.parametrize("name", ["root", "default"])
    def test_is_offered_no_way_on_its_page(self, admin: Caller, name: str):
        admin.post("queues/", queue("team"), expect=201)
        pages = Client()
        pages.force_login(admin.user)

        page = pages.get(f"/queues/{name}/delete/").content.decode()
        menu = pages.get(f"/queues/{name}/actions/").content.decode()

        assert "cannot be deleted" in page
        for offer in ("Only close it", "cascade=on", "delete it when drained", "not yet"):
            assert offer not in page
        assert "/delete/" not in menu


class TestTheDefaultQueue:
    CLOSES = "Jobs that name no queue go to default. They are refused while it is closed."

    def test_is_not_closed_without_being_told(self, admin: Caller):
        look = admin.post("queues/default/close/?dry_run=true")
        pages = Client()
        pages.force_login(admin.user)

        assert self.CLOSES in [warning["message"] for warning in look["warnings"]]
        assert self.CLOSES in pages.get("/queues/default/close/").content.decode()
        assert (
            self.CLOSES
            in pages.get("/queues/-/commands/?command=close&queue=default").content.decode()
        )
        assert self.CLOSES in [
            told["message"]
            for told in admin.patch("queues/default/", {"spec": {"state": "Closed"}})["warnings"]
        ]

    def test_is_not_closed_with_the_queue_above_without_being_told(self, admin: Caller):
        admin.post("queues/", queue("team"), expect=201)
        admin.patch("queues/default/", {"spec": {"parent": "team"}})

        look = admin.post("queues/team/close/?dry_run=true")

        assert self.CLOSES in [warning["message"] for warning in look["warnings"]]

    def test_is_not_moved_below_a_closed_one_without_being_told(self, admin: Caller):
        admin.post("queues/", queue("team", state="Closed"), expect=201)

        moved = admin.patch("queues/default/?dry_run=true", {"spec": {"parent": "team"}})

        assert self.CLOSES in [warning["message"] for warning in moved["warnings"]]

    def test_does_not_become_a_parent_without_being_told(self, admin: Caller):
        admin.post("queues/", queue("team"), expect=201)

        new = admin.post("queues/?dry_run=true", queue("child", "default"))
        moved = admin.patch("queues/team/?dry_run=true", {"spec": {"parent": "default"}})

        for answer in (new, moved):
            assert any(told["code"] == "default_becomes_parent" for told in answer["warnings"])
        admin.post("queues/", queue("child", "default"), expect=201)
        later = admin.post("queues/?dry_run=true", queue("second", "default"))
        assert not any(told["code"] == "default_becomes_parent" for told in later["warnings"])

    def test_jobs_without_a_queue_are_then_refused_indeed(self, admin: Caller):
        admin.post("queues/", queue("child", "default"), expect=201)
        given = job("train")
        del given["spec"]["queue"]

        refused = admin.ask("POST", "jobs/", given)

        assert admin.last.status_code in (400, 409, 422)
        assert "default" in refused["detail"]

    def test_other_queues_are_closed_without_a_word_of_it(self, admin: Caller):
        admin.post("queues/", queue("team"), expect=201)

        assert admin.post("queues/team/close/?dry_run=true")["warnings"] == []
