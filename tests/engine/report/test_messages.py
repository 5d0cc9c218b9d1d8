"""What a waiting pod is told follows its gang's reason.

Nodes are counted only where nodes are the cause.
"""

from __future__ import annotations

import pytest

from scheduler.domain.queues import QueueState
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.workloads import Phase
from scheduler.engine.decisions import Outcome
from tests.engine.builders import BASIC, CAPACITY, cluster, job, node, policy, queue, run

NO_RECLAIM = policy("enqueue allocate backfill", BASIC, ["predicates"])
EMPTY = [node("n1", cpu=64), node("n2", cpu=64)]

# Why pods wait although every node is empty: the cluster, and the policy.
HELD_BACK = {
    ReasonCode.QUEUE_SUSPENDED: (
        {"queues": [queue("q", state=QueueState.SUSPENDED, held_by="q")]},
        {"cpu": 1},
    ),
    ReasonCode.QUEUE_CLOSED: ({"queues": [queue("q", state=QueueState.CLOSED)]}, {"cpu": 1}),
    ReasonCode.SCHEDULING_PAUSED: ({"queues": [queue("q")], "paused": True}, {"cpu": 1}),
    ReasonCode.ON_HOLD: ({"queues": [queue("q")]}, {"cpu": 1, "on_hold": "until Monday"}),
    ReasonCode.NOT_PERMITTED: ({"queues": [queue("q")]}, {"cpu": 1, "not_permitted": "no role"}),
    ReasonCode.NOT_ENOUGH_TASKS: ({"queues": [queue("q")]}, {"cpu": 1, "tasks": 2, "min": 3}),
    ReasonCode.EXCEEDS_CAPABILITY: ({"queues": [queue("q", capability=4)]}, {"cpu": 8}),
}


def told(outcome: Outcome, name: str) -> set[tuple[str, str]]:
    return {
        (item.reason, item.message)
        for item in outcome.pod_conditions
        if item.pod.startswith(f"default/{name}")
    }


@pytest.mark.parametrize("code", HELD_BACK, ids=str)
def test_a_pod_that_no_node_holds_back_is_told_the_reason_of_its_gang(code: ReasonCode):
    world, shape = HELD_BACK[code]

    outcome = run(
        cluster(nodes=EMPTY, **world, jobs=[job("new", "q", **{"tasks": 2, **shape})]), CAPACITY
    )

    reason = outcome.reasons["default/new"]
    assert reason.code is code
    assert told(outcome, "new") == {(str(code), reason.message)}
    said = [event.message for event in outcome.events if event.object == "pod"]
    assert said
    assert not [message for message in said if "nodes are" in message]


def test_a_pod_of_a_queue_at_its_limit_is_told_of_the_limit():
    jobs = [job("runs", "q", tasks=3, cpu=1, on="n1"), job("new", "q", tasks=3, cpu=1)]

    outcome = run(cluster(nodes=EMPTY, queues=[queue("q", capability=4)], jobs=jobs), CAPACITY)

    reason = outcome.reasons["default/new"]
    assert reason.code is ReasonCode.WAITING_FOR_QUOTA
    assert [item.reason for item in outcome.pod_conditions] == [
        "Schedulable",
        "WaitingForQuota",
        "WaitingForQuota",
    ]
    assert told(outcome, "new-2") == {("WaitingForQuota", reason.message)}


def test_a_pod_turned_away_at_the_door_is_told_of_the_quota():
    shape = {"cpu": 1, "tasks": 3, "min_resources": {"cpu": 3}, "phase": Phase.PENDING}
    jobs = [
        job("runs", "q", tasks=3, cpu=1, min_resources={"cpu": 3}, on="n1"),
        job("new", "q", **shape),
    ]

    outcome = run(cluster(nodes=EMPTY, queues=[queue("q", capability=4)], jobs=jobs), CAPACITY)

    assert told(outcome, "new") == {("WaitingForQuota", outcome.reasons["default/new"].message)}


def test_a_pod_for_which_nodes_have_no_room_is_unschedulable_with_a_count_of_nodes():
    jobs = [job("runs", cpu=60, on="n1"), job("more", cpu=60, on="n2"), job("new", tasks=2, cpu=5)]

    outcome = run(cluster(nodes=EMPTY, queues=[queue("default")], jobs=jobs), NO_RECLAIM)

    assert told(outcome, "new") == {
        ("Unschedulable", "0/2 nodes are unavailable: 2 Insufficient cpu.")
    }


