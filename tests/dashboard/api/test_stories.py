"""The stories of Volcano's five design documents (docs/origins.md), told as API calls from an empty
installation; sessions and the cluster are the real ones.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.dashboard.api.conftest import Caller, job, node, queue
from tests.worlds import pass_time, run_session

pytestmark = pytest.mark.django_db


def state(admin: Caller, *names: str) -> list[str]:
    return [admin.get(f"queues/{name}/")["status"]["state"] for name in names]


def rules(problem: Any) -> set[str]:
    return {violation["ruleId"] for violation in problem["violations"]}


def a_job(name: str, in_queue: str, seconds: int = 30, **shape: Any) -> dict[str, Any]:
    manifest = job(name, in_queue, **shape)
    manifest["spec"]["tasks"][0]["template"]["metadata"] = {
        "annotations": {"fumarole.io/run-seconds": str(seconds)}
    }
    return manifest


def test_a_queues_life_from_creation_to_deletion(admin: Caller):
    """Queue state management: Open takes jobs, Closing drains and takes none, Closed can be
    deleted.
    """
    admin.post("nodes/", node("n1", cpu="8", memory="32Gi"), expect=201)
    made = admin.post("queues/", queue("q1"), expect=201)
    assert made["status"]["state"] == "Open"
    admin.post("jobs/", a_job("first", "q1", cpu="2"), expect=201)
    run_session()
    assert admin.get("jobs/default/first/")["status"]["running"] == 1

    closing = admin.post("queues/q1/close/", {"reason": "end of project"})
    assert closing["queues"] == [{"name": "q1", "from": "Open", "to": "Closing"}]
    assert rules(admin.post("jobs/", a_job("late", "q1"), expect=409)) == {"queue_not_open"}
    assert "queue_not_closed" in rules(admin.delete("queues/q1/", expect=409))

    pass_time(120)
    run_session()
    assert admin.get("jobs/default/first/")["status"]["state"]["phase"] == "Completed"
    assert state(admin, "q1") == ["Closed"]
    gone = admin.delete("queues/q1/")
    assert (gone["deleted"], gone["jobs"]) == (["q1"], 1)
    admin.get("queues/q1/", expect=404)
    assert admin.get("jobs/default/first/")["spec"]["queue"] == "q1"
    assert (
        admin.get("audit/?name=q1&action=DeleteQueue")["results"][0]["spec"]["before"]["metadata"][
            "name"
        ]
        == "q1"
    )


def test_a_job_from_a_customised_controller_counts_as_unknown(admin: Caller):
    """Queue: podgroups without a job of ours are scheduled like any other and counted as unknown
    jobs.
    """
    admin.post("nodes/", node("n1", cpu="4", memory="8Gi"), expect=201)
    admin.post("queues/", queue("q1", weight=2), expect=201)
    assert rules(
        admin.post(
            "podgroups/",
            {"metadata": {"name": "ring"}, "spec": {"queue": "nowhere"}},
            expect=400,
        )
    ) == {"queue_not_found"}

    admin.post(
        "podgroups/",
        {"metadata": {"name": "ring"}, "spec": {"queue": "q1", "minMember": 2}},
        expect=201,
    )
    for number in range(2):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"ring-{number}",
                "annotations": {"scheduling.k8s.io/group-name": "ring"},
            },
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
        }
        admin.post("pods/", pod, expect=201)
    assert admin.get("queues/q1/")["status"]["jobs"]["unknown"] == 1
    run_session()

    assert admin.get("podgroups/default/ring/")["status"]["running"] == 2
    placed = [pod["status"] for pod in admin.get("pods/?podgroup=ring")["results"]]
    assert {status["node"] for status in placed} == {"n1"}
    assert {
        (told["type"], told["status"]) for status in placed for told in status["conditions"]
    } == {("PodScheduled", "True")}
    assert admin.get("queues/q1/")["status"]["allocated"]["cpu"] == "2"


def test_a_tree_of_queues_is_filled_closed_and_deleted_children_first(admin: Caller):
    """Hierarchical queues: only leaves take jobs, quotas of children fit into the parent's, a close
    goes down, a delete up.
    """
    admin.post("nodes/", node("n1", cpu="10", memory="32Gi"), expect=201)
    admin.post(
        "queues/",
        queue("eng", deserved={"cpu": "10"}, capability={"cpu": "10"}),
        expect=201,
    )
    admin.post("queues/", queue("dev", "eng", deserved={"cpu": "5"}), expect=201)
    too_much = admin.post("queues/", queue("test", "eng", deserved={"cpu": "6"}), expect=400)
    assert rules(too_much) == {"children_deserved_exceeds_parent"}
    admin.post("queues/", queue("test", "eng", deserved={"cpu": "5"}), expect=201)
    assert rules(admin.post("jobs/", a_job("x", "eng"), expect=400)) == {"queue_not_leaf"}
    admin.post("jobs/", a_job("build", "dev", cpu="4"), expect=201)
    assert rules(admin.post("queues/", queue("sub", "dev"), expect=400)) == {
        "parent_has_allocated_pods"
    }
    run_session()

    done = admin.post("queues/eng/close/")
    assert {(turn["name"], turn["to"]) for turn in done["queues"]} == {
        ("eng", "Closing"),
        ("dev", "Closing"),
        ("test", "Closed"),
    }
    assert admin.get("queues/dev/")["status"]["closedBy"] == "eng"
    assert "eng" in admin.post("queues/dev/open/", expect=409)["detail"]
    pass_time(120)
    run_session()
    assert state(admin, "eng", "dev", "test") == ["Closed", "Closed", "Closed"]
    assert "has_children" in rules(admin.delete("queues/eng/", expect=409))
    assert admin.delete("queues/eng/?cascade=true")["deleted"] == ["test", "dev", "eng"]


def test_a_queue_is_suspended_edited_and_resumed(admin: Caller):
    """Suspend: jobs are taken and wait with that reason, running ones go on, quotas change safely,
    resume lets them start.
    """
    admin.post("nodes/", node("n1", cpu="4", memory="8Gi"), expect=201)
    admin.post("queues/", queue("q1", weight=1), expect=201)
    admin.post("jobs/", a_job("running", "q1", seconds=600), expect=201)
    run_session()

    command = (
        "apiVersion: bus.volcano.sh/v1alpha1\nkind: Command\naction: SuspendQueue\ntarget: "
        "{kind: Queue, name: q1}\n"
    )
    assert admin.apply(command)["results"][0]["operation"] == "executed"
    assert state(admin, "q1") == ["Suspended"]
    admin.post("jobs/", a_job("waiting", "q1"), expect=201)
    run_session()
    why = admin.get("podgroups/default/waiting/explain/")
    assert (why["waiting"], why["reason"]) == (True, "QueueSuspended")
    assert "q1" in why["message"]
    assert admin.get("jobs/default/running/")["status"]["running"] == 1

    assert (
        admin.patch("queues/q1/", {"spec": {"weight": 5, "capability": {"cpu": "4"}}})["spec"][
            "weight"
        ]
        == 5
    )
    assert state(admin, "q1") == ["Suspended"]
    resumed = admin.post(
        "commands/",
        {"action": "Resume", "target": {"kind": "Queue", "name": "q1"}, "reason": "done"},
    )
    assert (resumed["changed"], resumed["podgroups"]) == (True, {"running": 1, "waiting": 1})
    run_session()
    assert admin.get("jobs/default/waiting/")["status"]["running"] == 1
    pass_time(5)
    run_session()
    assert admin.get("podgroups/default/waiting/explain/")["waiting"] is False


def test_a_guarantee_holds_against_a_full_cluster(admin: Caller):
    """Reservation: a guarantee above the cluster or the capability is refused, and what is
    guaranteed stays free for its queue.
    """
    admin.post("nodes/", node("n1", cpu="8", memory="32Gi"), expect=201)
    wrong = admin.post("queues/", queue("q1", guarantee={"resource": {"cpu": "2c"}}), expect=400)
    assert wrong["violations"][0]["fix"] == "write 2 or 2000m"
    assert rules(admin.post("queues/", queue("q1", guarantee={"cpu": "9"}), expect=400)) == {
        "guarantee_exceeds_cluster"
    }
    assert rules(
        admin.post(
            "queues/",
            queue("q1", guarantee={"cpu": "4"}, capability={"cpu": "2"}),
            expect=400,
        )
    ) == {"guarantee_exceeds_capability"}
    admin.post("queues/", queue("q1", guarantee={"resource": {"cpu": "2"}}), expect=201)
    admin.post("queues/", queue("q2"), expect=201)

    for number in range(10):
        admin.post("jobs/", a_job(f"greedy-{number}", "q2", seconds=600), expect=201)
    run_session()
    run_session()
    status = admin.get("queues/q1/")["status"]
    assert status["reservation"] == {"resource": {"cpu": "2"}}
    assert admin.get("queues/q2/")["status"]["allocated"]["cpu"] == "6"
    admin.post("jobs/", a_job("modest", "q1", replicas=2), expect=201)
    run_session()
    assert admin.get("jobs/default/modest/")["status"]["running"] == 2
    assert admin.get("queues/q1/")["status"]["reservation"] == {"resource": {"cpu": "0"}}
