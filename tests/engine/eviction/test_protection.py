"""The minimum running time of a pod: the policy's, or that of its queue or of one above it."""

from __future__ import annotations

import pytest

from scheduler.domain.workloads import PodStatus
from scheduler.engine.presets import FUMAROLE
from tests.engine.builders import configured, evicted, job, queue, run, with_actions
from tests.engine.eviction.test_whole_gangs import RECLAIM
from tests.engine.scenes import NOW, aged, gpus, scene

POLICY = configured(RECLAIM, reclaim={"wholeGangs": True, "minRunSeconds": 100})


def victims_of(*queues, ran=150):
    """Of a gang in q1 that has run for so long, and has 4 GPUs that q2 deserves."""
    snapshot = scene(
        aged(job("a", "q1", tasks=8, min=4, gpu=1, on="n1"), ran),
        job("c", "q2", tasks=4, gpu=1),
        queues=queues,
    )
    return len(evicted(run(snapshot, POLICY)))


@pytest.mark.parametrize(("seconds", "count"), [(None, 4), (100, 4), (200, 0), (0, 4)])
def test_a_queue_may_name_its_own_minimum_running_time(seconds, count):
    assert victims_of(gpus("q1", 4, min_run_seconds=seconds), gpus("q2", 4)) == count


def test_a_queue_that_names_0_has_none_whatever_the_policy_says():
    assert victims_of(gpus("q1", 4), gpus("q2", 4), ran=5) == 0
    assert victims_of(gpus("q1", 4, min_run_seconds=0), gpus("q2", 4), ran=5) == 4


@pytest.mark.parametrize(("own", "count"), [(None, 0), (50, 4), (0, 4)])
def test_a_queue_that_names_none_has_that_of_the_nearest_queue_above(own, count):
    team = gpus("team", 4, min_run_seconds=200)

    found = victims_of(
        team, gpus("q1", 4, parent="team", min_run_seconds=own), gpus("q2", 4), ran=150
    )

    assert found == count


def test_what_root_names_holds_for_all():
    snapshot = scene(
        aged(job("a", "q1", tasks=8, min=4, gpu=1, on="n1"), 150),
        job("c", "q2", tasks=4, gpu=1),
        queues=(gpus("q1", 4), gpus("q2", 4)),
        root=queue("root", min_run_seconds=200),
    )

    assert evicted(run(snapshot, POLICY)) == []


def test_a_guarantee_does_not_wait_for_the_time_that_a_queue_names():
    taker = queue("q2", deserved={"gpu": 4}, guarantee={"gpu": 4})

    assert victims_of(gpus("q1", 4, min_run_seconds=200), taker) == 4


@pytest.mark.parametrize(("back_for", "count"), [(5, 0), (350, 0), (450, 4)])
def test_a_gang_that_was_evicted_and_is_back_is_not_evicted_again_before_it_starts(back_for, count):
    """Its pods have a place and do not run yet. The time is four times as long for its eviction."""
    bound = {"status": PodStatus.BOUND, "created": NOW - back_for}
    snapshot = scene(
        job("low", "q1", tasks=4, gpu=1, on="n1", pod=bound, evictions=1),
        job("high", "q1", tasks=8, gpu=1, priority=9),
        queues=(gpus("q1", 8),),
    )
    policy = configured(
        with_actions(FUMAROLE, "preempt"), preempt={"wholeGangs": True, "minRunSeconds": 100}
    )

    assert len(evicted(run(snapshot, policy))) == count


@pytest.mark.parametrize(("bound_for", "count"), [(5, 0), (150, 4)])
def test_a_pod_that_was_just_bound_is_left_in_peace_however_long_it_waited(bound_for, count):
    bound = {"status": PodStatus.BOUND, "created": NOW - 5_000, "started": NOW - bound_for}
    snapshot = scene(
        job("low", "q1", tasks=4, gpu=1, on="n1", pod=bound),
        job("high", "q1", tasks=8, gpu=1, priority=9),
        queues=(gpus("q1", 8),),
    )
    policy = configured(
        with_actions(FUMAROLE, "preempt"), preempt={"wholeGangs": True, "minRunSeconds": 100}
    )

    assert len(evicted(run(snapshot, policy))) == count


@pytest.mark.parametrize(("patience", "count"), [(0, 8), (599, 8), (600, 0)])
def test_pods_that_will_end_soon_are_left_to_end_by_preempt(patience, count):
    snapshot = scene(
        aged(job("low", "q1", tasks=8, gpu=1, on="n1"), 100, expected_seconds=700.0),
        job("high", "q1", tasks=8, gpu=1, priority=9),
        queues=(gpus("q1", 8),),
    )
    policy = configured(
        with_actions(FUMAROLE, "preempt"), preempt={"wholeGangs": True, "patienceSeconds": patience}
    )

    assert len(evicted(run(snapshot, policy))) == count


@pytest.mark.parametrize(("guaranteed", "count"), [({}, 0), ({"gpu": 4}, 4)])
def test_pods_that_will_end_soon_are_left_to_end_by_reclaim_unless_for_a_guarantee(
    guaranteed, count
):
    snapshot = scene(
        aged(job("a", "q1", tasks=8, min=4, gpu=1, on="n1"), 1_000, expected_seconds=1_060.0),
        job("c", "q2", tasks=4, gpu=1),
        queues=(gpus("q1", 4), queue("q2", deserved={"gpu": 4}, guarantee=guaranteed)),
    )
    policy = configured(RECLAIM, reclaim={"wholeGangs": True, "patienceSeconds": 60})

    assert len(evicted(run(snapshot, policy))) == count


@pytest.mark.parametrize(("ran", "count"), [(900, 0), (1_000, 0), (1_499, 0), (1_500, 8)])
def test_pods_that_are_late_are_left_to_end_for_as_long_again(ran, count):
    """Then nobody knows how long they will stay."""
    snapshot = scene(
        aged(job("low", "q1", tasks=8, gpu=1, on="n1"), ran, expected_seconds=900.0),
        job("high", "q1", tasks=8, gpu=1, priority=9),
        queues=(gpus("q1", 8),),
    )
    policy = configured(
        with_actions(FUMAROLE, "preempt"), preempt={"wholeGangs": True, "patienceSeconds": 600}
    )

    assert len(evicted(run(snapshot, policy))) == count
