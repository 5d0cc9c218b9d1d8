"""Backfill: room that no share is large enough for."""

from __future__ import annotations

import pytest

from tests.engine.builders import (
    BASIC,
    TWO_QUEUES,
    binds,
    cluster,
    configured,
    cores,
    job,
    node,
    one_node,
    policy,
    queue,
    run,
)


def two_core_tasks(**queues):
    return cluster(
        nodes=[node("n1", cpu=2), node("n2", cpu=2)],
        queues=[queue(name, priority=priority) for name, priority in queues.items()],
        jobs=[job(f"j{name}", name, cpu=2) for name in queues],
    )


def test_e9_idle_room_that_no_share_is_large_enough_for_is_backfilled_and_marked_as_borrowed():
    outcome = run(
        two_core_tasks(q1=0, q2=0, q3=0),
        policy("allocate backfill", BASIC, ["predicates", "proportion"]),
    )

    assert cores(outcome, at_open=True) == {
        "q1": 1.334,
        "q2": 1.333,
        "q3": 1.333,
    }  # the thousandth left over goes to the first
    assert binds(outcome) == {"jq1-0": "n1", "jq2-0": "n2"}
    assert all(bind.borrowed for bind in outcome.binds)


def test_e9_without_backfill_the_cluster_stays_idle():
    outcome = run(
        two_core_tasks(q1=0, q2=0, q3=0), policy("allocate", BASIC, ["predicates", "proportion"])
    )

    assert binds(outcome) == {}


@pytest.mark.parametrize(("beyond", "started"), [(True, 1), (False, 0)])
def test_backfill_goes_beyond_deserved_unless_the_policy_says_otherwise(beyond, started):
    snapshot = one_node(job("a", "q1", cpu=2), job("b", "q2", cpu=2), queues=TWO_QUEUES)

    outcome = run(
        snapshot,
        configured(
            policy("allocate backfill", BASIC, ["proportion"]), backfill={"beyondDeserved": beyond}
        ),
    )

    assert len(outcome.binds) == started
