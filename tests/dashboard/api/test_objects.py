"""Jobs, podgroups, pods, nodes, namespaces, priority classes, the policy, the cluster and accounts
over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.utils import timezone

from scheduler.conf import conf
from scheduler.models import Eviction
from scheduler.services.cluster import simulation
from tests.dashboard.api.conftest import Caller, job, node, queue
from tests.worlds import run_session

pytestmark = pytest.mark.django_db


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
            "commands/",
            {"action": "AbortJob", "target": {"kind": "Job", "name": name}},
            expect=200,
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
        session_number=1,
        action="reclaim",
        created_at=timezone.now(),
        **own,
        **other,
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
