"""/api/v1/windows/: the flow of a safe window over HTTP."""

from __future__ import annotations

import pytest

from scheduler.models import Queue, SafeWindow
from tests.dashboard.api.conftest import Caller
from tests.services.change_sets.builders import edit

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def queues(admin: Caller) -> None:
    admin.post("queues/", {"metadata": {"name": "team"}}, expect=201)
    admin.post("queues/", {"metadata": {"name": "a"}, "spec": {"parent": "team"}}, expect=201)


def wish(name: str) -> str:
    return Queue.objects.get(name=name).wish


def test_a_window_from_its_begin_to_its_end_and_back(admin: Caller):
    made = admin.post("windows/", {"queue": "team", "reason": "quotas"}, expect=201)
    where = f"windows/{made['metadata']['name']}/"
    assert made["status"]["step"] == "edit"
    assert [queue["queue"] for queue in made["status"]["before"]] == ["team", "a"]
    assert [turned["to"] for turned in made["effect"]["queues"]] == ["Suspended", "Suspended"]
    admin.post(f"changes/{made['spec']['changeSet']}/add/", [edit("a", weight=5)])

    assert admin.get(where)["status"]["step"] == "preview"
    assert admin.post(f"{where}apply/")["status"]["step"] == "resume"
    assert Queue.objects.get(name="a").weight == 5
    again = admin.post(f"{where}revert/")
    assert again["spec"]["changeSet"] != made["spec"]["changeSet"]
    assert Queue.objects.get(name="a").weight == 1
    admin.post(f"{where}apply/", {"reason": "agreed"})
    assert admin.post(f"{where}resume/")["status"]["state"] == "Finished"
    assert wish("team") == "Open"
    admin.post(f"{where}suspend/")
    assert admin.post(f"{where}abandon/")["status"]["state"] == "Abandoned"

    assert (wish("team"), Queue.objects.get(name="a").weight) == ("Open", 1)
    assert admin.get("windows/?state=Abandoned&queue=team")["results"][0]["spec"]["queue"] == "team"
    assert admin.get("windows/?state=Open")["results"] == []


def test_a_second_window_is_told_who_has_the_first(admin: Caller):
    admin.post("windows/", {"queue": "team"}, expect=201)

    problem = admin.post("windows/", {"queue": "a"}, expect=409)

    assert "holds team" in problem["detail"]
    assert problem["violations"][0]["ruleId"] == "window_overlaps"


def test_what_others_did_is_told_and_stops_the_apply(admin: Caller):
    made = admin.post("windows/", {"queue": "team"}, expect=201)
    where = f"windows/{made['metadata']['name']}/"
    admin.post(f"changes/{made['spec']['changeSet']}/add/", [edit("a", weight=5)])
    admin.post("queues/team/resume/")

    (incident,) = admin.get(where)["status"]["incidents"]

    assert incident["code"] == "not_suspended"
    assert "no longer suspended" in admin.post(f"{where}apply/", expect=409)["detail"]
    assert Queue.objects.get(name="a").weight == 1


def test_a_dry_run_says_what_would_stop_and_begins_nothing(admin: Caller):
    planned = admin.post("windows/?dry_run=true", {"queue": "team"})

    assert [turned["name"] for turned in planned["effect"]["queues"]] == ["team", "a"]
    assert not SafeWindow.objects.exists()
    assert wish("team") == "Open"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"queue": 7}, 400),
        ({"queue": "team", "name": "x" * 300}, 400),
        ({"queue": "team", "colour": "red"}, 400),
        ({"queue": "nothing"}, 400),
        ({"queue": "root"}, 409),
    ],
)
def test_nonsense_begins_nothing(admin: Caller, body: dict[str, object], status: int):
    admin.post("windows/", body, expect=status)

    assert not SafeWindow.objects.exists()
    assert wish("team") == "Open"
