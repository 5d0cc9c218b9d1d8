"""Jobs, podgroups and bare pods: one check of the queue for all of them, and what may change of a
job.
"""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.admission.facts import QUEUE_ANNOTATION, Facts
from scheduler.admission.reading.workload import read_job
from scheduler.admission.reviews import Request, review
from scheduler.admission.rules.workloads import (
    admit_job,
    admit_job_change,
    admit_pod,
    admit_podgroup,
    admit_podgroup_change,
)
from scheduler.admission.violations import Verdict
from scheduler.domain.queues import QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import Resources

TREE = QueueTree(
    [
        QueueSpec("root", parent=""),
        QueueSpec("default"),
        QueueSpec("p"),
        QueueSpec("leaf", parent="p"),
        QueueSpec("gone"),
    ]
)
FACTS = Facts(
    states={
        "root": QueueState.OPEN,
        "default": QueueState.OPEN,
        "p": QueueState.OPEN,
        "leaf": QueueState.SUSPENDED,
        "gone": QueueState.CLOSED,
    },
    namespaces={"team": {QUEUE_ANNOTATION: "leaf"}, "plain": {}},
)


def job(queue: str | None = None, namespace: str = "plain", **spec: Any) -> dict[str, Any]:
    body = {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 2}], **spec}
    return {
        "kind": "Job",
        "metadata": {"name": "j", "namespace": namespace},
        "spec": body | ({"queue": queue} if queue is not None else {}),
    }


def podgroup(queue: str | None = None, namespace: str = "plain", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "g", "namespace": namespace},
        "spec": spec | ({"queue": queue} if queue is not None else {}),
    }


def pod(queue: str = "", scheduler: str = "volcano", **annotations: str) -> dict[str, Any]:
    marks = {key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()}
    marks |= {QUEUE_ANNOTATION: queue} if queue else {}
    return {
        "metadata": {"name": "b", "namespace": "plain", "annotations": marks},
        "spec": {"schedulerName": scheduler},
    }


def rules(verdict: Verdict) -> list[str]:
    return [violation.rule_id for violation in verdict.violations]


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("default", []),
        ("leaf", []),
        ("gone", ["queue_not_open"]),
        ("p", ["queue_not_leaf"]),
        ("root", ["queue_is_root"]),
        ("ghost", ["queue_not_found"]),
    ],
)
def test_every_kind_of_work_meets_the_same_check(queue: str, expected: list[str]):
    assert rules(admit_job(job(queue), TREE, FACTS)) == expected
    assert rules(admit_podgroup(podgroup(queue), TREE, FACTS)) == expected
    assert rules(admit_pod(pod(queue), TREE, FACTS)) == expected


def test_a_closed_parent_breaks_two_rules():
    facts = Facts(states={"p": QueueState.CLOSING})

    assert rules(admit_job(job("p"), TREE, facts)) == ["queue_not_leaf", "queue_not_open"]


def test_the_answer_names_the_queue_its_state_and_a_way_out():
    (violation,) = admit_job(job("gone"), TREE, FACTS).violations

    assert (
        violation.message
        == "gone is Closed and takes no jobs; a queue must be Open or Suspended for that."
    )
    assert violation.fix == "open gone, or name another queue"


@pytest.mark.parametrize(
    ("named", "namespace", "queue"),
    [
        (None, "plain", "default"),
        (None, "team", "leaf"),
        ("default", "team", "leaf"),
        ("x", "team", "x"),
    ],
)
def test_work_without_a_queue_goes_to_that_of_its_namespace_or_to_default(
    named: str | None,
    namespace: str,
    queue: str,
):
    reading = read_job(job(named, namespace), FACTS)

    assert reading.value
    assert reading.value.queue == queue


def test_what_was_admitted_before_may_come_back_to_a_closing_queue():
    facts = Facts(states={"default": QueueState.CLOSING})

    assert rules(admit_podgroup(podgroup("default"), TREE, facts)) == ["queue_not_open"]
    assert admit_podgroup(podgroup("default"), TREE, facts, again=True).allowed


def test_a_pod_of_a_gang_or_of_another_scheduler_is_not_our_business():
    assert admit_pod(pod("gone", scheduler="default-scheduler"), TREE, FACTS).allowed
    assert admit_pod(pod("gone", scheduling_k8s_io="x"), TREE, FACTS).violations
    assert admit_pod(
        {
            "metadata": {"name": "b", "annotations": {"scheduling.k8s.io/group-name": "g"}},
            "spec": {"schedulerName": "volcano"},
        },
        TREE,
        FACTS,
    ).allowed


@pytest.mark.parametrize(
    ("value", "allowed"),
    [("1", True), ("50%", True), ("0", False), ("100%", False), ("half", False), ("²", False)],
)
def test_a_disruption_budget_is_a_count_or_a_part(value: str, allowed: bool):
    manifest = {
        "metadata": {"name": "b", "annotations": {"volcano.sh/jdb-min-available": value}},
        "spec": {"schedulerName": "volcano"},
    }

    assert admit_pod(manifest, TREE, FACTS).allowed is allowed


def test_a_pod_that_a_controller_makes_has_no_name_yet():
    manifest = {"metadata": {"generateName": "web-"}, "spec": {"schedulerName": "volcano"}}

    assert admit_pod(manifest, TREE, FACTS).allowed


