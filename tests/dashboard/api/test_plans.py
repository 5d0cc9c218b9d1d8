"""/api/v1/plans/ and /api/v1/occurrences/."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler.models import Occurrence
from scheduler.services.change_sets.calendar import keep_calendar
from tests.dashboard.api.conftest import Caller, node, queue

pytestmark = pytest.mark.django_db


def later(**time: float) -> str:
    return f"{datetime.now(UTC) + timedelta(**time):%Y-%m-%dT%H:%M}"


@pytest.fixture
def planned(admin: Caller) -> dict[str, Any]:
    """Two hours of tomorrow, every week."""
    admin.post("nodes/", node("n1", cpu="8", memory="8Gi"), expect=201)
    admin.post("queues/", queue("a"), expect=201)
    document = {"kind": "Queue", "metadata": {"name": "a"}, "spec": {"weight": 5}}
    made = admin.post("changes/", {"name": "more", "documents": [document]}, expect=201)
    body = {
        "changeSet": int(made["metadata"]["name"]),
        "begin": later(days=1),
        "end": later(days=1, hours=2),
        "weekly": True,
    }
    return dict(admin.post("plans/", body, expect=201))


def begin_now() -> Occurrence:
    row = Occurrence.objects.get()
    row.begins_at -= timedelta(days=1, minutes=1)
    row.save()
    keep_calendar()
    row.refresh_from_db()
    return row


def test_a_plan_is_read_begins_and_is_cancelled(admin: Caller, planned: dict[str, Any]):
    assert planned["spec"]["timeZone"] == "UTC"
    assert planned["status"]["inWords"].endswith(", UTC")
    (turn,) = planned["status"]["occurrences"]
    assert turn["state"] == "Planned"
    number = planned["spec"]["changeSet"]
    assert admin.get(f"changes/{number}/")["status"]["state"] == "Planned"

    begin_now()

    assert admin.get("queues/a/")["spec"]["weight"] == 5
    (held,) = admin.get("occurrences/?state=Holding")["results"]
    assert held["spec"]["plan"] == int(planned["metadata"]["name"])
    gone = admin.ask("DELETE", f"plans/{planned['metadata']['name']}/")
    assert gone["message"] == "The plan of more was cancelled."
    assert admin.get("queues/a/")["spec"]["weight"] == 1
    assert admin.get(f"changes/{number}/")["status"]["state"] == "Draft"


@pytest.mark.parametrize("verb", ["apply", "skip"])
def test_a_conflict_shows_what_applying_would_change_and_is_decided(
    admin: Caller, planned: dict[str, Any], verb: str
):
    admin.ask("PATCH", "queues/a/", {"spec": {"weight": 3}})
    row = begin_now()

    found = admin.get(f"occurrences/{row.pk}/")["status"]
    assert found["state"] == "BeginConflict"
    assert found["message"] == "Queue a was changed: spec.weight from 1 to 3."
    (edit,) = found["wouldChange"][0]["diff"]
    assert edit == {"field": "spec.weight", "before": 3, "after": 5}
    done = admin.post(f"occurrences/{row.pk}/{verb}/", {})
    assert done["status"]["state"] == {"apply": "Holding", "skip": "Skipped"}[verb]
    assert admin.get("queues/a/")["spec"]["weight"] == {"apply": 5, "skip": 3}[verb]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("begin", "tomorrow"),
        ("begin", 7),
        ("end", "2020-01-01T00:00"),
        ("timeZone", "Mars"),
        ("weekly", "yes"),
        ("lastDate", "never"),
        ("changeSet", "more"),
        ("colour", "red"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_planned(
    admin: Caller, planned: dict[str, Any], field: str, value: object
):
    admin.ask("DELETE", f"plans/{planned['metadata']['name']}/")
    body = {**planned["spec"], field: value}
    del body["name"]

    refused = admin.post("plans/", body, expect=None)

    assert admin.last.status_code in (400, 422)
    assert field in str(refused)
    assert len(admin.get("plans/")["results"]) == 1


def test_a_plan_that_breaks_a_rule_with_another_is_refused_with_the_rule(admin: Caller):
    admin.post("nodes/", node("n1", cpu="8", memory="8Gi"), expect=201)
    admin.post("queues/", queue("a", deserved={"cpu": "8"}), expect=201)
    for name in ("b", "c"):
        admin.post("queues/", queue(name, parent="a"), expect=201)
    for name in ("b", "c"):
        spec = {"deserved": {"cpu": "5"}}
        document = {"kind": "Queue", "metadata": {"name": name}, "spec": spec}
        made = admin.post("changes/", {"name": name, "documents": [document]}, expect=201)
        wish = {"changeSet": int(made["metadata"]["name"]), "begin": later(days=1)}
        refused = admin.post("plans/", wish, expect={"b": 201, "c": 400}[name])

    assert refused["type"].endswith("#problem-rule-violated")
    assert [violation["ruleId"] for violation in refused["violations"]] == ["plan_conflict"]
    assert len(admin.get("plans/")["results"]) == 1