def test_a_pod_larger_than_every_node_is_unschedulable_with_a_count_of_nodes():
    outcome = run(
        cluster(nodes=EMPTY, queues=[queue("default")], jobs=[job("new", cpu=100)]), CAPACITY
    )

    assert told(outcome, "new") == {
        ("Unschedulable", "0/2 nodes are unavailable: 2 Insufficient cpu.")
    }


def test_a_job_larger_than_the_cluster_needs_machines():
    outcome = run(
        cluster(nodes=EMPTY, queues=[queue("default")], jobs=[job("new", tasks=3, cpu=60)]),
        CAPACITY,
    )

    reason = outcome.reasons["default/new"]
    assert reason.code is ReasonCode.EXCEEDS_CLUSTER
    assert told(outcome, "new") == {("Unschedulable", reason.message)}


def test_a_pod_of_an_overcommitted_cluster_is_told_so_without_a_count_of_nodes():
    """It was not tried on any node."""
    jobs = [
        job("first", tasks=150, min=150, cpu=1, min_resources={"cpu": 150}, phase=Phase.INQUEUE),
        job("new", cpu=20, min_resources={"cpu": 20}, phase=Phase.PENDING),
    ]
    overcommit = policy("enqueue allocate backfill", BASIC, ["predicates", "overcommit"])

    outcome = run(cluster(nodes=EMPTY, queues=[queue("default")], jobs=jobs), overcommit)

    reason = outcome.reasons["default/new"]
    assert reason.code is ReasonCode.CLUSTER_BUSY
    assert told(outcome, "new") == {("Unschedulable", reason.message)}


# What queues ask for, and what their jobs wait for


def figures(outcome: Outcome, name: str) -> tuple[dict[str, int], dict[str, int]]:
    found = outcome.queues[name]
    return dict(found.asked), dict(found.lacking)


@pytest.mark.parametrize("state", [QueueState.OPEN, QueueState.SUSPENDED])
def test_jobs_that_can_never_run_are_not_asked_for(state: QueueState):
    jobs = [
        job("huge", "q", cpu=100),
        job("beyond", "q", tasks=9, cpu=1),
        job("waits", "q", tasks=2, cpu=1),
    ]
    queues = [
        queue("root"),
        queue("q", capability=4, state=state, held_by="q" if state is QueueState.SUSPENDED else ""),
        queue("p"),
    ]
    busy = job("busy", "p", cpu=3, on="n1")

    outcome = run(cluster(nodes=[node("n1", cpu=4)], queues=queues, jobs=[*jobs, busy]), CAPACITY)

    assert dict(outcome.queues["q"].asked) == dict(outcome.queues["root"].asked) == {"cpu": 2000}


def test_the_resource_that_keeps_jobs_waiting_is_named():
    """Both are below what they deserve of everything; gpus are what is missing."""
    queues = [
        queue("q", deserved={"cpu": 32, "gpu": 4}),
        queue("p", deserved={"cpu": 32, "gpu": 4}),
    ]
    jobs = [job("hog", "p", tasks=8, cpu=1, gpu=1, on="n1"), job("new", "q", tasks=2, cpu=4, gpu=1)]

    outcome = run(
        cluster(nodes=[node("n1", cpu=64, gpu=8)], queues=queues, jobs=jobs),
        policy("enqueue allocate backfill", BASIC, ["predicates", "capacity"]),
    )

    assert figures(outcome, "q") == (
        {"cpu": 8000, "nvidia.com/gpu": 2000},
        {"nvidia.com/gpu": 2000},
    )


def test_a_queue_at_its_own_limit_lacks_nothing_that_others_have():
    jobs = [job("runs", "q", tasks=3, cpu=1, on="n1"), job("new", "q", tasks=3, cpu=1)]

    outcome = run(
        cluster(nodes=EMPTY, queues=[queue("q", capability=4, deserved=4)], jobs=jobs), CAPACITY
    )

    assert figures(outcome, "q") == ({"cpu": 3000}, {})
