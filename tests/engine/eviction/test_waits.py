"""A gang waits before pods of other queues are evicted for it, and longer the more they lose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.domain.no_reclaim import reclaim_words
from scheduler.engine import ask_about_reclaim
from tests.engine.builders import Workload, configured, evicted, job, queue, run
from tests.engine.eviction.test_whole_gangs import RECLAIM
from tests.engine.scenes import HALVES, NOW, aged, came, gpus, scene


def policy(**settings):
    return configured(RECLAIM, reclaim={"wholeGangs": True, **settings})


def crowded(*takers, ran=1_000, queues=HALVES):
    """q1 has all of the GPUs, and half of them may be evicted."""
    return scene(
        aged(job("a", "q1", tasks=4, gpu=1, on="n1"), ran),
        job("kept", "q1", tasks=4, gpu=1, on="n1", pod={"preemptable": False}),
        *takers,
        queues=queues,
    )


def taker(waited, name="new", **group):
    return came(job(name, "q2", tasks=4, gpu=1), waited, **group)


def victims(snapshot, **settings):
    return len(evicted(run(snapshot, policy(**settings))))


@pytest.mark.parametrize(("waited", "count"), [(0, 0), (59, 0), (60, 4)])
def test_nothing_is_evicted_for_a_gang_that_has_just_come(waited, count):
    assert victims(crowded(taker(waited)), waitSeconds=60) == count


@pytest.mark.parametrize(("least", "count"), [(0, 4), (1, 0)])
def test_a_gang_whose_clock_is_ahead_has_come_just_now(least, count):
    """It has waited for no time, not for less: where no wait is asked for, it takes."""
    assert victims(crowded(taker(-3_600)), waitSeconds=least) == count


def test_of_two_gangs_whose_clocks_are_ahead_the_second_one_takes_too():
    snapshot = crowded(
        came(job("large", "q2", tasks=5, gpu=1), -10, priority=9), taker(-3_600, "small")
    )

    outcome = run(snapshot, policy())

    assert {eviction.beneficiary for eviction in outcome.evictions} == {"default/small"}


@pytest.mark.parametrize(("ran", "count"), [(400, 4), (401, 0), (4_000, 0)])
def test_the_longer_pods_have_run_the_longer_a_gang_waits(ran, count):
    assert victims(crowded(taker(100), ran=ran), waitPercent=25) == count


def test_a_guarantee_does_not_wait():
    due = queue("q2", deserved={"gpu": 4}, guarantee={"gpu": 4})
    snapshot = crowded(taker(0), queues=(gpus("q1", 4), due))

    assert victims(snapshot, waitSeconds=60, waitPercent=25) == 4


def test_a_gang_that_was_evicted_waits_anew():
    """Its podgroup is old, its pods are new."""
    back = taker(5_000)
    back = Workload(back.group, tuple(replace(pod, created=NOW - 10) for pod in back.pods))

    assert victims(crowded(back), waitSeconds=60) == 0


def test_a_gang_that_has_waited_longer_is_not_settled_by_one_that_came_before_it_in_line():
    snapshot = crowded(taker(10, "first", priority=9), taker(100, "second"))

    outcome = run(snapshot, policy(waitSeconds=60))

    assert {eviction.beneficiary for eviction in outcome.evictions} == {"default/second"}


@pytest.mark.parametrize(("runs", "count"), [(50.0, 0), (70.0, 4), (None, 4)])
def test_a_gang_that_does_less_work_than_is_lost_takes_nothing(runs, count):
    """The pods have run for 1,000 s, and to start again costs 60. Its wait counts as 1,000 s."""
    snapshot = crowded(taker(250, expected_seconds=runs))

    assert victims(snapshot, shortRunWaitSeconds=3_600) == count
    assert victims(snapshot) == 4


def test_a_short_gang_gets_room_when_it_has_waited_long_enough():
    snapshot = crowded(taker(300, expected_seconds=10.0))

    assert victims(snapshot, shortRunWaitSeconds=3_600) == 4


@pytest.mark.parametrize(("waited", "count"), [(3_599, 0), (3_600, 4)])
def test_a_short_gang_does_not_wait_for_ever_for_room_from_long_ones(waited, count):
    """The pods have run for ten days."""
    snapshot = crowded(taker(waited, expected_seconds=10.0), ran=864_000)

    assert victims(snapshot, shortRunWaitSeconds=3_600) == count


def test_a_short_gang_within_its_guarantee_does_not_wait():
    due = queue("q2", deserved={"gpu": 4}, guarantee={"gpu": 4})
    snapshot = crowded(taker(0, expected_seconds=10.0), queues=(gpus("q1", 4), due))

    assert victims(snapshot, shortRunWaitSeconds=3_600) == 4


def test_of_two_alike_gangs_the_one_that_runs_longer_may_take():
    snapshot = crowded(
        taker(250, "short", expected_seconds=10.0), taker(250, "tall", expected_seconds=500.0)
    )

    outcome = run(snapshot, policy(shortRunWaitSeconds=3_600))

    assert {eviction.beneficiary for eviction in outcome.evictions} == {"default/tall"}


def words(snapshot, **settings):
    return reclaim_words(ask_about_reclaim(snapshot, policy(**settings), "default/new"), str)


def test_a_gang_is_told_how_long_it_waits():
    assert words(crowded(taker(20)), waitSeconds=60) == (
        "Nothing is evicted for it before it has waited for another 40 s: "
        "other pods may end by themselves."
    )
    assert words(crowded(taker(100)), waitPercent=25) == (
        "Nothing is evicted for it before it has waited for another 150 s: "
        "other pods may end by themselves."
    )


def test_a_gang_is_told_that_it_is_too_short():
    assert words(crowded(taker(250, expected_seconds=10.0)), shortRunWaitSeconds=3_600) == (
        "To evict 4 pods for it would lose too much work for what it gains: "
        "it would do less work than they have done. It waits for another 3350 s at most."
    )
