"""Promises of room between sessions: gangs that have one are let in, and a promise that cannot be
kept holds nobody up.
"""

from __future__ import annotations

import pytest

from scheduler.domain.workloads import Phase
from scheduler.engine.presets import FUMAROLE, VOLCANO
from tests.engine.builders import binds, cluster, job, node, phase, queue, run, waiting

PROMISED = {"reserved_node": "n1", "reserved_until": 30}
BOTH = pytest.mark.parametrize("policy", [VOLCANO, FUMAROLE], ids=["volcano", "fumarole"])


def scene(*jobs, nodes=(("n1", 4),), queues=(), **snapshot):
    return cluster(
        nodes=[node(name, cpu=cpu) for name, cpu in nodes],
        queues=[queue("root"), queue("default"), *queues],
        jobs=jobs,
        session=5,
        **snapshot,
    )


@BOTH
def test_a_gang_that_was_promised_room_is_let_in(policy):
    """It lost its phase Running with its pod; its queue is full for newcomers of its size."""
    kept = job(
        "kept",
        "q1",
        cpu=4,
        pod=PROMISED,
        phase=Phase.PENDING,
        min_resources={"cpu": 4},
        created=9.0,
    )
    first = job("first", "q1", cpu=3, phase=Phase.PENDING, min_resources={"cpu": 3}, created=1.0)
    snapshot = scene(kept, first, queues=[queue("q1", capability=4)])

    outcome = run(snapshot, policy)

    assert binds(outcome) == {"kept-0": "n1"}
    assert phase(outcome, "kept") is Phase.INQUEUE


@BOTH
def test_it_is_let_in_though_the_line_before_it_stands_still(policy):
    kept = job("kept", "q1", cpu=4, pod=PROMISED, phase=Phase.PENDING, created=9.0)
    huge = job("huge", "q1", cpu=9, phase=Phase.PENDING, min_resources={"cpu": 9}, created=1.0)

    outcome = run(scene(kept, huge, queues=[queue("q1", fifo=True)]), policy)

    assert binds(outcome) == {"kept-0": "n1"}


@BOTH
def test_a_promise_with_which_the_gang_cannot_start_is_dropped_and_its_room_used(policy):
    """The node for its other pod has gone."""
    kept = job("kept", tasks=2, cpu=4, pod=PROMISED)
    snapshot = scene(kept, job("other", cpu=4))

    outcome = run(snapshot, policy)

    assert binds(outcome) == {"other-0": "n1"}
    assert waiting(outcome) == {}


@BOTH
@pytest.mark.parametrize(
    "held_back", [{"on_hold": "by alice"}, {"not_permitted": "no rights"}, {"min": 3}]
)
def test_a_promise_of_a_gang_that_may_not_start_is_dropped_and_its_room_used(policy, held_back):
    kept = job("kept", cpu=4, pod=PROMISED, **held_back)
    snapshot = scene(kept, job("other", cpu=4))

    outcome = run(snapshot, policy)

    assert binds(outcome) == {"other-0": "n1"}
    assert waiting(outcome) == {}
