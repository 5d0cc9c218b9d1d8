"""Loans over time: sampled once a minute, rolled up by the hour, and shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.models import LoanSample, QueueFigures
from scheduler.selectors.records.loan_history import loan_history
from scheduler.services.records.loan_samples import note_loans
from scheduler.services.records.rollup import roll_up
from tests.worlds import job, node, queue, run_session

pytestmark = [pytest.mark.django_db]
START = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


def minutes(number: float) -> datetime:
    return START + timedelta(minutes=number)


@pytest.fixture(autouse=True)
def _borrowed() -> None:
    """batch has 6 CPUs of team-a."""
    node("n1", cpu="8")
    queue("team-a", deserved={"cpu": "8"})
    queue("batch", deserved={"cpu": "0"})
    job("big", "batch", replicas=6, least=1)
    run_session()


def end_of_loans() -> None:
    for name in ("batch", "root"):
        figures = QueueFigures.objects.get(queue__name=name)
        figures.allocated = type(figures.allocated)({"cpu": 0})
        figures.save()


def test_a_queue_is_noted_when_its_loans_changed_and_once_a_minute():
    note_loans(minutes(1))
    note_loans(minutes(1.5))
    note_loans(minutes(2))

    names = LoanSample.objects.order_by("at", "queue_name").values_list("queue_name", "at")
    assert list(names) == [
        ("", minutes(1)),
        ("batch", minutes(1)),
        ("team-a", minutes(1)),
        ("", minutes(2)),
    ]


def test_the_history_says_from_whom_and_that_it_ended():
    note_loans(minutes(1))
    end_of_loans()
    note_loans(minutes(3))

    history = loan_history("batch", "cpu", "1h", now=minutes(5))

    assert history.borrowed[-4:] == [6_000, 6_000, 0, 0]
    assert history.lenders["team-a"][-4:] == [6_000, 6_000, 0, 0]
    assert history.lent[-1] == 0
    assert history.borrowed[0] is None
    assert loan_history("", "cpu", "1h", now=minutes(5)).borrowed[-4] == 6_000
    assert loan_history("team-a", "cpu", "1h", now=minutes(5)).borrowers["batch"][-4] == 6_000


def test_an_hour_is_the_average_of_its_minutes():
    note_loans(minutes(0))
    end_of_loans()
    note_loans(minutes(30))

    roll_up(minutes(61))

    history = loan_history("batch", "cpu", "7d", now=minutes(90))
    assert history.borrowed[-2:] == [3_000, 0]
    assert history.lenders["team-a"][-2:] == [3_000, 0]


def test_what_is_unchanged_for_hours_is_noted_at_each_whole_hour():
    note_loans(minutes(1))
    note_loans(minutes(60))

    assert LoanSample.objects.filter(queue_name="batch", at=minutes(60)).exists()


def test_a_queue_of_which_nothing_is_known_has_no_figures():
    history = loan_history("batch", "cpu", "1h", now=minutes(5))

    assert set(history.borrowed) == {None}
