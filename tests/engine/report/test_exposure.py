"""How much reclaim could take of a queue, and why not more."""

from __future__ import annotations

from scheduler.domain.exposure import Kept, Reach
from scheduler.engine import ask_about_exposure
from scheduler.engine.presets import FUMAROLE
from tests.engine.builders import configured, job, with_actions
from tests.engine.scenes import HALVES, aged, gpus, scene

GPU = "nvidia.com/gpu"
RECLAIM = configured(with_actions(FUMAROLE, "allocate reclaim"), reclaim={"wholeGangs": True})
POD_BY_POD = configured(with_actions(FUMAROLE, "allocate reclaim"), reclaim={"wholeGangs": False})


def reach(snapshot, policy=RECLAIM, queue="q1"):
    return ask_about_exposure(snapshot, policy)[queue, GPU]


def borrowing(**changes):
    """q1 has all 8 GPUs, of which q2 deserves 4."""
    return job("a", "q1", tasks=8, gpu=1, on="n1", **{"min": 4, **changes})


def test_members_beyond_the_minimum_can_be_taken_back():
    found = reach(scene(borrowing(), queues=HALVES))

    assert (found.now, found.later) == (4_000, 4_000)


def test_a_gang_that_is_larger_than_what_is_borrowed_stays():
    found = reach(scene(borrowing(min=8), queues=HALVES))

    assert found == Reach(0, 0, 0.0, Kept.NOT_EVICTABLE)


def test_pod_by_pod_it_can_be_broken():
    assert reach(scene(borrowing(min=8), queues=HALVES), POD_BY_POD).now == 4_000


def test_pods_that_are_not_preemptable_stay():
    found = reach(scene(borrowing(pod={"preemptable": False}), queues=HALVES))

    assert (found.now, found.later, found.why) == (0, 0, Kept.NOT_EVICTABLE)


def test_a_queue_that_is_not_reclaimable_keeps_it():
    queues = (gpus("q1", 4, reclaimable=False), gpus("q2", 4))

    for policy in (RECLAIM, POD_BY_POD):
        found = reach(scene(borrowing(), queues=queues), policy)
        assert (found.now, found.why) == (0, Kept.NOT_RECLAIMABLE)


def test_without_a_reclaim_action_everything_is_kept():
    found = reach(scene(borrowing(), queues=HALVES), with_actions(FUMAROLE, "allocate"))

    assert found == Reach(why=Kept.NO_ACTION)


def test_pods_within_their_minimum_running_time_can_be_taken_later():
    policy = configured(RECLAIM, reclaim={"wholeGangs": True, "minRunSeconds": 300})
    snapshot = scene(aged(borrowing(), 100), queues=HALVES)

    found = reach(snapshot, policy)

    assert (found.now, found.later, found.seconds) == (0, 4_000, 200)


def test_a_queue_within_its_due_has_no_entry():
    assert ("q2", GPU) not in ask_about_exposure(scene(borrowing(), queues=HALVES), RECLAIM)
