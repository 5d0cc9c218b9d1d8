"""Jobs, podgroups, pods, nodes, namespaces, priority classes, the policy, the cluster and accounts over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from scheduler.conf import conf
from scheduler.models import Eviction
from scheduler.services.cluster import simulation
from tests import worlds
from tests.dashboard.api.conftest import Caller, job, node, queue
from tests.worlds import pass_time, run_session

pytestmark = pytest.mark.django_db


def test_a_job_is_submitted_commanded_scaled_and_deleted(admin: Caller):
    admin.post("nodes/", node("n1", cpu="8", memory="32Gi"), expect=201)
    made = admin.post("jobs/", {**job("train", replicas=2), "extra": 1}, expect=201)
    assert made["warnings"][0]["code"] == "unknown_field"
    assert (
        admin.post("jobs/", job("train"), expect=409)["violations"][0]["ruleId"] == "already_exists"
    )
    run_session()

    scaled = admin.patch(
        "jobs/default/train/", {"spec": {"minAvailable": 1, "tasks": _tasks(admin, replicas=3)}}
    )
    assert (scaled["changed"], scaled["spec"]["minAvailable"], scaled["status"]["pending"]) == (
        True,
        1,
        1,
    )
    moved = admin.patch("jobs/default/train/", {"spec": {"queue": "other"}}, expect=400)
    assert moved["violations"][0]["ruleId"] == "immutable_field_changed"
    assert "cancel" in admin.delete("jobs/default/train/", expect=409)["violations"][0]["fix"]
    assert admin.post("jobs/default/train/suspend/?dry_run=true")["changed"] is True
    assert (
        admin.post("jobs/default/train/cancel/", {"reason": "wrong data"})["phase"] == "Terminating"
    )
    assert admin.post("jobs/default/train/cancel/")["changed"] is False
    run_session()  # carries out what was decided
    pass_time(60)
    assert "restart" in admin.post("jobs/default/train/resume/", expect=409)["detail"]
    entry = admin.get("audit/?action=TerminateJob")["results"][0]["spec"]
    assert (entry["reason"], entry["actor"], entry["door"]) == ("wrong data", "boss", "API")
    admin.delete("jobs/default/train/")
    admin.get("jobs/default/train/", expect=404)


def _tasks(admin: Caller, replicas: int) -> list[dict[str, object]]:
    tasks = admin.get("jobs/default/train/")["spec"]["tasks"]
    return [{**tasks[0], "replicas": replicas, "minAvailable": 1}]


def test_a_job_that_shrinks_loses_its_last_pods_for_good(admin: Caller):
    admin.post("jobs/", job("train", replicas=3), expect=201)

    admin.patch(
        "jobs/default/train/", {"spec": {"minAvailable": 1, "tasks": _tasks(admin, replicas=1)}}
    )

    assert [pod["metadata"]["name"] for pod in admin.get("pods/")["results"]] == ["train-worker-0"]


@pytest.mark.both_databases
def test_jobs_are_found_by_what_they_are(admin: Caller):
    admin.post("queues/", [queue("a"), queue("b", "a"), queue("c")])
    admin.post("jobs/", [job("one", "b"), job("two", "c", cpu="64")])

    def names(query: str) -> list[str]:
        return [
            row["metadata"]["name"] for row in admin.get(f"jobs/?ordering=name&{query}")["results"]
        ]

    assert names("queue=a") == ["one"]
    assert names("user=boss") == ["one", "two"]
    assert names("user=nobody") == []
    assert names("min_request=cpu:8") == ["two"]
    assert names("max_request=cpu:8") == ["one"]
    assert names("phase=Pending&search=tw") == ["two"]
    assert names("namespace=elsewhere") == []
    admin.post("nodes/", node("n1", cpu="4", memory="8Gi"), expect=201)
    run_session()
    reason = admin.get("jobs/default/two/")["status"]["podgroup"]["reason"]["code"]
    assert names(f"reason={reason}") == ["two"]


def test_why_a_gang_waits_with_its_place_in_the_line(admin: Caller):
    admin.post("jobs/", [job("one"), job("two")])

    assert admin.get("podgroups/default/one/explain/")["position"] == 1
    second = admin.get("podgroups/default/two/explain/")
    assert (second["position"], second["reason"]) == (2, "AwaitingEvaluation")


def test_a_podgroup_of_a_job_is_changed_with_the_job(admin: Caller):
    admin.post("jobs/", job("train"), expect=201)

    assert (
        admin.patch("podgroups/default/train/", {"spec": {"minMember": 2}}, expect=409)[
            "violations"
        ][0]["ruleId"]
        == "owned_by_job"
    )
    admin.delete("podgroups/default/train/", expect=409)


def test_a_podgroup_from_outside_is_changed_and_deleted_with_its_pods(admin: Caller):
    admin.post(
        "podgroups/",
        {"metadata": {"name": "own"}, "spec": {"minMember": 1, "minResources": {"cpu": "1"}}},
        expect=201,
    )
    pod = {
        "metadata": {"name": "p", "annotations": {"scheduling.k8s.io/group-name": "own"}},
        "spec": {"containers": []},
    }
    admin.post("pods/", pod, expect=201)

    assert (
        admin.patch("podgroups/default/own/", {"spec": {"minMember": 2}})["spec"]["minMember"] == 2
    )
    assert (
        admin.patch("podgroups/default/own/", {"spec": {"queue": "x"}}, expect=400)["violations"][
            0
        ]["ruleId"]
        == "immutable_field_changed"
    )
    admin.delete("podgroups/default/own/")
    admin.get("pods/default/p/", expect=404)


def test_nodes_are_added_cordoned_drained_and_taken_away(admin: Caller):
    admin.post("nodes/", node("n1", cpu="8", memory="32Gi"), expect=201)
    admin.post("jobs/", job("train"), expect=201)
    run_session()

    shown = admin.get("nodes/n1/")["status"]
    assert (shown["allocated"]["cpu"], shown["idle"]["cpu"], shown["pods"]) == ("1", "7", 1)
    assert (shown["allocated"]["pods"], shown["idle"]["pods"]) == ("1", "109")
    assert admin.post("nodes/n1/cordon/")["changed"] is True
    assert admin.post("nodes/n1/cordon/")["changed"] is False
    assert admin.get("nodes/?unschedulable=true")["results"][0]["spec"]["unschedulable"] is True
    admin.post("nodes/n1/uncordon/")
    planned = admin.post("nodes/n1/drain/?dry_run=true")
    assert (planned["pods"], admin.get("nodes/n1/")["spec"]["unschedulable"]) == (1, False)
    touched = planned["podgroups"][0]
    assert (touched["pods"], touched["left"], touched["minMember"], touched["breaks"]) == (
        1,
        0,
        1,
        True,
    )
    assert admin.post("nodes/n1/drain/", {"reason": "new disk"})["pods"] == 1
    assert admin.delete("nodes/n1/", expect=409)["violations"][0]["ruleId"] == "node_has_pods"
    tainted = admin.patch(
        "nodes/n1/", {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}
    )
    assert tainted["spec"]["taints"] == [{"key": "gpu", "value": "", "effect": "NoSchedule"}]
    assert (
        admin.patch("nodes/n1/", {"status": {"allocatable": {"cpu": "-1"}}}, expect=400)[
            "violations"
        ][0]["ruleId"]
        == "negative_quantity"
    )


def readiness(admin: Caller) -> str:
    (condition,) = admin.get("nodes/n1/")["status"]["conditions"]
    assert condition["type"] == "Ready"
    return condition["status"]


def test_simulated_nodes_are_lost_and_come_back(admin: Caller):
    admin.post("nodes/", node("n1", cpu="8", memory="32Gi"), expect=201)
    admin.post("jobs/", job("train"), expect=201)
    run_session()

    planned = admin.post("nodes/n1/lose/?dry_run=true")
    assert (planned["pods"], planned["podgroups"][0]["name"], planned["users"]) == (
        1,
        "train",
        ["boss"],
    )
    assert readiness(admin) == "True"
    assert admin.post("nodes/n1/lose/", {"reason": "fire drill"})["changed"] is True
    assert readiness(admin) == "False"
    assert admin.post("nodes/n1/lose/")["changed"] is False
    assert admin.post("nodes/n1/return/")["changed"] is True
    assert admin.post("nodes/n1/return/")["changed"] is False
    admin.post("nodes/n9/lose/", expect=404)


def test_real_nodes_are_not_lost_by_order(admin: Caller, monkeypatch: pytest.MonkeyPatch):
    admin.post("nodes/", node("n1", cpu="8", memory="32Gi"), expect=201)
    monkeypatch.setattr(simulation, "conf", lambda: replace(conf(), cluster="of machines"))

    refusal = admin.post("nodes/n1/lose/", expect=409)

    assert refusal["violations"][0]["ruleId"] == "not_simulated"
    assert readiness(admin) == "True"


def test_namespaces_and_priority_classes(admin: Caller):
    admin.post(
        "namespaces/",
        {
            "metadata": {
                "name": "lab",
                "annotations": {"scheduling.volcano.sh/queue-name": "default"},
            }
        },
        expect=201,
    )
    assert admin.get("namespaces/lab/")["status"]["queue"] == "default"
    admin.post(
        "priorityclasses/",
        {"metadata": {"name": "high"}, "value": 1000, "globalDefault": True},
        expect=201,
    )
    assert admin.post(
        "priorityclasses/",
        {"metadata": {"name": "top"}, "spec": {"value": 1, "globalDefault": True}},
        expect=409,
    )["detail"]
    assert admin.patch("priorityclasses/high/", {"spec": {"value": 2000}})["spec"]["value"] == 2000
    admin.post("jobs/", job("train", priorityClassName="high"), expect=201)
    assert admin.get("podgroups/default/train/")["status"]["priority"] == 2000
    admin.delete("priorityclasses/high/", expect=409)
    admin.delete("namespaces/lab/")
    admin.delete("namespaces/default/", expect=409)


POLICY = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: proportion\n'


def test_the_policy_is_checked_and_replaced_as_a_whole(admin: Caller):
    before = admin.get("policy/")
    assert before["status"]["isDefault"] is True
    wrong = admin.post("policy/validate/", {"spec": {"policy": POLICY.replace("gang", "gnag")}})
    assert (wrong["valid"], wrong["violations"][0]["field"]) == (False, "tiers[0].plugins[0].name")
    admin.put("policy/", {"spec": {"policy": POLICY.replace("gang", "gnag")}}, expect=400)
    admin.put("policy/?dry_run=true", {"spec": {"policy": POLICY}})
    assert admin.get("policy/") == before

    replaced = admin.ask(
        "PUT",
        "policy/",
        text=POLICY,
        content_type="application/yaml",
        expect=200,
        **{"If-Match": '"0"'},
    )
    assert (replaced["spec"]["policy"], replaced["status"]["author"]) == (POLICY, "boss")
    late = admin.put("policy/", {"spec": {"policy": POLICY}}, expect=412, **{"If-Match": '"0"'})
    assert late["changed"]["by"] == "boss"
    run_session()


IDLE = "actions: backfill\ntiers: [{plugins: [{name: priority}]}]\n"


def test_a_policy_that_starts_nothing_is_applied_only_if_that_is_confirmed(admin: Caller):
    worlds.node("n1", cpu="8")
    worlds.job("fresh", cpu="2")
    before = admin.get("policy/")

    tried = admin.put("policy/?dry_run=true", {"spec": {"policy": IDLE}})
    assert [warning["code"] for warning in tried["warnings"]] == [
        "no_allocate",
        "no_gang",
        "no_queue_plugin",
        "no_predicates",
    ]
    assert (tried["effect"]["now"]["placed"], tried["effect"]["then"]["placed"]) == (1, 0)
    assert tried["effect"]["noLonger"] == ["default/fresh"]
    refused = admin.put("policy/", {"spec": {"policy": IDLE}}, expect=409)
    assert refused["violations"][0]["ruleId"] == "policy_starts_nothing"
    assert "confirm=true" in refused["violations"][0]["fix"]
    assert admin.get("policy/") == before

    applied = admin.put("policy/?confirm=true", {"spec": {"policy": IDLE}})
    assert applied["status"]["warnings"][0].startswith("actions: There is no allocate action")


def test_a_preset_is_chosen_by_name_and_named_while_it_is_in_force(admin: Caller):
    assert admin.get("policy/")["status"]["preset"] == "fumarole"

    tried = admin.put("policy/?dry_run=true", {"spec": {"preset": "volcano"}})
    assert (tried["changed"], tried["effect"]["waiting"]) == (True, 0)
    assert admin.get("policy/")["status"]["preset"] == "fumarole"

    chosen = admin.put("policy/", {"spec": {"preset": "volcano"}, "reason": "as before"})
    assert (chosen["status"]["preset"], chosen["status"]["reason"]) == ("volcano", "as before")
    listed = admin.get("policy/presets/")["presets"]
    assert [preset["name"] for preset in listed if preset["inForce"]] == ["volcano"]
    assert [preset["name"] for preset in listed if preset["isDefault"]] == ["fumarole"]

    admin.put("policy/", {"spec": {"policy": POLICY}})
    assert admin.get("policy/")["status"]["preset"] == ""
    admin.put("policy/", {"preset": "fumarole"})
    assert admin.get("policy/")["status"]["preset"] == "fumarole"


def test_presets_say_what_their_settings_mean(admin: Caller):
    fumarole, volcano, _ = admin.get("policy/presets/")["presets"]

    def values(preset: dict[str, Any]) -> dict[tuple[str, str], Any]:
        return {
            (setting["owner"], setting["name"]): setting["value"] for setting in preset["settings"]
        }

    assert values(fumarole)["reclaim", "minRunSeconds"] == 300
    assert values(volcano)["reclaim", "minRunSeconds"] == 0
    assert values(volcano)["scarcity", "scarcity.weight"] is None
    assert all(setting["meaning"] for setting in fumarole["settings"])


def test_the_preset_that_ignores_quotas_needs_a_confirmation(admin: Caller):
    refused = admin.put("policy/", {"spec": {"preset": "bound"}}, expect=409)
    assert refused["violations"][0]["ruleId"] == "policy_ignores_quotas"
    assert admin.get("policy/")["status"]["preset"] == "fumarole"

    admin.put("policy/?confirm=true", {"spec": {"preset": "bound"}})
    assert admin.get("policy/")["status"]["preset"] == "bound"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"spec": {"preset": "best"}}, "There is no preset “best”."),
        ({"spec": {"preset": "volcano", "policy": POLICY}}, "the name of a preset"),
        ({"spec": {"preset": 7}}, "the name of a preset"),
    ],
    ids=["unknown", "preset and text", "no name"],
)
def test_a_preset_that_is_none_is_refused(admin: Caller, body: dict[str, Any], words: str):
    assert words in json.dumps(admin.put("policy/", body, expect=400), ensure_ascii=False)


def test_scheduling_is_paused_and_resumed(admin: Caller):
    assert admin.post("cluster/pause/", {"reason": "upgrade"})["paused"] is True
    assert admin.post("cluster/pause/")["changed"] is False
    shown = admin.get("cluster/")["status"]
    assert (shown["pausedBy"], shown["pauseReason"]) == ("boss", "upgrade")
    assert admin.post("cluster/resume/?dry_run=true")["paused"] is False
    assert admin.get("cluster/")["status"]["paused"] is True
    admin.post("cluster/resume/")
    assert admin.patch("cluster/", {"spec": {"periodSeconds": 2.5}})["spec"]["periodSeconds"] == 2.5
    assert admin.patch("cluster/", {"spec": {"periodSeconds": 0}}, expect=400)["detail"]


def test_sessions_decisions_and_events_are_read(admin: Caller):
    admin.post("nodes/", node("n1", cpu="8", memory="32Gi"), expect=201)
    admin.post("jobs/", job("train"), expect=201)
    run_session()

    session = admin.get("sessions/")["results"][0]
    assert admin.get(f"sessions/{session['metadata']['name']}/") == session
    assert admin.get("decisions/?kind=Bind")["results"][0]["spec"]["node"] == "n1"
    assert admin.get("events/?kind=Node")["results"][0]["spec"]["reason"] == "NodeAdded"
    assert admin.get("evictions/")["results"] == []
    admin.get("events/x/", expect=404)


def test_orders_by_name_uid_and_unknown_action(admin: Caller):
    admin.post("queues/", queue("q"), expect=201)
    uid = admin.get("queues/q/")["metadata"]["uid"]

    def order(expect: int, **changes: object) -> dict[str, object]:
        return admin.post(
            "commands/",
            {"action": "Close", "target": {"kind": "Queue", "name": "q"}, **changes},
            expect=expect,
        )

    assert order(400, action="Explode")["violations"][0]["ruleId"] == "invalid_action"
    assert (
        order(400, target={"kind": "Queue", "name": "q", "uid": "x"})["violations"][0]["ruleId"]
        == "uid_mismatch"
    )
    assert (
        order(400, target={"kind": "Queue", "name": "nowhere"})["violations"][0]["ruleId"]
        == "queue_not_found"
    )
    assert order(200, target={"kind": "Queue", "name": "q", "uid": uid})["changed"] is True
    admin.post("jobs/", job("train"), expect=201)
    done = order(200, action="Suspend", target={"kind": "Job", "name": "train"})
    assert (done["command"], done["job"]) == ("AbortJob", "default/train")
    several = admin.post(
        "commands/",
        [
            {"action": "Open", "target": {"kind": "Queue", "name": "q"}},
            {"action": "Open", "target": {}},
        ],
    )
    assert [item["status"] for item in several["results"]] == [200, 400]


def test_orders_are_found_by_queue_and_seen_by_who_sees_what_they_were_for(
    admin: Caller, caller: Callable[..., Caller]
):
    admin.post("queues/", [queue("train"), queue("other")])
    admin.post("jobs/", [job("train", "other"), job("mine", "train")])
    ann = caller("ann", admin="train")
    for name in ("train", "mine"):
        admin.post(
            "commands/", {"action": "AbortJob", "target": {"kind": "Job", "name": name}}, expect=200
        )
    admin.post("queues/train/suspend/", expect=200)

    def targets(who: Caller, where: str = "") -> list[tuple[str, str]]:
        found = who.get(f"commands/?ordering=created{where}")["results"]
        return [(row["spec"]["target"]["kind"], row["spec"]["target"]["name"]) for row in found]

    assert targets(admin, "&queue=train") == [("Queue", "train")]
    assert targets(ann) == [("Job", "mine"), ("Queue", "train")]
    admin.delete("jobs/default/train/", expect=200)
    admin.post("jobs/", job("train", "train"), expect=201)
    assert targets(ann) == [("Job", "mine"), ("Queue", "train")]


def test_an_eviction_is_not_found_by_what_is_not_shown_of_it(
    admin: Caller, caller: Callable[..., Caller]
):
    admin.post("queues/", [queue("mine"), queue("hidden")])
    other = {
        "beneficiary": "default/secret",
        "beneficiary_queue": "hidden",
        "common_ancestor": "root",
    }
    own = {"pod_name": "default/train-0", "podgroup_name": "default/train", "queue_name": "mine"}
    Eviction.objects.create(
        session_number=1, action="reclaim", created_at=timezone.now(), **own, **other
    )
    ann = caller("ann", admin="mine")

    def found(who: Caller, where: str) -> int:
        return len(who.get(f"evictions/?{where}")["results"])

    assert [
        found(admin, where)
        for where in ("search=train", "search=secret", "beneficiary_queue=hidden")
    ] == [1, 1, 1]
    assert [
        found(ann, where) for where in ("search=train", "search=secret", "beneficiary_queue=hidden")
    ] == [1, 0, 0]
    assert ann.get("evictions/")["results"][0]["spec"]["commonAncestor"] == ""


def test_an_evictions_figures_are_quantities(admin: Caller):
    queues = {"queue_name": "default", "common_ancestor": "root"}
    figures = {
        "allocated": {"cpu": 1500, "memory": 2**30},
        "deserved": {"cpu": 1000},
        "guarantee": {},
    }
    Eviction.objects.create(
        session_number=1,
        action="reclaim",
        created_at=timezone.now(),
        before=figures,
        after={"allocated": {"cpu": 0}},
        **queues,
    )

    shown = admin.get("evictions/")["results"][0]["spec"]

    assert shown["before"] == {
        "allocated": {"cpu": "1500m", "memory": "1Gi"},
        "deserved": {"cpu": "1"},
        "guarantee": {},
    }
    assert shown["after"] == {"allocated": {"cpu": "0"}}


def test_the_addresses_of_collections_are_the_canonical_ones(admin: Caller):
    for table in admin.get("/api/v1/").values():
        for address in table.values():
            assert address.endswith("/")
            admin.ask("OPTIONS", address, expect=204)


def test_accounts_groups_grants_and_tokens(admin: Caller):
    admin.post("users/", {"username": "ann", "password": "a long enough one"}, expect=201)
    assert (
        admin.post("users/", {"username": "bob", "password": "short"}, expect=400)["violations"][0][
            "ruleId"
        ]
        == "weak_password"
    )
    admin.post("groups/", {"name": "team", "members": ["ann"]}, expect=201)
    admin.post("queues/", queue("a"), expect=201)
    grant = admin.post("grants/", {"group": "team", "role": "viewer", "queue": "a"}, expect=201)
    made = admin.post("tokens/", {"name": "ci", "scopes": ["read"], "user": "ann"}, expect=201)

    ann = {"Authorization": f"Bearer {made['token']}"}
    assert [row["metadata"]["name"] for row in admin.get("queues/", **ann)["results"]] == ["a"]
    assert admin.get("tokens/", **ann)["results"][0]["spec"]["name"] == "ci"
    assert "token" not in admin.get("tokens/")["results"][0]
    admin.delete(f"grants/{grant['metadata']['name']}/")
    assert admin.get("queues/", **ann)["results"] == []
    admin.delete(f"tokens/{made['metadata']['name']}/")
    assert "revoked" in admin.get("queues/", expect=401, **ann)["detail"]
    assert admin.patch("users/ann/", {"isActive": False})["spec"]["isActive"] is False
    admin.delete("users/ann/")
    assert (
        admin.get("audit/?kind=User&action=DeleteUser")["results"][0]["spec"]["before"]["username"]
        == "ann"
    )
    assert admin.delete("users/boss/", expect=409)["violations"][0]["ruleId"] == "last_admin"
