"""Why a gang that waits does not reclaim: one test for each sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.domain.no_reclaim import ReclaimCode, reclaim_words
from scheduler.domain.queues import QueueState
from scheduler.engine import ask_about_reclaim
from scheduler.engine.presets import FUMAROLE
from tests.engine.builders import CAPACITY, cluster, configured, job, node, queue, with_actions
from tests.engine.scenes import HALVES, aged, gpus, scene

RECLAIM = configured(with_actions(FUMAROLE, "allocate reclaim"), reclaim={"wholeGangs": True})


def answer(snapshot, policy=RECLAIM, name="new"):
    return ask_about_reclaim(snapshot, policy, f"default/{name}")


def words(snapshot, policy=RECLAIM, hidden=()):
    found = answer(snapshot, policy)
    return reclaim_words(found, lambda name: "" if name in hidden else name)


def borrowing(**changes):
    """q1 has all 8 GPUs, of which q2 deserves 4."""
    return job("a", "q1", tasks=8, gpu=1, on="n1", **{"min": 4, **changes})


NEW = job("new", "q2", tasks=4, gpu=1)


def test_a_gang_that_may_reclaim_says_whom_it_would_cost():
    assert words(scene(borrowing(), NEW, queues=HALVES)) == (
        "It may reclaim: the next session can evict 4 pods of other queues for it."
    )


def test_its_queue_has_its_due_and_others_borrow_from_somebody_else():
    snapshot = scene(
        job("own", "q2", tasks=4, gpu=1, on="n1"),
        borrowing(),
        NEW,
        nodes=[("n1", 16, 12)],
        queues=(gpus("q1", 4), gpus("q2", 4), gpus("q3", 4)),
    )

    assert words(snapshot) == (
        "q2 has 4 of the 4 nvidia.com/gpu that it deserves, and this gang needs 4 more; "
        "4 of q1's are borrowed, but not from q2's share."
    )
    assert words(snapshot, hidden={"q1"}) == (
        "q2 has 4 of the 4 nvidia.com/gpu that it deserves, and this gang needs 4 more."
    )


def test_its_queue_deserves_nothing_of_it():
    snapshot = scene(borrowing(), NEW, queues=(gpus("q1", 8), gpus("q2", 0)))

    assert words(snapshot) == "q2 deserves no nvidia.com/gpu."


def test_a_sibling_that_keeps_what_it_borrowed_is_named_before_queues_out_of_reach():
    """With the gang in it, red would have more than its due, so q1 is out of reach."""
    queues = (
        gpus("red", 4),
        gpus("q2", 4, parent="red"),
        gpus("q3", 0, parent="red", reclaimable=False),
        gpus("q1", 4),
    )
    snapshot = scene(
        job("other", "q3", tasks=4, gpu=1, on="n1"),
        borrowing(),
        NEW,
        nodes=[("n1", 16, 12)],
        queues=queues,
    )

    assert words(snapshot) == (
        "q3 has 4 nvidia.com/gpu more than it deserves, but it is not reclaimable."
    )


def test_nobody_has_too_much():
    snapshot = scene(
        job("a", "q1", tasks=8, gpu=1, on="n1"),
        NEW,
        queues=(gpus("q1", 8), gpus("q2", 4)),
    )

    assert words(snapshot) == "No other queue has more nvidia.com/gpu than it deserves."


def test_the_queue_that_could_lose_is_not_reclaimable():
    snapshot = scene(borrowing(), NEW, queues=(gpus("q1", 4, reclaimable=False), gpus("q2", 4)))

    assert words(snapshot) == (
        "q1 has 4 nvidia.com/gpu more than it deserves, but it is not reclaimable."
    )
    assert words(snapshot, hidden={"q1"}) == (
        "Another queue has more nvidia.com/gpu than it deserves, but it is not reclaimable."
    )


def test_the_queue_that_could_lose_is_suspended():
    held = gpus("q1", 4, held_by="q1", state=QueueState.SUSPENDED)

    assert words(scene(borrowing(), NEW, queues=(held, gpus("q2", 4)))) == (
        "q1 has 4 nvidia.com/gpu more than it deserves, but it is suspended, "
        "and the policy protects suspended queues."
    )


def test_the_victims_are_protected():
    policy = configured(RECLAIM, reclaim={"wholeGangs": True, "minRunSeconds": 100})

    assert words(scene(aged(borrowing(), 60), NEW, queues=HALVES), policy) == (
        "The pods that would have to be evicted are protected for another 40 s: "
        "by then they have run for their minimum running time, or end."
    )


def test_the_victims_are_protected_by_their_queue():
    queues = (gpus("q1", 4, min_run_seconds=300), gpus("q2", 4))

    found = answer(scene(aged(borrowing(), 60), NEW, queues=queues))

    assert found.code is ReclaimCode.PROTECTED
    assert found.figures["seconds"] == pytest.approx(240)


def test_room_is_expected_soon():
    policy = configured(
        with_actions(FUMAROLE, "allocate reclaim"),
        allocate={"setAside": 8},
        reclaim={"wholeGangs": True, "patienceSeconds": 120},
    )
    running = aged(borrowing(), 250, expected_seconds=300.0)

    assert words(scene(running, NEW, queues=HALVES), policy) == (
        "It is expected to start by itself in about 50 s, when other pods end; "
        "until then nothing is evicted for it."
    )


def test_pods_that_are_not_preemptable_stay():
    snapshot = scene(borrowing(pod={"preemptable": False}), NEW, queues=HALVES)

    assert words(snapshot) == (
        "No pod of the queues that have too much nvidia.com/gpu may be evicted: "
        "they are critical, or not preemptable."
    )


def test_a_gang_whose_queue_would_fall_below_its_due_is_too_large():
    snapshot = scene(borrowing(min=8), NEW, queues=HALVES)

    assert words(snapshot) == (
        "Each gang that could be evicted is so large that its queue would fall below the "
        "nvidia.com/gpu that it deserves."
    )


def test_even_all_victims_together_would_not_do():
    """There is room to be had for one of its two pods only."""
    snapshot = scene(
        job("a", "q1", tasks=8, min=1, gpu=1, on="n1"),
        job("new", "q2", tasks=2, gpu=4),
        nodes=[("n1", 8, 8), ("n2", 8, 2)],
        queues=(gpus("q1", 3), gpus("q2", 8)),
    )

    assert words(snapshot) == (
        "Even without all of the 7 possible victims there would not be room for the whole gang."
    )


def test_no_set_of_victims_leaves_their_queue_its_due():
    """Two gangs of two would have to go, and their queue has only three GPUs too many."""
    snapshot = scene(
        *(job(f"a{number}", "q1", gpu=2, on="n1") for number in range(4)),
        job("new", "q2", gpu=3),
        queues=(gpus("q1", 5), gpus("q2", 3)),
    )

    assert words(snapshot) == (
        "No set of the 4 possible victims makes room for the whole gang and leaves every queue "
        "what it deserves."
    )


def test_a_policy_without_shares_has_nothing_to_take_back():
    tiers = tuple(
        tuple(plugin for plugin in tier if plugin.name != "capacity") for tier in RECLAIM.tiers
    )

    assert words(scene(borrowing(), NEW, queues=HALVES), replace(RECLAIM, tiers=tiers)) == (
        "The policy gives queues no shares: there is nothing to take back."
    )


def test_room_that_is_there_needs_no_eviction():
    """Without allocate, nobody has tried yet."""
    snapshot = scene(
        job("a", "q1", tasks=8, min=4, gpu=1, on="n1"),
        NEW,
        nodes=[("n1", 8, 8), ("n2", 8, 4)],
        queues=HALVES,
    )

    assert answer(snapshot, with_actions(RECLAIM, "reclaim")).code is ReclaimCode.HAS_ROOM


def test_a_policy_without_reclaim_says_so():
    snapshot = scene(borrowing(), NEW, queues=HALVES)

    assert words(snapshot, with_actions(RECLAIM, "allocate")) == (
        "The policy has no reclaim action: nothing is evicted for another queue."
    )


def test_reclaim_as_volcano_does_it_tells_only_of_its_own_queue():
    queues = [queue("q1", deserved=4), queue("q2", deserved=4)]
    halves = [job("a", "q1", tasks=4, cpu=1, on="n1"), job("own", "q2", tasks=4, cpu=1, on="n1")]
    kept = [job("a", "q1", tasks=8, cpu=1, on="n1", pod={"preemptable": False})]
    new = job("new", "q2", tasks=2, cpu=1)

    full = cluster(nodes=[node("n1")], queues=queues, jobs=[*halves, new])
    short = cluster(nodes=[node("n1")], queues=queues, jobs=[*kept, new])

    assert words(full, CAPACITY) == (
        "q2 has 4 of the 4 cpu that it deserves, and this gang needs 2 more."
    )
    assert answer(short, CAPACITY).code is ReclaimCode.POD_BY_POD


def test_a_gang_that_starts_or_does_not_exist_has_no_answer():
    snapshot = scene(NEW, queues=HALVES)

    assert answer(snapshot) is None
    assert answer(snapshot, name="nobody") is None


def test_the_snapshot_stays_as_it_is():
    snapshot = scene(borrowing(), NEW, queues=HALVES)
    before = snapshot.pods.status.copy()

    answer(snapshot)

    assert (snapshot.pods.status == before).all()
