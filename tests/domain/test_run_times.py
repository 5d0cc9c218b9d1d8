from __future__ import annotations

import pytest

from scheduler.domain.run_times import ANY, FEWEST, FEWEST_OF_ALL, RunTime, RunTimes


def ended(count, seconds=100.0, user="ann", queue="q", size="gpu-1"):
    return [RunTime(user, queue, size, seconds)] * count


def test_jobs_of_the_same_user_queue_and_size_come_first():
    learnt = RunTimes.learn([*ended(FEWEST, 10.0), *ended(20, 900.0, user="bob")])

    circle = learnt.circle_for("ann", "q", "gpu-1")

    assert circle == ("ann", "q", "gpu-1")
    assert learnt.seconds(circle, 0.5) == 10.0


@pytest.mark.parametrize(
    ("asked", "circle"),
    [
        (("ann", "q", "gpu-8"), ("ann", "q", ANY)),
        (("eve", "q", "gpu-1"), (ANY, "q", "gpu-1")),
        (("", "q", "gpu-8"), (ANY, "q", ANY)),
        (("ann", "other", "gpu-1"), (ANY, ANY, "gpu-1")),
        (("ann", "other", "cpu-1"), (ANY, ANY, ANY)),
    ],
)
def test_where_they_are_too_few_a_wider_circle_answers(asked, circle):
    learnt = RunTimes.learn(ended(FEWEST_OF_ALL))

    assert learnt.circle_for(*asked) == circle


def test_of_a_few_jobs_nothing_is_learnt():
    learnt = RunTimes.learn(ended(FEWEST - 1))

    assert learnt.circle_for("ann", "q", "gpu-1") is None


def test_a_job_that_has_run_for_a_while_is_compared_with_those_that_run_for_longer():
    seconds = [float(number) for number in range(101)]
    learnt = RunTimes.learn([RunTime("ann", "q", "gpu-1", value) for value in seconds])
    circle = ("ann", "q", "gpu-1")

    assert learnt.seconds(circle, 0.5) == pytest.approx(50.0)
    assert learnt.seconds(circle, 0.5, run_for=60.0) == pytest.approx(80.0)
    assert learnt.seconds(circle, 0.0, run_for=60.0) == pytest.approx(60.0)
    assert learnt.seconds(circle, 1.0, run_for=60.0) == pytest.approx(100.0)


def test_a_job_that_has_run_for_longer_than_all_others_is_expected_to_run_on():
    learnt = RunTimes.learn(ended(10, 100.0))
    circle = ("ann", "q", "gpu-1")

    low, high = (learnt.seconds(circle, level, run_for=1000.0) for level in (0.2, 0.8))

    assert 1000.0 < low < high


def test_run_times_of_one_length_have_no_spread():
    learnt = RunTimes.learn(ended(10, 100.0))

    assert learnt.seconds(("ann", "q", "gpu-1"), 0.2, run_for=50.0) == 100.0
