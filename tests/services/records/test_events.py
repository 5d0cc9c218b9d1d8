from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.models import Event
from scheduler.services.records.events import EventNote, record_events
from scheduler.services.sessions.runner import SessionRunner
from tests.worlds import job, node, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def note(message: str, name: str = "train") -> EventNote:
    return EventNote("PodGroup", name, "Unschedulable", message)


def test_the_same_thing_again_is_counted_with_first_and_last_time():
    record_events([note("no room"), note("no room")], NOON)
    record_events([note("no room")], NOON + timedelta(minutes=1))

    event = Event.objects.get()
    assert (event.count, event.first_at, event.last_at) == (3, NOON, NOON + timedelta(minutes=1))


def test_the_same_thing_with_other_figures_is_the_same_thing_with_the_newest_message():
    record_events([note("36 of 40 nodes are full"), note("37 of 40 nodes are full")], NOON)
    record_events([note("38 of 40 nodes are full")], NOON)

    event = Event.objects.get()
    assert (event.count, event.message) == (3, "38 of 40 nodes are full")


def test_other_words_and_other_objects_are_other_events():
    record_events([note("no room"), note("no quota"), note("no room", "other")], NOON)

    assert Event.objects.count() == 3


def test_a_large_gang_that_waits_leaves_one_event_of_a_pod():
    node("n1", cpu="2")
    job("filler", cpu="2", seconds=1000)
    runner = SessionRunner("test")
    run_session(runner)
    job("big", replicas=50, cpu="2")

    for _ in range(3):
        run_session(runner)

    assert Event.objects.filter(kind="PodGroup", name="big").exists()
    assert Event.objects.filter(kind="Pod", name__startswith="big-").count() <= 3
