"""Three runs ahead, from what is declared and what was learnt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scheduler.domain.run_times import RunTime, RunTimes
from scheduler.domain.start_forecasts import HIGH, LOW, MEDIAN, Waits, Why
from scheduler.engine.presets import BOUND
from scheduler.simulation.forward import Limits
from scheduler.simulation.start_times import look_ahead, run_seconds
from tests.simulation.test_forward import NOW, gang, live

NOTHING_LEARNT = RunTimes({})
LIMITS = Limits(seconds=10_000.0)


def saying(pair, seconds):
    """The same gang, which declares how long it runs."""
    group, pods = pair
    return replace(group, expected_seconds=seconds), pods


def learnt(*seconds, user="ann"):
    return RunTimes.learn([RunTime(user, "q", "", value) for value in seconds])


def look(snapshot, run_times, *, limits=LIMITS, keep_going=None):
    users = ["ann"] * len(snapshot.groups)
    return look_ahead(snapshot, BOUND, users, run_times, limits, keep_going)


def test_declared_run_times_make_one_certain_start():
    snapshot = live(saying(gang("old", running_since=NOW - 40.0), 100.0), saying(gang("a"), 5.0))

    seen = look(snapshot, NOTHING_LEARNT)

    assert seen.waits == {"default/a": Waits(60.0, 60.0, 60.0)}


def test_learnt_run_times_make_a_range():
    snapshot = live(gang("old", running_since=NOW), gang("a"))
    run_times = learnt(*np.linspace(0.0, 1000.0, 101))

    seen = look(snapshot, run_times)

    waits = seen.waits["default/a"]
    assert (waits.low, waits.median, waits.high) == pytest.approx((200.0, 500.0, 800.0))


def test_what_is_declared_counts_before_what_was_learnt():
    snapshot = live(saying(gang("old", running_since=NOW), 70.0), gang("a"))

    lengths = run_seconds(snapshot, ["ann", "ann"], learnt(*[500.0] * 10))

    row = snapshot.groups.rows["default/old"]
    assert [lengths[level][row] for level in (LOW, MEDIAN, HIGH)] == [70.0] * 3
    assert lengths[MEDIAN][snapshot.groups.rows["default/a"]] == 500.0


def test_the_first_session_does_not_see_what_was_learnt():
    """The engine goes by what users declare. Guesses would change what it decides."""
    snapshot = live(gang("old", running_since=NOW), gang("a"))

    look(snapshot, learnt(*[500.0] * 10))

    assert np.isnan(snapshot.groups.expected_seconds).all()


def test_where_nothing_was_learnt_there_is_no_estimate_and_the_reason_is_said():
    snapshot = live(gang("old", running_since=NOW), gang("a"))

    assert look(snapshot, NOTHING_LEARNT).unknown == {"default/a": Why.NO_RUN_TIMES}


def test_what_starts_behind_the_horizon_has_no_estimate():
    snapshot = live(saying(gang("old", running_since=NOW), 20_000.0), saying(gang("a"), 1.0))

    assert look(snapshot, NOTHING_LEARNT).unknown == {"default/a": Why.TOO_FAR}


def test_a_gang_that_never_fits_has_no_estimate():
    snapshot = live(saying(gang("a", cpu=99), 1.0))

    assert look(snapshot, NOTHING_LEARNT).unknown == {"default/a": Why.STANDSTILL}


def test_while_scheduling_is_paused_there_is_no_estimate():
    snapshot = live(saying(gang("a"), 1.0), paused=True)

    assert look(snapshot, NOTHING_LEARNT).unknown == {"default/a": Why.PAUSED}


def test_a_look_that_is_stopped_says_what_it_has_seen():
    snapshot = live(saying(gang("a", priority=9), 50.0), saying(gang("b"), 50.0))

    seen = look(snapshot, NOTHING_LEARNT, keep_going=lambda _progress: False)

    assert seen.waits == {"default/a": Waits(0.0, 0.0, 0.0)}
    assert seen.unknown == {"default/b": Why.CUT_SHORT}


def test_a_gang_that_starts_only_with_short_run_times_has_the_horizon_as_its_upper_end():
    snapshot = live(gang("old", running_since=NOW), gang("a"))
    run_times = learnt(*np.linspace(0.0, 15_000.0, 101))

    waits = look(snapshot, run_times).waits["default/a"]

    assert waits.high == LIMITS.seconds
    assert waits.median < LIMITS.seconds
