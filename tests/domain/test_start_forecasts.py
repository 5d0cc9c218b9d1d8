"""Ranges that hold in eight of ten cases, whatever the error of the runs ahead is like."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from scheduler.domain.start_forecasts import FEWEST, Calibration, Past, Waits, is_kept


def past(actual, *, queue="q", size="gpu-1", waits=None, is_over=True):
    return Past(queue, size, waits or Waits(500.0, 600.0, 700.0), actual, is_over)


def apart(cases, hours=1.0):
    """Each made so many hours after the one before."""
    return [replace(case, made_at=number * 3600.0 * hours) for number, case in enumerate(cases)]


def drawn(random, count, *, late=1.0):
    """Forecasts of ten minutes to half an hour, and starts that are off by some factor."""
    found = []
    for _ in range(count):
        median = random.uniform(600.0, 1799.0)
        waits = Waits(median * 0.8, median, median * 1.2)
        found.append(past(late * median * random.lognormvariate(0.0, 0.7), waits=waits))
    return found


@pytest.mark.parametrize("late", [1.0, 3.0, 0.2])
def test_the_range_holds_in_eight_of_ten_new_cases(late):
    random = Random(5)
    calibration = Calibration(apart(drawn(random, 500, late=late)))

    held = 0
    new = drawn(random, 2000, late=late)
    for case in new:
        found = calibration.range_of("q", "gpu-1", case.waits)
        held += found.earliest <= case.actual <= found.latest

    assert held / len(new) == pytest.approx(0.8, abs=0.05)


def test_forecasts_that_were_always_right_make_a_narrow_range():
    right = [past(600.0, waits=Waits(300.0, 600.0, 1200.0))] * 50

    found = Calibration(apart(right)).range_of("q", "gpu-1", Waits(300.0, 600.0, 1200.0))

    assert (found.earliest, found.latest) == (pytest.approx(600.0, rel=0.05),) * 2
    assert found.cases == 50


def test_there_is_no_range_while_there_are_too_few_cases():
    waits = Waits(500.0, 600.0, 700.0)

    assert Calibration(apart([past(600.0)] * (FEWEST - 1))).range_of("q", "gpu-1", waits) is None
    assert Calibration(apart([past(600.0)] * FEWEST)).range_of("q", "gpu-1", waits) is not None


def test_what_happened_to_waits_of_minutes_says_nothing_about_waits_of_hours():
    calibration = Calibration(apart([past(600.0)] * 100))

    assert calibration.range_of("q", "gpu-1", Waits(4e4, 5e4, 6e4)) is None


def test_another_queue_is_asked_only_where_the_own_one_has_too_few():
    own = [past(60.0, queue="own")] * FEWEST
    others = [past(6000.0, queue="other")] * 500
    calibration = Calibration(apart([*own, *others]))
    waits = Waits(500.0, 600.0, 700.0)

    assert calibration.range_of("own", "gpu-1", waits).latest < 100.0
    assert calibration.range_of("third", "gpu-1", waits).latest > 1000.0


def test_a_gang_that_waits_for_longer_than_foretold_counts_before_it_starts():
    known = [past(600.0)] * 60
    overdue = [past(9000.0, is_over=False)] * 40
    waits = Waits(500.0, 600.0, 700.0)

    assert Calibration(apart([*known, *overdue])).range_of("q", "gpu-1", waits).latest >= 8999.0
    young = [past(100.0, is_over=False)] * 40
    assert Calibration(apart([*known, *young])).range_of("q", "gpu-1", waits).latest < 720.0


def test_the_newest_cases_count():
    newest_first = [*[past(60.0)] * 2000, *[past(6000.0)] * 5000]

    found = Calibration(apart(newest_first)).range_of("q", "gpu-1", Waits(500.0, 600.0, 700.0))

    assert found.latest < 100.0


def test_the_first_forecast_is_kept_and_one_each_time_the_wait_has_doubled():
    assert is_kept(3.0, None)
    assert not is_kept(290.0, 3.0)
    assert is_kept(300.0, 3.0)
    assert not is_kept(599.0, 300.0)
    assert is_kept(600.0, 300.0)


def test_a_thousand_forecasts_at_one_time_are_one_experience():
    waits = Waits(500.0, 600.0, 700.0)
    burst = [past(600.0)] * 1000
    others = apart([past(60.0)] * 8, hours=2.0)

    assert Calibration(burst).range_of("q", "gpu-1", waits) is None
    assert Calibration([*others, *burst]).range_of("q", "gpu-1", waits).earliest < 60.0


def test_few_experiences_make_a_wider_range_than_many():
    waits = Waits(500.0, 600.0, 700.0)
    few = apart([past(600.0)] * 40, hours=1 / 40)
    many = apart([past(600.0)] * 40)

    assert Calibration(few).range_of("q", "gpu-1", waits) is None
    few = apart([past(600.0)] * 40, hours=1 / 15)
    wide = Calibration(few).range_of("q", "gpu-1", waits)
    narrow = Calibration(many).range_of("q", "gpu-1", waits)

    assert wide.earliest < narrow.earliest < narrow.latest < wide.latest
