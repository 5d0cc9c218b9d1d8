"""Allocate: who starts, and who is passed over."""

from __future__ import annotations

import pytest

from scheduler.domain.queues import QueueState
from scheduler.domain.workloads import Phase
from scheduler.engine.policy import Flag, PluginConfig
from tests.engine.builders import (
    ALLOCATE,
    BASIC,
    TREE,
    binds,
    cluster,
    job,
    node,
    one_node,
    phase,
    policy,
    queue,
    run,
    with_actions,
)


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
@pytest.mark.parametrize(
    ("request_", "starts"),
    [({"cpu": 1}, True), ({"cpu": 1, "memory": "1Gi"}, False)],
    ids=["cpu only", "cpu and memory"],
)
def test_e8_only_the_resources_that_a_pod_asks_for_are_looked_at(plugin, request_, starts):
    snapshot = cluster(
        nodes=[node("n1", cpu=2, memory="2Gi"), node("n2", cpu=2, memory="2Gi")],
        queues=[queue("q1", capability={"cpu": 2, "memory": "2Gi"})],
        jobs=[
            job(
                "runs",
                "q1",
                cpu=1,
                memory="2Gi",
                min_resources={"cpu": 1, "memory": "2Gi"},
                on="n1",
            ),
            job("new", "q1", phase=Phase.PENDING, min_resources=request_, **request_),
        ],
    )

    outcome = run(snapshot, policy("enqueue allocate", BASIC, ["predicates", plugin]))

    assert list(binds(outcome)) == (["new-0"] if starts else [])
    assert phase(outcome, "new") is (Phase.INQUEUE if starts else Phase.PENDING)


def test_e9_the_queue_of_the_highest_priority_is_served_first():
    snapshot = cluster(
        nodes=[node("n1", cpu=2)],
        queues=[
            queue(name, priority=priority) for name, priority in (("q1", 5), ("q2", 1), ("q3", 10))
        ],
        jobs=[job(f"j{name}", name, cpu=2) for name in ("q1", "q2", "q3")],
    )

    outcome = run(
        snapshot, policy("allocate", BASIC, [PluginConfig("proportion", {Flag.ALLOCATABLE: False})])
    )

    assert binds(outcome) == {"jq3-0": "n1"}


def test_e14_no_pod_takes_an_ancestor_past_its_capability():
    snapshot = cluster(
        nodes=[node("n1", cpu=8)],
        queues=[
            queue("root"),
            queue("q3", capability=4),
            *(queue(f"q3{n}", parent="q3", capability=4) for n in (1, 2, 3)),
        ],
        jobs=[
            job("j1", "q31", cpu=2, on="n1"),
            job("j2", "q32", cpu=2, on="n1"),
            job("j3", "q33", cpu=3),
        ],
    )

    outcome = run(snapshot, with_actions(TREE, "enqueue allocate"))

    assert binds(outcome) == {}


def test_e18_a_gang_that_does_not_fit_leaves_its_room_to_the_next_job():
    snapshot = cluster(
        nodes=[node("n1", cpu=10)],
        queues=[queue("default")],
        jobs=[job("a", tasks=3, cpu=2), job("b", tasks=3, cpu=2), job("c", tasks=4, min=1, cpu=2)],
    )

    outcome = run(snapshot, policy("allocate", BASIC, ["predicates"]))

    assert sorted(binds(outcome)) == ["a-0", "a-1", "a-2", "c-0", "c-1"]


@pytest.mark.parametrize("state", [QueueState.CLOSING, QueueState.OPEN])
def test_a_closing_queue_schedules_like_an_open_one(state):
    snapshot = cluster(
        nodes=[node("n1")], queues=[queue("default", state=state)], jobs=[job("a", cpu=1)]
    )

    assert binds(run(snapshot)) == {"a-0": "n1"}


@pytest.mark.parametrize(("fifo", "started"), [(True, []), (False, ["b-0"])])
def test_a_strict_line_waits_for_its_head(fifo, started):
    snapshot = one_node(
        job("a", cpu=3, created=1.0),
        job("b", cpu=1, created=2.0),
        queues=(queue("default", fifo=fifo),),
    )

    assert sorted(binds(run(snapshot, ALLOCATE))) == started


def test_without_enqueue_every_job_is_let_in_by_allocate():
    snapshot = one_node(job("a", cpu=1, phase=Phase.PENDING))

    assert binds(run(snapshot, ALLOCATE)) == {"a-0": "n1"}
    assert binds(run(snapshot, with_actions(ALLOCATE, "backfill"))) == {}
