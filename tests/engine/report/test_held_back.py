"""Reasons that hold a gang back whatever room there is: its queue, the policy, or a person."""

from __future__ import annotations

import pytest

from scheduler.domain.queues import QueueState
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.workloads import Constraint
from scheduler.engine.presets import DEFAULT_POLICY
from tests.engine.builders import (
    CAPACITY,
    TREE,
    cluster,
    job,
    node,
    queue,
    reason,
    run,
    with_actions,
)
from tests.engine.report.explaining import NO_RECLAIM, explained


def test_on_hold_repeats_the_words_of_whoever_holds_it():
    found = explained(
        nodes=[node("n1")],
        queues=[queue("default")],
        jobs=[job("new", cpu=1, on_hold="released on Monday")],
    )

    assert (found.code, found.message) == (ReasonCode.ON_HOLD, "On hold: released on Monday.")


def test_what_is_not_supported_is_named():
    asks = {"constraint": Constraint(unsupported=("host ports (hostPort)",))}

    found = explained(
        DEFAULT_POLICY,
        nodes=[node("n1")],
        queues=[queue("default")],
        jobs=[job("new", cpu=1, pod=asks)],
    )

    assert (found.code, found.figures) == (
        ReasonCode.NOT_SUPPORTED,
        {"fields": ["host ports (hostPort)"]},
    )
    assert found.message == "Its pods ask for what is not supported here: host ports (hostPort)."


def test_paused_scheduling_decides_nothing_and_says_so():
    outcome = run(
        cluster(
            nodes=[node("n1")],
            queues=[queue("default")],
            jobs=[job("new", cpu=1)],
            paused=True,
        )
    )

    assert outcome.binds == ()
    assert reason(outcome, "new").code is ReasonCode.SCHEDULING_PAUSED


def watched(*jobs):
    snapshot = cluster(nodes=[node("n1", cpu=8)], queues=[queue("default")], jobs=jobs)
    snapshot.is_watched = True
    return run(snapshot)


def test_a_gang_that_would_start_where_another_scheduler_decides():
    found = reason(watched(job("new", tasks=2, cpu=1)), "new")

    assert (found.code, found.figures) == (ReasonCode.ANOTHER_SCHEDULER_DECIDES, {"pods": 2})
    assert found.message == (
        "Fumarole would start it now. It only watches this cluster: "
        "another scheduler has yet to place its 2 pods."
    )


def test_other_reasons_are_the_same_where_another_scheduler_decides():
    outcome = watched(job("old", on="n1", cpu=8), job("new", cpu=1), job("big", cpu=9))

    assert reason(outcome, "new").code is not ReasonCode.ANOTHER_SCHEDULER_DECIDES
    assert reason(outcome, "big").code is ReasonCode.EXCEEDS_CLUSTER
    assert "default/old" not in outcome.reasons


def test_a_gang_that_others_would_have_to_leave_for_where_another_scheduler_decides():
    snapshot = cluster(
        nodes=[node("n1")],
        queues=[queue("q1", deserved=4), queue("q2", deserved=4)],
        jobs=[job("a", "q1", tasks=8, min=0, cpu=1, on="n1"), job("new", "q2", tasks=1, cpu=1)],
    )
    snapshot.is_watched = True
    outcome = run(snapshot, CAPACITY)

    found = reason(outcome, "new")

    assert len(outcome.evictions) == 1
    assert found.code is ReasonCode.ANOTHER_SCHEDULER_DECIDES
    assert found.message == (
        "Fumarole would start it as soon as 1 other pod had left. It only watches this cluster: "
        "it evicts nothing, and another scheduler decides."
    )


def test_room_that_others_would_get_first_is_told_as_such_where_another_scheduler_decides():
    outcome = watched(job("first", cpu=6), job("second", cpu=6))

    found = reason(outcome, "second")

    assert reason(outcome, "first").code is ReasonCode.ANOTHER_SCHEDULER_DECIDES
    assert found.message.endswith(" This counts what Fumarole would start before it.")


def test_a_queue_that_does_not_exist():
    assert (
        explained(
            nodes=[node("n1")],
            queues=[queue("default")],
            jobs=[job("new", "gone", cpu=1)],
        ).code
        is ReasonCode.QUEUE_NOT_FOUND
    )


def test_a_queue_with_children_runs_no_jobs():
    found = explained(
        nodes=[node("n1")],
        queues=[queue("a"), queue("a1", parent="a")],
        jobs=[job("new", "a", cpu=1)],
    )

    assert (found.code, found.figures) == (
        ReasonCode.QUEUE_NOT_LEAF,
        {"queue": "a", "children": ["a1"]},
    )


