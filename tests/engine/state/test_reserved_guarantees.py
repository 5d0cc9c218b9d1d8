"""Room that a queue is guaranteed and does not use stays free for it, or can be had back."""

from __future__ import annotations

import pytest

from scheduler.engine.policy import Flag, PluginConfig
from scheduler.engine.presets import FUMAROLE
from tests.engine.builders import BASIC, binds, evicted, job, policy, queue, run, waiting
from tests.engine.scenes import aged, gpus, scene

GUARANTEED = queue("q2", deserved={"gpu": 4}, guarantee={"gpu": 4})


def allocating(*, reserve):
    arguments = {"reserveGuarantees": reserve}
    return policy(
        "allocate",
        BASIC,
        ["predicates", PluginConfig("capacity", {Flag.HIERARCHY: True}, arguments)],
    )


OTHER = gpus("q0", 3)


def other():
    """Three of the eight GPUs are in use by a queue that has its due."""
    return job("other", "q0", tasks=3, gpu=1, on="n1")


@pytest.mark.parametrize(("reserve", "started"), [(True, []), (False, ["new-0"])])
def test_a_gang_within_its_due_leaves_free_what_another_queue_is_guaranteed(reserve, started):
    """Once it ran nobody could make it leave: no queue is above its due."""
    snapshot = scene(other(), job("new", "q1", gpu=2), queues=(OTHER, gpus("q1", 2), GUARANTEED))

    assert sorted(binds(run(snapshot, allocating(reserve=reserve)))) == started


@pytest.mark.parametrize(("reclaimable", "started"), [(True, ["new-0"]), (False, [])])
def test_a_gang_that_borrows_may_use_it_if_it_can_be_made_to_leave(reclaimable, started):
    borrower = gpus("q1", 0, reclaimable=reclaimable)
    snapshot = scene(other(), job("new", "q1", gpu=2), queues=(OTHER, borrower, GUARANTEED))

    assert sorted(binds(run(snapshot, allocating(reserve=True)))) == started


def test_a_queue_uses_its_own_guarantee_and_what_nobody_is_guaranteed():
    snapshot = scene(
        job("own", "q2", gpu=4),
        job("new", "q1", gpu=4),
        queues=(gpus("q1", 8), GUARANTEED),
    )

    assert sorted(binds(run(snapshot, allocating(reserve=True)))) == ["new-0", "own-0"]


def test_borrowed_room_that_can_be_had_back_counts_as_free():
    """Two of the eight are free; four more can be had back for the guarantee from `lent`."""
    snapshot = scene(
        job("lent", "q3", tasks=2, gpu=2, on="n1"),
        job("a", "q1", tasks=2, gpu=1, on="n1"),
        job("new", "q1", gpu=2),
        queues=(gpus("q1", 4), GUARANTEED, gpus("q3", 0)),
    )

    assert sorted(binds(run(snapshot, allocating(reserve=True)))) == ["new-0"]


@pytest.mark.parametrize(("minimum", "started"), [(1, ["new-0"]), (4, [])])
def test_members_beyond_the_minimum_can_be_had_back_one_by_one(minimum, started):
    """Four of the eight are free; three more can be had back if `lent` need not go whole."""
    snapshot = scene(
        job("lent", "q3", tasks=4, min=minimum, gpu=1, on="n1"),
        job("new", "q1", gpu=2),
        queues=(gpus("q1", 4), GUARANTEED, gpus("q3", 1)),
    )

    assert sorted(binds(run(snapshot, allocating(reserve=True)))) == started


def test_a_guarantee_takes_from_a_queue_above_its_due_down_to_its_guarantee():
    """q1 has six of its five. Its gang of three goes: for a due alone it would be let be."""
    snapshot = scene(
        aged(job("a", "q1", tasks=3, gpu=1, on="n1"), 10),
        aged(job("b", "q1", tasks=3, gpu=1, on="n1"), 20),
        aged(job("c", "q2", tasks=2, gpu=1, on="n1"), 20),
        job("new", "q2", tasks=2, gpu=1),
        queues=(gpus("q1", 5), GUARANTEED),
    )
    due_only = scene(
        aged(job("a", "q1", tasks=3, gpu=1, on="n1"), 10_000),
        aged(job("b", "q1", tasks=3, gpu=1, on="n1"), 10_000),
        aged(job("c", "q2", tasks=2, gpu=1, on="n1"), 10_000),
        job("new", "q2", tasks=2, gpu=1),
        queues=(gpus("q1", 5), gpus("q2", 4)),
    )

    outcome = run(snapshot, FUMAROLE)

    assert sorted(evicted(outcome)) == ["a-0", "a-1", "a-2"]
    assert sorted(waiting(outcome)) == ["new-0", "new-1"]
    assert evicted(run(due_only, FUMAROLE)) == []