@pytest.mark.parametrize("where", ["networkTopology", "subGroupPolicy"])
def test_a_tier_is_given_by_number_or_by_name(where: str):
    both = {"highestTierAllowed": 0, "highestTierName": "rack"}
    spec = (
        {"networkTopology": both}
        if where == "networkTopology"
        else {"subGroupPolicy": [{"name": "s", "networkTopology": both}]}
    )

    assert rules(admit_podgroup(podgroup("default", **spec), TREE, FACTS)) == [
        "topology_tier_conflict"
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"tasks": []}, ["tasks_required"]),
        ({"tasks": [{"name": "A B", "replicas": 1}]}, ["invalid_name"]),
        ({"tasks": [{"name": "t", "replicas": -1}]}, ["number_out_of_range"]),
        (
            {"tasks": [{"name": "t", "replicas": 1}, {"name": "t", "replicas": 1}]},
            ["duplicate_task_name"],
        ),
        ({"minAvailable": 3}, ["min_available_exceeds_replicas"]),
        (
            {"tasks": [{"name": "t", "replicas": 1, "minAvailable": 2}]},
            ["min_available_exceeds_replicas"],
        ),
    ],
)
def test_a_job_must_make_sense(spec: dict[str, Any], expected: list[str]):
    assert rules(admit_job(job("default", **spec), TREE, FACTS)) == expected


def test_a_gang_that_can_never_be_complete_says_the_figures():
    (violation,) = admit_job(job("default", minAvailable=3), TREE, FACTS).violations

    assert (
        violation.message
        == "minAvailable 3 of j is more than the 2 replicas of its tasks together."
    )


def test_the_requests_of_a_template_are_added_up():
    template = {
        "spec": {
            "containers": [
                {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
                {"resources": {"limits": {"cpu": "1", "nvidia.com/gpu": 1}}},
            ],
            "initContainers": [{"resources": {"requests": {"cpu": "3", "memory": "10Mi"}}}],
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
        }
    }

    reading = read_job(
        job("default", tasks=[{"name": "t", "replicas": 2, "template": template}]), FACTS
    )

    assert reading.violations == ()
    assert reading.value
    asked = reading.value.tasks[0].template
    assert asked.requests == Resources.parse({"cpu": "3", "memory": "1Gi", "nvidia.com/gpu": "1"})
    assert asked.node_selector == {"zone": "a"}
    assert asked.tolerations == ({"key": "gpu", "operator": "Exists"},)


def _requests_of(**spec: object) -> Resources:
    template = {"spec": spec}
    reading = read_job(job("default", tasks=[{"name": "t", "template": template}]), FACTS)

    assert reading.violations == ()
    assert reading.value
    return reading.value.tasks[0].template.requests


def _asking(cpu: str, **fields: str) -> dict[str, object]:
    return {"resources": {"requests": {"cpu": cpu}}, **fields}


def test_a_sidecar_runs_on_beside_the_containers():
    asked = _requests_of(
        containers=[_asking("3")], initContainers=[_asking("4", restartPolicy="Always")]
    )

    assert asked == Resources.parse({"cpu": "7"})


def test_a_template_may_ask_for_the_whole_pod():
    asked = _requests_of(
        containers=[_asking("3"), _asking("3")],
        resources={"requests": {"cpu": "4"}, "limits": {"memory": "8Gi"}},
    )

    assert asked == Resources.parse({"cpu": "4", "memory": "8Gi"})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"minAvailable": 2}, []),
        ({"priorityClassName": "high"}, []),
        ({"tasks": [{"name": "t", "replicas": 5, "minAvailable": 4}]}, []),
        ({"queue": "leaf"}, ["immutable_field_changed"]),
        ({"maxRetry": 9}, ["immutable_field_changed"]),
        ({"plugins": {"svc": []}}, ["immutable_field_changed"]),
        ({"tasks": [{"name": "other", "replicas": 2}]}, ["immutable_field_changed"]),
        (
            {"tasks": [{"name": "t", "replicas": 2}, {"name": "u", "replicas": 1}]},
            ["tasks_added_or_removed"],
        ),
        ({"minAvailable": 9}, ["min_available_exceeds_replicas"]),
        ({"maxRetry": 3, "schedulerName": "volcano"}, []),
    ],
)
def test_what_may_change_of_a_job(change: dict[str, Any], expected: list[str]):
    assert (
        rules(
            admit_job_change(
                job("default") | {"spec": {**job("default")["spec"], **change}},
                job("default"),
                FACTS,
            )
        )
        == expected
    )


def test_a_job_may_be_changed_whatever_the_state_of_its_queue():
    assert admit_job_change(job("gone", minAvailable=2), job("gone"), FACTS).allowed


def test_a_flaw_that_a_job_had_before_does_not_keep_it_from_being_changed():
    old = job("default", tasks=[{"name": "t", "replicas": 1}, {"name": "t", "replicas": 1}])

    assert admit_job_change(
        {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}},
        old,
        FACTS,
    ).allowed


def test_what_is_being_deleted_is_not_checked_any_more():
    leaving = podgroup("ghost", minMember=-1)
    leaving["metadata"]["deletionTimestamp"] = "2026-11-16T06:21:00Z"

    assert review(
        "podgroups",
        Request("UPDATE", "g", leaving, podgroup("default")),
        TREE,
        FACTS,
    ).allowed


def test_a_podgroup_stays_in_its_queue():
    verdict = admit_podgroup_change(podgroup("leaf"), podgroup("default"), FACTS)

    assert [(violation.rule_id, violation.field) for violation in verdict.violations] == [
        ("immutable_field_changed", "spec.queue")
    ]
