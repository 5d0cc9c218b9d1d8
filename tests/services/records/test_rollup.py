from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.models import QueueSample
from scheduler.selectors.records.history import queue_history
from scheduler.services.records.rollup import roll_up
from tests.worlds import queue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def raw(name: str, at: datetime, cpu: int, state: str = "Open") -> None:
    QueueSample.objects.create(
        queue_name=name,
        seconds=0,
        at=at,
        data={"allocated": {"cpu": cpu}, "state": state},
    )


def minutes(name: str) -> dict[str, int]:
    rows = (
        QueueSample.objects.filter(queue_name=name, seconds=60)
        .order_by("at")
        .values_list("at", "data")
    )
    return {f"{at:%H:%M}": data["allocated"]["cpu"] for at, data in rows}


def test_a_minute_is_the_average_over_its_seconds():
    raw("a", NOON, 1000)
    raw("a", NOON + timedelta(seconds=45), 5000)

    roll_up(NOON + timedelta(seconds=61))

    assert minutes("a") == {"12:00": 2000}


def test_a_minute_that_is_not_over_waits():
    raw("a", NOON, 1000)

    roll_up(NOON + timedelta(seconds=59))

    assert minutes("a") == {}


def test_a_minute_without_change_has_no_row_and_reads_as_before():
    queue("a")
    raw("a", NOON, 1000)
    raw("a", NOON + timedelta(seconds=30), 3000)

    roll_up(NOON + timedelta(minutes=5))
    history = queue_history("a", "1h", NOON + timedelta(minutes=5))

    assert minutes("a") == {"12:00": 2000}
    assert history.series["cpu"]["allocated"][-6:] == [None, 2000, 3000, 3000, 3000, 3000]


def test_every_queue_has_a_row_at_each_whole_hour_and_a_deleted_one_has_not():
    queue("a")
    raw("a", NOON - timedelta(minutes=10), 1000)
    raw("gone", NOON - timedelta(minutes=10), 1000)

    roll_up(NOON + timedelta(minutes=2))

    assert minutes("a") == {"11:50": 1000, "12:00": 1000}
    assert minutes("gone") == {"11:50": 1000}


def test_rolling_up_again_changes_nothing():
    raw("a", NOON, 1000)
    roll_up(NOON + timedelta(minutes=2))
    before = minutes("a")

    roll_up(NOON + timedelta(minutes=3))

    assert minutes("a") == before


def test_an_hour_is_made_of_minutes_that_hold():
    queue("a")
    raw("a", NOON, 1000)
    roll_up(NOON + timedelta(minutes=1))
    raw("a", NOON + timedelta(minutes=30), 3000)
    roll_up(NOON + timedelta(minutes=31))

    roll_up(NOON + timedelta(hours=1))

    hour = QueueSample.objects.get(queue_name="a", seconds=3600)
    assert hour.at == NOON
    assert hour.data["allocated"]["cpu"] == 2000
    assert hour.data["last"]["allocated"]["cpu"] == 3000


def test_the_last_word_survives_the_raw_samples():
    queue("a")
    raw("a", NOON, 1000)
    raw("a", NOON + timedelta(seconds=30), 3000)
    roll_up(NOON + timedelta(minutes=1))
    QueueSample.objects.filter(seconds=0).delete()
    raw("a", NOON + timedelta(minutes=2, seconds=30), 5000)

    roll_up(NOON + timedelta(minutes=3))

    assert minutes("a") == {"12:00": 2000, "12:02": 4000}
