"""Nothing is evicted that loses more work than the gang gains by not waiting for it to end."""

from __future__ import annotations

import pytest

from scheduler.domain.no_reclaim import ReclaimCode, reclaim_words
from scheduler.engine import open_session
from scheduler.engine.presets import FUMAROLE
from scheduler.engine.report.no_reclaim import why_no_reclaim
from tests.engine.builders import configured, evicted, job, queue, run, with_actions
from tests.engine.eviction.test_whole_gangs import RECLAIM
from tests.engine.scenes import aged, gpus, scene


def scene_with(expected, guarantee=0):
    """Four of q1's eight GPUs are q2's due. The gang on them has worked for 1,000 seconds."""
    taker = queue("q2", deserved={"gpu": 4}, guarantee={"gpu": guarantee})
    return scene(
        aged(job("a", "q1", tasks=4, gpu=1, on="n1"), 1_000, expected_seconds=expected),
        job("kept", "q1", tasks=4, gpu=1, on="n1", pod={"preemptable": False}),
        job("c", "q2", tasks=4, gpu=1),
        queues=(gpus("q1", 4), taker),
    )


@pytest.mark.parametrize(
    ("expected", "victims"), [(1_500.0, 0), (3_000.0, 4), (None, 4), (900.0, 4)]
)
def test_reclaim_waits_for_pods_that_have_less_to_do_than_they_have_done(expected, victims):
    """Nobody knows when pods end that declare nothing, or should have ended."""
    assert len(evicted(run(scene_with(expected), RECLAIM))) == victims


@pytest.mark.parametrize(("expected", "victims"), [(3_000.0, 0), (3_200.0, 4), (None, 4)])
def test_reclaim_must_gain_as_much_more_than_it_loses_as_the_policy_says(expected, victims):
    """With what a new start costs, 1,060 seconds are lost: twice of that is 2,120."""
    policy = configured(RECLAIM, reclaim={"wholeGangs": True, "gainPercent": 200})

    assert len(evicted(run(scene_with(expected), policy))) == victims


@pytest.mark.parametrize(("percent", "victims"), [(100, 4), (150, 4), (200, 0)])
def test_preempt_must_gain_as_much_more_than_it_loses_as_the_policy_says(percent, victims):
    """160 seconds are lost, and the gang does not wait for 300."""
    policy = configured(
        with_actions(FUMAROLE, "preempt"), preempt={"wholeGangs": True, "gainPercent": percent}
    )
    snapshot = scene(
        aged(job("low", "q1", tasks=4, gpu=2, on="n1"), 100, expected_seconds=400.0),
        job("high", "q1", tasks=4, gpu=2, priority=9),
        queues=(gpus("q1", 8),),
    )

    assert len(evicted(run(snapshot, policy))) == victims


def test_a_guarantee_does_not_wait_for_them():
    assert len(evicted(run(scene_with(1_500.0, guarantee=4), RECLAIM))) == 4


def test_the_gang_is_told_why_nothing_is_evicted_for_it():
    session = open_session(scene_with(1_500.0), RECLAIM)
    (gang,) = session.starving_gangs()

    answer = why_no_reclaim(session, gang)

    assert answer.code is ReclaimCode.LOSES_TOO_MUCH
    assert reclaim_words(answer, str) == (
        "To evict 4 pods for it would lose too much work for what it gains: "
        "the last of them ends in about 500 s."
    )
