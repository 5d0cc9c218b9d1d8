from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import QueueSample
from scheduler.selectors.records.history import SPANS, Band, UnknownSpan, queue_history
from scheduler.services.accounts.actors import Actor
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import update_queue
from scheduler.services.sessions.runner import SessionRunner
from tests.worlds import job, node, queue, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def sample(at: datetime, cpu: int, seconds: int = 0, state: str = "Open", **more: object) -> None:
    data = {"allocated": {"cpu": cpu}, "state": state, **more}
    QueueSample.objects.create(queue_name="a", seconds=seconds, at=at, data=data)


def test_a_queue_without_history_has_no_series_and_says_so():
    history = queue_history("a", "1h", NOON)

    assert (history.series, history.states, history.since) == ({}, (), None)


def test_an_unknown_span_is_refused_by_name():
    with pytest.raises(
        UnknownSpan, match="“2h” is not a span of history; give one of 1h, 24h, 7d, 30d"
    ):
        queue_history("a", "2h")


@pytest.mark.parametrize("span", SPANS)
def test_every_span_has_a_few_hundred_points_at_the_most_and_all_series_are_as_long(span: str):
    sample(NOON - timedelta(seconds=SPANS[span].seconds * 2), 1000, SPANS[span].coarsest)

    history = queue_history("a", span, NOON + timedelta(seconds=20))

    assert 50 < len(history.times) < 300
    assert history.series["cpu"]["allocated"] == [1000] * len(history.times)
    assert {len(series) for series in history.series["cpu"].values()} == {len(history.times)}


def test_raw_samples_go_on_where_the_minutes_end():
    sample(NOON, 1000, 60)
    sample(NOON + timedelta(minutes=1), 2000, 60)
    sample(NOON + timedelta(minutes=1, seconds=10), 9000)  # in a minute that is rolled up already
    sample(NOON + timedelta(minutes=2), 4000)

    history = queue_history("a", "1h", NOON + timedelta(minutes=3))

    assert history.series["cpu"]["allocated"][-4:] == [None, 1000, 2000, 4000]
    assert history.since == NOON.timestamp()


def test_a_limit_that_was_lifted_ends():
    sample(NOON, 1, capability={"cpu": 8000})
    sample(NOON + timedelta(minutes=1), 1)

    assert queue_history("a", "1h", NOON + timedelta(minutes=2)).series["cpu"]["capability"][
        -2:
    ] == [8000, None]


def test_states_come_as_bands():
    sample(NOON, 1)
    sample(NOON + timedelta(minutes=1), 1, state="Suspended")
    sample(NOON + timedelta(minutes=2), 1)
    noon = NOON.timestamp()

    states = queue_history("a", "1h", NOON + timedelta(minutes=3)).states

    assert states == (
        Band(noon, noon + 60, "Open"),
        Band(noon + 60, noon + 120, "Suspended"),
        Band(noon + 120, noon + 180, "Open"),
    )


def test_commands_and_edits_are_marked_with_who_gave_them():
    queue("a")
    update_queue("a", {"spec": {"weight": 3}}, by=Actor("alice"), merge=True)
    command_queue("a", QueueCommand.SUSPEND, by=Actor("bob"))

    edit, command = queue_history("a", "1h").markers

    assert (edit.kind, edit.action, edit.actor) == ("edit", "UpdateQueue", "alice")
    assert "weight from 1 to 3" in edit.message
    assert (command.kind, command.action, command.actor) == ("command", "SuspendQueue", "bob")


def test_sessions_leave_samples_when_figures_or_the_state_change_and_none_otherwise():
    queue("a", capability={"cpu": "4"})
    node("n1", cpu="8")
    job("train", "a", cpu="2")
    runner = SessionRunner("test")
    run_session(runner)
    run_session(runner)
    samples = QueueSample.objects.filter(queue_name="a")
    before = samples.count()

    run_session(runner)
    assert samples.count() == before
    command_queue("a", QueueCommand.SUSPEND)
    run_session(runner)

    last = samples.latest("at").data
    assert (samples.count(), last["state"]) == (before + 1, "Suspended")
    assert (last["allocated"]["cpu"], last["capability"]["cpu"]) == (2000, 4000)
