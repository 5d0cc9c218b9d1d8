"""Which sessions stay to be run again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from scheduler.domain.kept_sessions import KeptSession, thinned_out

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
MUCH = 10**9


def session(number: int, ago: float, *, stays: bool = False, size: int = 100) -> KeptSession:
    return KeptSession(number, NOW - timedelta(seconds=ago), size, stays)


def left(kept: list[KeptSession], most_bytes: int = MUCH) -> list[int]:
    gone = thinned_out(kept, NOW, most_bytes)
    return [each.number for each in kept if each.number not in gone]


def a_day() -> list[KeptSession]:
    """A session every five seconds, numbered by the second."""
    return [session(number, 86_400 - number) for number in range(0, 86_400, 5)]


def ages(numbers: list[int]) -> list[int]:
    return [86_400 - number for number in numbers]


def test_of_the_last_ten_minutes_all_stay():
    kept = a_day()

    assert len([age for age in ages(left(kept)) if age <= 600]) == 120


def test_older_ones_become_fewer_with_age():
    found = ages(left(a_day()))

    hour = [age for age in found if 600 < age <= 3600]
    hours = [age for age in found if 3600 < age <= 6 * 3600]
    day = [age for age in found if age > 6 * 3600]
    assert (len(hour), len(hours), len(day)) == (300, 300, 216)


def test_what_stayed_of_a_day_is_what_stays_when_it_is_looked_at_every_minute():
    """Steps are parts of each other: no step is left empty by what went before."""
    kept: list[KeptSession] = []
    for minute in range(0, 24 * 60, 2):
        now = NOW + timedelta(minutes=minute)
        kept += [
            KeptSession(60 * minute + second, now - timedelta(seconds=120 - second), 100, False)
            for second in range(0, 120, 10)
        ]
        gone = set(thinned_out(kept, now, MUCH))
        kept = [each for each in kept if each.number not in gone]

    day = [each for each in kept if now - each.began_at > timedelta(hours=6)]
    steps = {int(each.began_at.timestamp()) // 300 for each in day}
    assert len(day) == len(steps)
    assert max(steps) - min(steps) + 1 == len(steps)


def test_sessions_that_evicted_stay_however_old():
    kept = [session(1, 80_000), session(2, 79_999, stays=True), session(3, 79_998)]

    assert left(kept) == [1, 2]


def test_where_they_take_too_much_the_steps_get_longer():
    found = ages(left(a_day(), most_bytes=50_000))

    assert 200 <= len(found) <= 500
    assert min(found) <= 5
    assert max(found) > 85_000


def test_at_the_end_what_matters_goes_before_the_rest_and_the_new_before_the_old():
    kept = [session(number, 100 - number, stays=number < 50) for number in range(100)]

    assert left(kept, most_bytes=300) == [47, 48, 49]


def test_the_newest_stays_even_if_it_is_too_large():
    assert left([session(1, 20), session(2, 10, stays=True, size=MUCH)], most_bytes=1) == [2]


@given(
    st.lists(st.tuples(st.integers(0, 10**5), st.integers(1, 10**4), st.booleans()), max_size=60),
    st.integers(10**4, 10**6),
)
def test_what_stays_always_fits(rows, most_bytes):
    ordered = sorted(rows, key=lambda row: -row[0])
    kept = [
        session(number, ago, size=size, stays=stays)
        for number, (ago, size, stays) in enumerate(ordered)
    ]

    numbers = left(kept, most_bytes)

    assert sum(kept[number].size for number in numbers) <= most_bytes
    assert bool(numbers) == bool(kept)
