"""/api/v1/changes/: the flow of a change set over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.services.change_sets.preview_runs import work_out_previews
from tests.dashboard.api.conftest import Caller, queue

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def tree(admin: Caller) -> None:
    admin.post("queues/", queue("a", deserved={"cpu": "4"}), expect=201)
    admin.post("queues/", queue("b", weight=2), expect=201)


def edit(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "Queue", "metadata": {"name": name}, "spec": spec}


def test_a_set_is_collected_looked_at_applied_and_reverted(admin: Caller):
    made = admin.post(
        "changes/", {"name": "Friday", "documents": [edit("a", deserved={"cpu": "6"})]}, expect=201
    )
    where = f"changes/{made['metadata']['name']}/"
    admin.post(f"{where}add/", [edit("b", weight=5)])

    draft = admin.get(where)
    assert draft["status"]["mayBeApplied"] is True
    assert [item["diff"] for item in draft["spec"]["items"]] == [
        [{"field": "spec.deserved.cpu", "before": "4", "after": "6"}],
        [{"field": "spec.weight", "before": 2, "after": 5}],
    ]

    applied = admin.post(f"{where}apply/")
    assert applied["status"]["state"] == "Applied"
    assert applied["message"] == "Applied “Friday”: 2 queues changed."
    assert admin.get("queues/b/")["spec"]["weight"] == 5

    back = admin.post(f"{where}revert/", expect=201)
    assert back["status"]["reverts"] == int(made["metadata"]["name"])
    admin.post(f"changes/{back['metadata']['name']}/apply/")
    assert admin.get("queues/b/")["spec"]["weight"] == 2
    states = [row["status"]["state"] for row in admin.get("changes/?state=Applied")["results"]]
    assert states == ["Applied", "Applied"]


def test_who_comes_second_gets_409_with_what_changed(admin: Caller):
    numbers = []
    for weight in (5, 6):
        body = {"name": f"to {weight}", "documents": [edit("b", weight=weight)]}
        numbers.append(admin.post("changes/", body, expect=201)["metadata"]["name"])
    admin.post(f"changes/{numbers[0]}/apply/")

    problem = admin.post(f"changes/{numbers[1]}/apply/", expect=409)

    assert problem["type"].endswith("changed-meanwhile")
    assert problem["conflicts"][0]["diff"] == [{"field": "spec.weight", "before": 2, "after": 5}]
    assert admin.get("queues/b/")["spec"]["weight"] == 5

    renewed = admin.post(f"changes/{numbers[1]}/refresh/")
    assert renewed["spec"]["items"][0]["diff"] == [
        {"field": "spec.weight", "before": 5, "after": 6}
    ]
    admin.post(f"changes/{numbers[1]}/apply/")
    assert admin.get("queues/b/")["spec"]["weight"] == 6


def test_a_broken_rule_is_told_before_and_when_it_is_applied(admin: Caller):
    body = {"name": "wrong", "documents": [edit("c", parent="a", deserved={"cpu": "5"})]}
    made = admin.post("changes/", body, expect=201)
    where = f"changes/{made['metadata']['name']}/"

    assert made["status"]["mayBeApplied"] is False
    rules = [violation["ruleId"] for violation in made["status"]["violations"]]
    assert rules == ["children_deserved_exceeds_parent"]
    refused = admin.post(f"{where}apply/", expect=400)
    assert [violation["ruleId"] for violation in refused["violations"]] == rules


def test_a_draft_is_renamed_emptied_and_discarded(admin: Caller):
    made = admin.post("changes/", {"name": "a", "documents": [edit("b", weight=5)]}, expect=201)
    where = f"changes/{made['metadata']['name']}/"

    assert admin.patch(where, {"name": "b"})["spec"]["name"] == "b"
    emptied = admin.post(f"{where}remove/", {"kind": "Queue", "name": "b"})
    assert emptied["spec"]["items"] == []
    admin.post(f"{where}apply/", expect=409)
    admin.delete(where)
    assert admin.get(where)["status"]["state"] == "Discarded"
    admin.post(f"{where}add/", [edit("b", weight=5)], expect=409)


def test_a_dry_run_keeps_nothing(admin: Caller):
    body = {"name": "dry", "documents": [edit("b", weight=5)]}
    admin.post("changes/?dry_run=true", body)
    assert admin.get("changes/")["results"] == []
    made = admin.post("changes/", body, expect=201)
    admin.post(f"changes/{made['metadata']['name']}/apply/?dry_run=true")
    assert admin.get("queues/b/")["spec"]["weight"] == 2


@pytest.mark.parametrize(
    "body",
    [
        {"name": ""},
        {"name": "x", "documents": "all"},
        {"name": "x", "colour": "red"},
        {"name": "x", "documents": [{"kind": "Job", "metadata": {"name": "j"}}]},
        {"name": "x", "documents": [{"kind": "Queue", "metadata": {"name": "a"}, "$patch": "x"}]},
        {"name": "x", "documents": [3]},
    ],
)
def test_what_cannot_be_read_is_refused(admin: Caller, body: dict[str, Any]):
    problem = admin.post("changes/", body, expect=400)

    assert problem["violations"]


def test_a_preview_is_asked_for_worked_out_and_read(admin: Caller):
    made = admin.post(
        "previews/", {"documents": [edit("a", deserved={"cpu": "6"})], "minutes": 10}, expect=201
    )
    where = f"previews/{made['metadata']['name']}/"
    assert admin.get(where)["status"]["state"] == "Waiting"

    work_out_previews()

    status = admin.get(where)["status"]
    assert (status["state"], status["progress"]) == ("Done", 1.0)
    assert set(status["result"]) >= {"now", "then", "queues", "moves", "evictions"}
    assert admin.delete(where)["message"] == "The preview had ended already."
    assert admin.get("queues/a/")["spec"]["deserved"] == {"cpu": "4"}


def test_previews_are_ones_own(admin: Caller):
    made = admin.post("previews/", {"documents": [edit("a", weight=3)]}, expect=201)
    other = Caller("other", superuser=True)

    other.get(f"previews/{made['metadata']['name']}/", expect=404)
    assert other.get("previews/")["results"] == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"documents": 3},
        {"lostNodes": "n1"},
        {"lostNodes": ["n9"]},
        {"documents": [], "minutes": "long"},
        {"changeSet": "x"},
        {"colour": "red"},
    ],
)
def test_a_preview_of_nonsense_is_refused(admin: Caller, body: dict[str, Any]):
    assert admin.post("previews/", body, expect=400)["violations"]


def test_a_preview_of_a_set_that_is_not_there(admin: Caller):
    admin.post("previews/", {"changeSet": 99}, expect=404)


def test_a_single_entry_of_the_audit_log_is_reverted(admin: Caller):
    admin.post("queues/a/suspend/")
    (entry,) = admin.get("audit/?queue=a&action=SuspendQueue")["results"]
    where = f"audit/{entry['metadata']['name']}/revert/"

    admin.post(f"{where}?dry_run=true")
    assert admin.get("changes/")["results"] == []
    made = admin.post(where, expect=201)

    (field,) = made["spec"]["items"][0]["diff"]
    assert field == {"field": "spec.state", "before": "Suspended", "after": "Open"}
    assert made["status"]["mayBeApplied"]
    admin.post(f"changes/{made['metadata']['name']}/apply/")
    assert "already as it was" in admin.post(where, expect=409)["detail"]


def test_fields_that_nobody_knows_are_told(admin: Caller):
    documents = [
        edit("a", wieght=3, deserved={"cpu": "6"}),
        {"kind": "Queue", "metadata": {"name": "b"}, "$patch": "delete"},
    ]

    made = admin.post("changes/", {"name": "x", "documents": documents}, expect=201)
    tried = admin.post("previews/", {"documents": documents}, expect=201)

    for answer in (made, tried):
        told = [warning["message"] for warning in answer["warnings"]]
        assert told == ["Queue a: spec.wieght is not known and was ignored; did you mean weight?"]


@pytest.mark.parametrize("number", [0, -1, 2**63, 10**30])
def test_a_number_that_no_database_holds_is_no_set(admin: Caller, number: int):
    admin.post("previews/", {"changeSet": number}, expect=404)


def test_the_version_is_in_the_object_as_in_the_etag(admin: Caller):
    made = admin.post("changes/", {"name": "a", "documents": [edit("b", weight=5)]}, expect=201)
    where = f"changes/{made['metadata']['name']}/"
    versions = [made["metadata"]["resourceVersion"]]
    for method, path in (
        ("PATCH", where),
        ("POST", f"{where}refresh/"),
        ("POST", f"{where}apply/"),
        ("GET", where),
    ):
        told = admin.ask(method, path, {"name": "c"} if method == "PATCH" else None, expect=200)
        versions.append(told["metadata"]["resourceVersion"])
        assert admin.last.headers["ETag"] == f'"{versions[-1]}"'

    assert versions == ["1", "2", "3", "4", "4"]


def test_who_read_an_older_draft_is_told_who_changed_it(admin: Caller):
    made = admin.post("changes/", {"name": "a", "documents": [edit("b", weight=5)]}, expect=201)
    where = f"changes/{made['metadata']['name']}/"
    admin.post(f"{where}add/", [edit("a", weight=3)])
    admin.patch(where, {"name": "c"})
    stale = {"If-Match": '"1"'}

    changed = admin.ask("PATCH", where, {"name": "d"}, expect=412, **stale)["changed"]

    assert (changed["by"], changed["resourceVersion"]) == (admin.user.username, "3")
    assert [deed["message"] for deed in changed["what"]] == [
        "Renamed a, or described it anew.",
        "Changed what a holds: 2 queues changed.",
    ]
    again = admin.ask("POST", f"{where}apply/", expect=412, **stale)["changed"]
    assert again["by"] == admin.user.username


def test_a_sum_that_two_queues_break_together_is_one_rule(admin: Caller):
    documents = [edit(name, parent="a", deserved={"cpu": "3"}) for name in ("c", "d")]

    made = admin.post("changes/", {"name": "sum", "documents": documents}, expect=201)

    (told,) = made["status"]["violations"]
    assert told["fix"] == (
        "lower deserved cpu of c to 1, raise deserved cpu of a to 6, or lower deserved cpu of d "
        "to 1"
    )
    refused = admin.post(f"changes/{made['metadata']['name']}/apply/", expect=400)
    assert [violation["fix"] for violation in refused["violations"]] == [told["fix"]]
