"""When sessions run.

The period, requests that bring one forward, pauses, and a clock that leaps.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scheduler.models import (
    ClusterState,
    Event,
    PodGroup,
)
from scheduler.services.sessions.requests import (
    pause_scheduling,
    resume_scheduling,
    set_period,
    want_session,
)
from scheduler.services.sessions.runner import SessionRunner, is_due, pause_before
from tests.worlds import job, node, phases, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def state() -> ClusterState:
    return ClusterState.objects.get(pk=1)


def test_sessions_come_at_the_stored_period_which_may_change_while_running():
    runner = SessionRunner("test")
    runner.run()
    now = state().last_session_at
    assert now

    assert not is_due(state(), now + timedelta(seconds=0.6))
    assert is_due(state(), now + timedelta(seconds=0.8))
    set_period(5)
    assert not is_due(state(), now + timedelta(seconds=4.6))
    assert is_due(state(), now + timedelta(seconds=4.8))
    with pytest.raises(ValueError, match=r"0\.5 to 3600"):
        set_period(0.1)


def test_who_gives_work_brings_the_next_session_forward_and_many_make_one(
    django_capture_on_commit_callbacks: Any,
):
    SessionRunner("test").run()
    assert not is_due(state(), state().last_session_at)

    with django_capture_on_commit_callbacks(execute=True):
        want_session()
        want_session()
    wanted = state().session_wanted_at
    with django_capture_on_commit_callbacks(execute=True):
        want_session()

    assert is_due(state(), timezone.now())
    assert state().session_wanted_at == wanted
    SessionRunner("test").run()
    assert not is_due(state(), state().last_session_at)


def test_a_storm_of_requests_does_not_make_a_storm_of_sessions():
    SessionRunner("test").run()
    begun = state().last_session_at
    assert begun

    assert pause_before(state(), begun + timedelta(seconds=0.05)) == pytest.approx(0.15)
    assert pause_before(state(), begun + timedelta(seconds=2)) == 0


def test_while_scheduling_is_paused_nothing_is_decided_and_everybody_is_told_why():
    node("n1", cpu="8")
    pause_scheduling(reason="maintenance")
    made = job("train")

    run_session()
    assert phases(made) == ["Pending"]
    assert PodGroup.objects.get(job=made).reason_code == "SchedulingPaused"
    resume_scheduling()
    run_session()

    assert phases(made) == ["Bound"]
    assert list(
        Event.objects.filter(kind="Cluster").order_by("id").values_list("reason", flat=True)
    ) == [
        "SchedulingPaused",
        "SchedulingResumed",
    ]


def test_a_clock_that_was_put_back_does_not_keep_sessions_waiting():
    now = timezone.now()
    ClusterState.objects.update(last_session_at=now + timedelta(hours=1))

    assert is_due(state(), now)
    assert pause_before(state(), now) < 1


def test_a_wish_from_before_the_clock_was_put_back_makes_one_session_and_not_one_at_each_tick():
    ClusterState.objects.update(session_wanted_at=timezone.now() + timedelta(hours=5))

    SessionRunner("test").run()

    assert not is_due(state(), timezone.now())