@pytest.mark.parametrize("state", [QueueState.CLOSED, QueueState.UNKNOWN])
def test_a_closed_queue(state):
    found = explained(
        nodes=[node("n1")],
        queues=[queue("default", state=state)],
        jobs=[job("new", cpu=1)],
    )

    assert (found.code, found.figures["state"]) == (ReasonCode.QUEUE_CLOSED, state.value)


def test_a_suspended_queue_names_the_queue_whose_wish_it_is():
    queues = [
        queue("a", state=QueueState.SUSPENDED, held_by="a"),
        queue("a1", parent="a", state=QueueState.SUSPENDED, held_by="a"),
    ]

    found = explained(nodes=[node("n1")], queues=queues, jobs=[job("new", "a1", cpu=1)])

    assert (found.code, found.figures) == (
        ReasonCode.QUEUE_SUSPENDED,
        {"queue": "a1", "suspendedBy": "a"},
    )
    assert found.message == "Queue a1 is held: a above it is suspended."


def test_a_suspended_queue_is_the_reason_of_volcanos_condition_too():
    outcome = run(
        cluster(
            nodes=[node("n1")],
            queues=[queue("default", state=QueueState.SUSPENDED)],
            jobs=[job("new", cpu=1)],
        )
    )

    assert [(condition.type, condition.reason) for condition in outcome.conditions] == [
        ("Unschedulable", "QueueSuspended")
    ]


def test_an_invalid_hierarchy_names_the_queue_and_the_rule():
    queues = [queue("a", deserved=2), queue("a1", parent="a", deserved=3)]

    found = explained(TREE, nodes=[node("n1")], queues=queues, jobs=[job("new", "a1", cpu=1)])

    assert (found.code, found.figures) == (
        ReasonCode.HIERARCHY_INVALID,
        {"problem": "queue a: its children deserve more than its own cpu"},
    )


def test_not_permitted_repeats_the_words():
    found = explained(
        nodes=[node("n1")],
        queues=[queue("default")],
        jobs=[job("new", cpu=1, not_permitted="ana may not use default")],
    )

    assert (found.code, found.message) == (
        ReasonCode.NOT_PERMITTED,
        "Not permitted: ana may not use default.",
    )


def test_a_gang_with_too_few_pods():
    found = explained(
        nodes=[node("n1")],
        queues=[queue("default")],
        jobs=[job("new", tasks=2, min=3, cpu=1)],
    )

    assert (found.code, found.figures["pods"], found.figures["minMember"]) == (
        ReasonCode.NOT_ENOUGH_TASKS,
        2,
        3,
    )


def test_a_role_with_too_few_pods_is_named_in_the_condition():
    work = job("new", tasks=2, min=2, cpu=1, role_minimums={"worker": 2}, pod={"role": "master"})

    outcome = run(cluster(nodes=[node("n1")], queues=[queue("default")], jobs=[work]))

    assert reason(outcome, "new").code is ReasonCode.NOT_ENOUGH_TASKS
    assert outcome.conditions[0].reason == "NotEnoughPodsOfTask"


def test_behind_others_in_a_strict_line():
    jobs = [
        job("first", cpu=3, created=1.0),
        job("new", cpu=1, created=2.0),
        job("last", cpu=1, created=3.0),
    ]
    given = {
        "nodes": [node("n1", cpu=2), node("n2", cpu=2)],
        "queues": [queue("default", fifo=True)],
        "jobs": jobs,
    }

    found = explained(NO_RECLAIM, **given)
    assert (found.code, found.figures) == (
        ReasonCode.BEHIND_OTHERS,
        {"position": 2, "queue": "default"},
    )
    assert explained(NO_RECLAIM, "last", **given).figures["position"] == 3


@pytest.mark.parametrize(
    "actions",
    [("backfill",), ("enqueue",), ("enqueue", "reclaim", "backfill")],
    ids=" ".join,
)
def test_a_job_that_no_action_of_the_policy_starts(actions: tuple[str, ...]):
    found = explained(
        with_actions(NO_RECLAIM, " ".join(actions)),
        nodes=[node("n1")],
        queues=[queue("default")],
        jobs=[job("new", cpu=1)],
    )

    assert (found.code, found.figures) == (ReasonCode.LEFT_OUT_BY_POLICY, {"missing": "allocate"})
    assert found.message == (
        "No session starts it: the policy has no allocate action (its actions are "
        f"{', '.join(actions)})."
    )
