"""Preempt with `wholeGangs`: inside a queue, higher gangs take the room of lower ones, whole."""

from __future__ import annotations

import pytest

from scheduler.engine import open_session
from scheduler.engine.actions import ACTIONS as SESSION_ACTIONS
from scheduler.engine.presets import FUMAROLE
from tests.engine.builders import configured, evicted, job, queue, run, waiting, with_actions
from tests.engine.scenes import HALVES, aged, gpus, scene

ACTIONS = with_actions(FUMAROLE, "preempt")
PREEMPT = configured(ACTIONS, preempt={"wholeGangs": True})
VOLCANO = configured(ACTIONS)
ONE = (gpus("q1", 8),)


def names(outcome):
    """The gangs that lost pods."""
    return {pod.partition("-")[0] for pod in evicted(outcome)}


def test_a_gang_of_higher_priority_takes_the_room_of_a_whole_gang():
    """Without `wholeGangs` nobody goes: no pod is beyond its gang's minimum."""
    snapshot = scene(
        job("low", "q1", tasks=4, gpu=2, on="n1"),
        job("high", "q1", tasks=2, gpu=2, priority=9),
        queues=ONE,
    )

    outcome = run(snapshot, PREEMPT)

    assert evicted(outcome) == ["low-3", "low-2", "low-1", "low-0"]
    assert waiting(outcome) == {"high-0": "n1", "high-1": "n1"}
    assert evicted(run(snapshot, VOLCANO)) == []


def test_members_beyond_a_minimum_go_first_and_no_more_than_needed():
    snapshot = scene(
        job("low", "q1", tasks=8, min=2, gpu=1, on="n1"),
        job("high", "q1", tasks=3, gpu=1, priority=9),
        queues=ONE,
    )

    assert evicted(run(snapshot, PREEMPT)) == ["low-7", "low-6", "low-5"]


def test_nobody_goes_unless_the_whole_gang_starts():
    """Both lower gangs together hold six GPUs; the higher one asks for seven."""
    snapshot = scene(
        job("low", "q1", tasks=6, min=1, gpu=1, on="n1"),
        job("kept", "q1", tasks=2, gpu=1, on="n1", priority=9),
        job("high", "q1", tasks=7, gpu=1, priority=9),
        queues=ONE,
    )

    assert evicted(run(snapshot, PREEMPT)) == []


@pytest.mark.parametrize(("priority", "victims"), [(4, {"low"}), (5, {"low"}), (1, set())])
def test_only_gangs_of_lower_priority_go(priority, victims):
    snapshot = scene(
        aged(job("low", "q1", tasks=4, gpu=1, on="n1", priority=1), 5_000),
        aged(job("equal", "q1", tasks=4, gpu=1, on="n1", priority=5), 10),
        job("high", "q1", tasks=4, gpu=1, priority=priority),
        queues=ONE,
    )

    assert names(run(snapshot, PREEMPT)) == victims


def test_gangs_of_other_queues_are_left_alone():
    snapshot = scene(
        job("low", "q1", tasks=8, min=1, gpu=1, on="n1"),
        job("high", "q2", tasks=2, gpu=1, priority=9),
        queues=HALVES,
    )

    assert evicted(run(snapshot, PREEMPT)) == []


@pytest.mark.parametrize(
    ("ran", "evictions", "victims"), [(50, 0, 0), (150, 0, 8), (350, 1, 0), (450, 1, 8)]
)
def test_gangs_that_have_just_started_are_left_in_peace_and_longer_each_time(
    ran, evictions, victims
):
    policy = configured(ACTIONS, preempt={"wholeGangs": True, "minRunSeconds": 100})
    snapshot = scene(
        aged(job("low", "q1", tasks=8, gpu=1, on="n1"), ran, evictions=evictions),
        job("high", "q1", tasks=8, gpu=1, priority=9),
        queues=ONE,
    )

    assert len(evicted(run(snapshot, policy))) == victims


def test_room_in_a_full_queue_is_made_though_nodes_are_empty():
    """The queue may have four GPUs, and has them: two must go, on whatever node."""
    snapshot = scene(
        job("low", "q1", tasks=4, min=1, gpu=1, on="n1"),
        job("high", "q1", tasks=2, gpu=1, priority=9),
        queues=(queue("q1", capability={"gpu": 4}),),
    )

    assert evicted(run(snapshot, PREEMPT)) == ["low-3", "low-2"]


@pytest.mark.parametrize(("evictions", "victims"), [(0, {"low"}), (1, set())])
def test_a_gang_that_was_evicted_does_not_make_its_queue_fall_below_its_due(evictions, victims):
    """All eight GPUs of the queue would go for one: once, but not again and again."""
    snapshot = scene(
        job("low", "q1", tasks=8, gpu=1, on="n1"),
        job("high", "q1", gpu=1, priority=9, evictions=evictions),
        queues=ONE,
    )

    assert names(run(snapshot, PREEMPT)) == victims


def test_a_gang_with_the_policy_never_waits_for_its_turn():
    snapshot = scene(
        job("low", "q1", tasks=8, min=1, gpu=1, on="n1"),
        job("high", "q1", gpu=1, priority=9, pod={"preempts": False}),
        queues=ONE,
    )

    assert evicted(run(snapshot, PREEMPT)) == []


def test_pods_that_may_not_be_preempted_stay():
    snapshot = scene(
        job("low", "q1", tasks=8, min=1, gpu=1, on="n1", pod={"preemptable": False}),
        job("high", "q1", gpu=1, priority=9),
        queues=ONE,
    )

    assert evicted(run(snapshot, PREEMPT)) == []


@pytest.mark.parametrize(
    ("tasks", "expected", "victims"),
    [(8, 1_200.0, {"low"}), (8, 500.0, set()), (1, 1_200.0, set()), (1, None, {"low"})],
)
def test_nobody_goes_if_that_loses_more_work_than_the_gang_gains(tasks, expected, victims):
    """The eight GPUs of `low` have worked for 400 seconds, and an eviction costs 60 more."""
    snapshot = scene(
        aged(job("low", "q1", tasks=8, gpu=1, on="n1"), 400, expected_seconds=expected),
        job("high", "q1", tasks=tasks, gpu=1, priority=9),
        queues=ONE,
    )

    assert names(run(snapshot, PREEMPT)) == victims


def test_members_beyond_a_minimum_cost_next_to_nothing():
    snapshot = scene(
        aged(job("low", "q1", tasks=8, min=4, gpu=1, on="n1"), 400, expected_seconds=500.0),
        job("high", "q1", gpu=1, priority=9),
        queues=ONE,
    )

    assert evicted(run(snapshot, PREEMPT)) == ["low-7"]


@pytest.mark.parametrize(("ran", "known"), [(299.0, set()), (301.0, {"low", "high"})])
def test_nobody_is_looked_at_where_all_lower_gangs_have_just_started(ran, known):
    snapshot = scene(
        aged(job("low", "q1", tasks=4, gpu=2, on="n1"), ran),
        job("high", "q1", tasks=2, gpu=2, priority=9),
        queues=ONE,
    )
    policy = configured(PREEMPT, preempt={"wholeGangs": True, "minRunSeconds": 300})
    session = open_session(snapshot, policy, reporting=False)

    SESSION_ACTIONS["preempt"](session)

    assert {gang.key for gang in session.known_gangs()} == {f"default/{name}" for name in known}
