"""Queues over HTTP: shapes, verbs, dry runs, versions, lists."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.models import PlannedDeletion
from tests.dashboard.api.conftest import Caller, job, queue

pytestmark = pytest.mark.django_db


def test_a_queue_is_created_with_its_defaults_and_read_back_in_the_shape_of_kubernetes(
    admin: Caller,
):
    made = admin.post(
        "queues/",
        queue("team.a", weight=4, guarantee={"cpu": "2"}, deserved={"cpu": "4"}),
        expect=201,
    )

    read = admin.get("queues/team.a/")
    assert admin.last["ETag"] == '"1"'
    assert read["apiVersion"] == "scheduling.volcano.sh/v1beta1"
    assert set(read) == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert set(read["metadata"]) == {
        "name",
        "uid",
        "creationTimestamp",
        "resourceVersion",
        "labels",
        "annotations",
    }
    assert read["spec"] == {
        "weight": 4,
        "capability": {},
        "deserved": {"cpu": "4"},
        "guarantee": {"resource": {"cpu": "2"}},
        "reclaimable": True,
        "parent": "root",
        "priority": 0,
        "dequeueStrategy": "traverse",
        "minRunSeconds": None,
        "maxWaitingJobs": None,
        "maxWaitingPods": None,
        "maxWaitingJobsPerUser": None,
        "maxWaitingPodsPerUser": None,
        "maxPodsPerJob": None,
        "maxRunSeconds": None,
        "namespaces": [],
        "state": "Open",
        "type": "",
        "owner": "",
        "description": "",
    }
    assert list(read["status"]) == [
        "state",
        "closedBy",
        "suspendedBy",
        "minRunSeconds",
        "minRunSecondsFrom",
        "limits",
        "pending",
        "inqueue",
        "running",
        "unknown",
        "completed",
        "subtree",
        "jobs",
        "allocated",
        "leaving",
        "promised",
        "asked",
        "lacking",
        "deserved",
        "nominalShare",
        "request",
        "held",
        "realCapability",
        "share",
        "overused",
        "reservation",
        "conditions",
        "warnings",
    ]
    assert read["status"]["reservation"] == {"resource": {"cpu": "2"}}
    assert made["metadata"]["uid"] == read["metadata"]["uid"]


def test_every_broken_rule_is_told_at_once(admin: Caller):
    answer = admin.post(
        "queues/",
        queue("bad", "nowhere", weight=70000, capability={"cpu": "2c"}),
        expect=400,
    )

    assert admin.last["Content-Type"] == "application/problem+json"
    assert {"weight_out_of_range", "invalid_quantity"} <= {
        violation["ruleId"] for violation in answer["violations"]
    }
    assert {violation["fix"] for violation in answer["violations"]} >= {"write 2 or 2000m"}


def test_a_dry_run_answers_the_same_and_writes_nothing(admin: Caller):
    shown = admin.post("queues/?dry_run=true", queue("ghost"), expect=200)

    assert shown["status"]["state"] == "Open"
    assert "ETag" not in admin.last
    admin.get("queues/ghost/", expect=404)
    assert not admin.get("audit/?name=ghost")["results"]


def test_a_name_that_is_taken_is_refused(admin: Caller):
    answer = admin.post("queues/", queue("default"), expect=409)

    assert answer["violations"][0]["ruleId"] == "already_exists"


def test_put_patch_and_if_match(admin: Caller):
    admin.post("queues/", queue("a"), expect=201)

    changed = admin.patch("queues/a/", {"spec": {"weight": 7}}, **{"If-Match": '"1"'})
    assert (changed["changed"], changed["spec"]["weight"], admin.last["ETag"]) == (True, 7, '"2"')
    late = admin.patch("queues/a/", {"spec": {"weight": 8}}, expect=412, **{"If-Match": '"1"'})
    assert late["changed"]["by"] == "boss"
    assert "boss" in late["detail"]
    same = admin.put("queues/a", queue("a", weight=7))  # without the slash
    assert same["changed"] is False
    renamed = admin.put("queues/a/", queue("b"), expect=400)
    assert renamed["violations"][0]["ruleId"] == "immutable_field_changed"


def test_commands_answer_with_their_blast_radius_and_say_when_they_do_nothing(admin: Caller):
    for name, parent in (("a", "root"), ("b", "a"), ("c", "a")):
        admin.post("queues/", queue(name, parent), expect=201)
    admin.post("jobs/", job("train", "b"), expect=201)

    planned = admin.post("queues/a/suspend/?dry_run=true", {"reason": "quota change"})
    assert planned["dryRun"] is True
    assert admin.get("queues/a/")["status"]["state"] == "Open"
    done = admin.post("queues/a/suspend/", {"reason": "quota change"})
    assert set(done) == {
        "changed",
        "message",
        "dryRun",
        "command",
        "queue",
        "queues",
        "podgroups",
        "pods",
        "users",
        "warnings",
    }
    assert {**done, "dryRun": True} == planned
    assert (done["command"], done["users"], done["podgroups"]) == (
        "SuspendQueue",
        ["boss"],
        {"running": 0, "waiting": 1},
    )
    assert {"name": "b", "from": "Open", "to": "Suspended"} in done["queues"]
    again = admin.post("queues/a/suspend")
    assert again["changed"] is False
    refused = admin.post("queues/b/resume/", expect=409)
    assert "a" in refused["detail"]
    assert refused["violations"][0]["ruleId"]
    history = admin.get("commands/?queue=a")["results"]
    assert [row["status"]["result"] for row in history] == ["NoOp", "Done"]
    assert history[1]["spec"]["reason"] == "quota change"


def test_a_closed_queue_can_be_deleted_and_an_open_one_not(admin: Caller):
    for name, parent in (("a", "root"), ("b", "a")):
        admin.post("queues/", queue(name, parent), expect=201)

    refused = admin.delete("queues/a/", expect=409)
    assert {"has_children", "queue_not_closed"} <= {
        violation["ruleId"] for violation in refused["violations"]
    }
    admin.post("queues/a/close/")
    admin.delete("queues/a/", expect=409)
    assert admin.delete("queues/a/?cascade=true&dry_run=true")["deleted"] == ["b", "a"]
    gone = admin.delete("queues/a/?cascade=true")
    assert gone["deleted"] == ["b", "a"]
    admin.get("queues/a/", expect=404)


class TestCloseFirst:
    """Close now, delete when drained: ordered, looked at and taken back."""

    @pytest.fixture(autouse=True)
    def busy(self, admin: Caller) -> None:
        for name, parent in (("a", "root"), ("b", "a")):
            admin.post("queues/", queue(name, parent), expect=201)
        admin.post("jobs/", job("busy", "b"), expect=201)

    def test_it_is_planned_shown_and_taken_back(self, admin: Caller):
        closing = "queues/a/?close_first=true&cascade=true&reason=moved"
        look = admin.delete(f"{closing}&dry_run=true")
        assert (look["planned"], look["deleted"], look["dryRun"]) == (["b", "a"], [], True)
        assert admin.get("queues/a/deletion/")["planned"] is False
        assert admin.get("queues/a/")["status"]["state"] == "Open"

        done = admin.delete(closing, expect=202)
        assert {**done, "dryRun": True, "closing": {**done["closing"], "dryRun": True}} == look
        assert done["closing"]["podgroups"]["waiting"] == 1
        plan = admin.get("queues/a/deletion/")
        assert (plan["queues"], plan["actor"], plan["door"], plan["reason"]) == (
            ["b", "a"],
            "boss",
            "API",
            "moved",
        )
        assert [row["spec"]["action"] for row in admin.get("audit/?queue=a")["results"]][:2] == [
            "PlanDeletion",
            "CloseQueue",
        ]

        assert admin.delete("queues/a/deletion/?dry_run=true")["changed"] is True
        assert admin.get("queues/a/deletion/")["planned"] is True
        assert admin.delete("queues/a/deletion/")["changed"] is True
        assert admin.delete("queues/a/deletion/")["changed"] is False
        assert (
            admin.get("queues/a/deletion/")["planned"],
            admin.get("queues/a/")["status"]["state"],
        ) == (False, "Closing")

    def test_what_is_empty_is_gone_at_once(self, admin: Caller):
        admin.post("queues/", queue("c"), expect=201)

        assert admin.delete("queues/c/?close_first=true&dry_run=true")["deleted"] == ["c"]
        assert admin.delete("queues/c/?close_first=true")["deleted"] == ["c"]
        admin.get("queues/c/", expect=404)

    @pytest.mark.parametrize(
        ("address", "code", "rule"),
        [
            ("queues/a/?close_first=true", 409, "has_children"),
            ("queues/root/?close_first=true&cascade=true", 409, None),
            ("queues/a/?close_first=perhaps", 400, "invalid_parameter"),
            (f"queues/b/?close_first=true&reason={'x' * 1025}", 400, "invalid_parameter"),
        ],
    )
    def test_what_can_not_be_is_refused_and_changes_nothing(
        self,
        admin: Caller,
        address: str,
        code: int,
        rule: str | None,
    ):
        refused = admin.delete(address, expect=code)

        assert rule is None or rule in {violation["ruleId"] for violation in refused["violations"]}
        assert {
            row["status"]["state"] for row in admin.get("queues/root/tree/?flat=true")["results"]
        } == {"Open"}
        assert not PlannedDeletion.objects.exists()

    def test_a_version_that_is_no_longer_true_stops_both(self, admin: Caller):
        admin.ask("DELETE", "queues/b/?close_first=true", **{"If-Match": '"999"'})
        assert admin.last.status_code == 412
        admin.ask("DELETE", "queues/b/deletion/", **{"If-Match": '"999"'})
        assert admin.last.status_code == 412


def test_pages_follow_a_stable_order_forwards_and_backwards(admin: Caller):
    for number in range(7):
        admin.post("queues/", queue(f"q{number}", weight=1 + number % 2), expect=201)

    for ordering in ("name", "-name", "weight", "-weight,name", "state"):
        first = admin.get(f"queues/?page_size=4&ordering={ordering}")
        second = admin.get(first["next"])
        third = admin.get(second["next"])
        names = [
            row["metadata"]["name"] for page in (first, second, third) for row in page["results"]
        ]
        assert sorted(names) == sorted(["default", "root", *(f"q{number}" for number in range(7))])
        assert (first["previous"], third["next"]) == (None, None)
        assert admin.get(third["previous"])["results"] == second["results"]
        assert admin.get(second["previous"])["results"] == first["results"]


@pytest.mark.parametrize(
    "query",
    [
        "page_size=0",
        "page_size=1001",
        "page_size=x",
        "cursor=garbage",
        "cursor=W10",
        "ordering=uid",
        "sate=Open",
        "older_than=soon",
        "dry_run=true",
        "min_allocated=cpu",
        "min_allocated=cpu:nonsense",
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_name(admin: Caller, query: str):
    answer = admin.get(f"queues/?{query}", expect=400)

    assert answer["violations"][0]["ruleId"] == "invalid_parameter"


@pytest.mark.both_databases
def test_lists_are_filtered_searched_and_cut_to_fields(admin: Caller):
    for name, parent in (("red", "root"), ("crimson", "red"), ("blue", "root")):
        admin.post(
            "queues/",
            {**queue(name, parent), "metadata": {"name": name, "labels": {"hue": name[:1]}}},
            expect=201,
        )
    admin.post("queues/blue/suspend/")

    def names(query: str) -> list[str]:
        return [row["metadata"]["name"] for row in admin.get(f"queues/?{query}")["results"]]

    assert names("state=Suspended") == ["blue"]
    assert names("queue=red") == ["crimson", "red"]
    assert names("parent=red") == ["crimson"]
    assert names("search=RIM") == ["crimson"]
    assert names("label=hue=b") == ["blue"]
    assert names("older_than=1h") == []
    assert admin.get("queues/?state=Suspended&fields=metadata.name,status.state")["results"] == [
        {"metadata": {"name": "blue"}, "status": {"state": "Suspended"}}
    ]


def test_the_tree_is_nested_or_flat(admin: Caller):
    for name, parent in (("a", "root"), ("b", "a")):
        admin.post("queues/", queue(name, parent), expect=201)

    tree = admin.get("queues/root/tree/")
    assert [child["metadata"]["name"] for child in tree["children"]] == ["a", "default"]
    assert tree["children"][0]["children"][0]["spec"]["parent"] == "a"
    assert [
        row["metadata"]["name"] for row in admin.get("queues/a/tree/?flat=true")["results"]
    ] == ["a", "b"]
    assert [row["metadata"]["name"] for row in admin.get("queues/a/children/")["results"]] == ["b"]
    assert admin.get("queues/a/history/?step=raw")["results"] == []


@pytest.mark.both_databases
def test_a_queue_tells_the_minimum_running_time_it_inherits_and_from_where(admin: Caller):
    for name, parent in (("a", "root"), ("b", "a"), ("c", "b")):
        admin.post("queues/", queue(name, parent), expect=201)

    def told() -> dict[str, tuple[int, str]]:
        listed = {row["metadata"]["name"]: row["status"] for row in admin.get("queues/")["results"]}
        return {
            name: (listed[name]["minRunSeconds"], listed[name]["minRunSecondsFrom"])
            for name in "abc"
        }

    assert told() == dict.fromkeys("abc", (300, ""))  # the policy's
    admin.put("policy/", {"spec": {"preset": "volcano"}})
    assert told() == dict.fromkeys("abc", (0, ""))
    admin.patch("queues/a/", {"spec": {"minRunSeconds": 120}})
    assert told() == dict.fromkeys("abc", (120, "a"))
    admin.patch("queues/b/", {"spec": {"minRunSeconds": 0}})
    assert told() == {"a": (120, "a"), "b": (0, "b"), "c": (0, "b")}
    assert admin.get("queues/c/")["status"]["minRunSecondsFrom"] == "b"


@pytest.mark.both_databases
def test_counts_are_of_the_queue_itself_and_of_everything_below(admin: Caller):
    for name, parent in (("a", "root"), ("b", "a")):
        admin.post("queues/", queue(name, parent), expect=201)
    admin.post("jobs/", job("train", "b"), expect=201)
    admin.post("podgroups/", {"metadata": {"name": "own"}, "spec": {"queue": "b"}}, expect=201)

    below = admin.get("queues/b/")["status"]
    above = admin.get("queues/a/")["status"]
    assert (below["pending"], below["subtree"]["pending"]) == (2, 2)
    assert below["jobs"] == {
        "pending": 1,
        "running": 0,
        "completed": 0,
        "failed": 0,
        "aborted": 0,
        "unknown": 1,
    }
    assert (above["pending"], above["subtree"]["pending"]) == (0, 2)


def test_what_is_exported_is_applied_with_no_change(admin: Caller):
    admin.post("queues/", queue("a", capability={"cpu": "8"}, guarantee={"cpu": "2"}), expect=201)
    admin.post(
        "queues/",
        queue("b", "a", weight=3, dequeueStrategy="fifo", type="batch"),
        expect=201,
    )
    admin.post("queues/a/close/")

    text = admin.ask("GET", "queues/root/export/", Accept="application/yaml", expect=200)
    assert [document["metadata"]["name"] for document in text] == ["root", "a", "b", "default"]
    assert text[2]["metadata"]["annotations"] == {"volcano.sh/closed-by-parent": "true"}
    applied = admin.apply(admin.last.content.decode())
    assert applied["changed"] is False
    assert {item["operation"] for item in applied["results"]} == {"unchanged"}
    as_list = admin.get("queues/a/export/")
    assert admin.post("apply/", as_list)["changed"] is False


def test_many_are_created_at_once_with_a_result_for_each(admin: Caller):
    answer = admin.post("queues/", [queue("a"), queue("b", "a"), queue("Bad"), queue("a")])

    assert [(item["index"], item["status"]) for item in answer["results"]] == [
        (0, 201),
        (1, 201),
        (2, 400),
        (3, 409),
    ]
    assert answer["results"][2]["problem"]["violations"][0]["ruleId"] == "invalid_name"


def test_the_same_request_with_the_same_key_is_carried_out_once(admin: Caller):
    key = {"Idempotency-Key": "one"}

    first = admin.post("queues/", queue("a"), expect=201, **key)
    again = admin.post("queues/", queue("a"), expect=201, **key)
    assert again == first
    assert admin.last["Idempotent-Replayed"] == "true"
    other = admin.post("queues/", queue("b"), expect=409, **key)
    assert "another request" in other["detail"]
    admin.get("queues/b/", expect=404)
    refused = admin.post("queues/", queue("root"), expect=409, **{"Idempotency-Key": "two"})
    assert admin.post("queues/", queue("root"), expect=409, **{"Idempotency-Key": "two"}) == refused
    assert (admin.last["Idempotent-Replayed"], admin.last["Content-Type"]) == (
        "true",
        "application/problem+json",
    )


def test_yaml_in_and_yaml_out(admin: Caller):
    text = (
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: y}\nspec: "
        "{weight: 3}\n"
    )

    admin.ask("POST", "queues/", text=text, content_type="application/yaml", expect=201)
    (read,) = admin.ask("GET", "queues/y/", expect=200, Accept="application/yaml")
    assert read["spec"]["weight"] == 3


def test_the_state_in_a_manifest(admin: Caller):
    admin.post("queues/", {**queue("a"), "status": {"state": "Closed"}}, expect=201)
    admin.post(
        "queues/",
        {**queue("b", state="Suspended"), "status": {"state": "Closed"}},
        expect=201,
    )

    states: dict[str, Any] = {
        name: admin.get(f"queues/{name}/")["status"]["state"] for name in "ab"
    }
    assert states == {"a": "Closed", "b": "Suspended"}
    admin.put("queues/a/", {**queue("a"), "status": {"state": "Open"}})
    assert (
        admin.get("queues/a/")["status"]["state"] == "Closed"
    )  # the status of an update is not looked at
    refused = admin.put("queues/a/", {**queue("a"), "status": {"state": "Ajar"}}, expect=400)
    assert refused["violations"][0]["ruleId"] == "invalid_state"
    admin.patch("queues/a/", {"status": {"state": "Closing"}})
    for body in (
        {"status": {"state": "Ajar"}},
        {"spec": {"state": "Open"}, "status": {"state": "Ajar"}},
    ):
        assert (
            admin.patch("queues/a/", body, expect=400)["violations"][0]["ruleId"] == "invalid_state"
        )
    assert admin.get("queues/a/")["status"]["state"] == "Closed"


def test_the_number_of_queries_does_not_grow_with_the_number_of_queues(
    admin: Caller, django_assert_max_num_queries: Any
):
    admin.get("queues/")
    admin.post("queues/", [queue(f"q{number}") for number in range(30)])
    admin.post("jobs/", [job(f"j{number}", f"q{number}") for number in range(30)])

    with django_assert_max_num_queries(7):
        assert len(admin.get("queues/?page_size=1000")["results"]) == 32
    with django_assert_max_num_queries(6):  # limits of queues and expected starts among them
        assert len(admin.get("jobs/?page_size=1000")["results"]) == 30


def test_kept_answers_are_forgotten_after_a_day(admin: Caller):
    from datetime import timedelta

    from django.utils import timezone

    from scheduler.models import KeptAnswer
    from scheduler.services.records.retention import tidy_up

    admin.post("queues/", queue("a"), expect=201, **{"Idempotency-Key": "one"})
    KeptAnswer.objects.update(created_at=timezone.now() - timedelta(hours=25))

    tidy_up()

    assert not KeptAnswer.objects.exists()
    assert "Idempotent-Replayed" not in admin.last
    admin.post("queues/", queue("b"), expect=201, **{"Idempotency-Key": "one"})


def test_only_what_was_shown_is_deleted(admin: Caller):
    admin.post("queues/", [queue("a", state="Closed"), queue("a1", "a", state="Closed")])
    shown = ",".join(admin.delete("queues/a/?cascade=true&dry_run=true")["deleted"])
    admin.post("queues/", queue("late", "a", state="Closed"), expect=201)

    for how in ("cascade=true", "cascade=true&close_first=true"):
        problem = admin.delete(f"queues/a/?{how}&shown={shown}", expect=409)
        assert (problem["violations"][0]["ruleId"], "late" in problem["detail"]) == (
            "tree_changed",
            True,
        )
    assert admin.delete(f"queues/a/?cascade=true&shown={shown},late")["deleted"][-1] == "a"
