"""Wall times in a zone, through every change of clocks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.domain.calendar import Timetable, moment_of

BERLIN = "Europe/Berlin"


def wall(text: str) -> datetime:
    return datetime.fromisoformat(text)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("shown", "zone", "expected"),
    [
        ("2026-11-20T18:00", BERLIN, "2026-11-20T17:00"),
        ("2026-07-20T18:00", BERLIN, "2026-07-20T16:00"),
        # left out: clocks go from 2 to 3
        ("2026-03-29T02:30", BERLIN, "2026-03-29T01:00"),
        ("2026-03-29T03:00", BERLIN, "2026-03-29T01:00"),
        ("2026-03-29T03:15", BERLIN, "2026-03-29T01:15"),
        # twice: the first counts
        ("2026-10-25T02:30", BERLIN, "2026-10-25T00:30"),
        # half an hour
        ("2026-10-04T02:15", "Australia/Lord_Howe", "2026-10-03T15:30"),
        ("2026-11-20T18:00", "UTC", "2026-11-20T18:00"),
    ],
)
def test_a_wall_time_is_one_moment(shown: str, zone: str, expected: str):
    assert moment_of(wall(shown), zone) == moment(expected)


@given(
    st.datetimes(min_value=wall("2025-01-01"), max_value=wall("2028-01-01")),
    st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=6)),
    st.sampled_from([BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
)
def test_what_is_later_on_the_wall_is_never_earlier(first: datetime, later: timedelta, zone: str):
    assert moment_of(first, zone) <= moment_of(first + later, zone)


def test_a_weekly_plan_keeps_its_hours_when_clocks_are_changed():
    plan = Timetable(
        wall("2026-10-16T18:00"), wall("2026-10-19T08:00"), BERLIN, True, date(2026, 10, 30)
    )

    turns = list(plan.turns_until(moment("2027-01-01T00:00")))

    assert [turn.begins_at for turn in turns] == [
        moment("2026-10-16T16:00"),
        moment("2026-10-23T16:00"),
        moment("2026-10-30T17:00"),
    ]
    assert turns[1].ends_at == moment("2026-10-26T07:00")  # an hour longer than the others
    assert plan.in_words == "Fridays 18:00 to Mondays 08:00, Europe/Berlin, until 2026-10-30"


def test_a_plan_for_once_has_one_turn_and_needs_no_end():
    plan = Timetable(wall("2026-11-20T18:00"), None, "UTC")

    (turn,) = plan.turns_until(moment("2028-01-01T00:00"))

    assert turn.ends_at is None
    assert plan.in_words == "Friday 2026-11-20 18:00, UTC"
