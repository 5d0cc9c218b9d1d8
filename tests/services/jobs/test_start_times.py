"""Looking ahead in the background: what is shown, what is kept, and what it may cost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from scheduler.conf import conf
from scheduler.domain.run_times import ANY
from scheduler.domain.start_forecasts import FEWEST, Why
from scheduler.models import (
    Change,
    ExpectedStart,
    LearntRunTime,
    LookAhead,
    PodGroup,
    StartForecast,
)
from scheduler.services.jobs import start_times
from scheduler.services.jobs.run_times import learn_run_times
from scheduler.services.jobs.start_times import renew_start_times
from tests.worlds import job, node, pass_time, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture(autouse=True)
def cluster() -> None:
    node("n1", cpu="4")


def look_again():
    LookAhead.objects.update(next_at=None)
    assert renew_start_times()


def crowd():
    """One job runs for a minute, another waits for it."""
    job("first", replicas=4, seconds=60)
    run_session()
    pass_time(2)
    run_session()
    return job("second", replicas=4, seconds=30).podgroup


def experience(count=FEWEST, actual=40.0, **fields):
    """Past forecasts of half a minute to two minutes, and what came of them."""
    now = timezone.now()
    rows = []
    for number in range(count):
        values = {
            "podgroup_number": 10_000 + number,
            "podgroup_name": f"default/old-{number}",
            "queue_name": "default",
            "size": "cpu-8",
            "made_at": now - timedelta(hours=1 + number),
            "low": 50.0,
            "median": 50.0,
            "high": 50.0,
            "actual": actual,
            "ended_at": now,
        }
        rows.append(StartForecast(**{**values, **fields}))
    StartForecast.objects.bulk_create(rows)


def test_a_gang_that_waits_has_an_expected_start_as_a_range():
    gang = crowd()
    experience(FEWEST, actual=40.0)
    experience(FEWEST, actual=80.0)

    assert renew_start_times()

    found = ExpectedStart.objects.get(podgroup_number=gang.pk)
    assert found.why == ""
    assert found.cases == 2 * FEWEST
    early = (found.earliest_at - found.made_at).total_seconds()
    late = (found.latest_at - found.made_at).total_seconds()
    assert 25.0 < early < 60.0 < late < 130.0


def test_without_experience_there_is_no_range_and_the_reason_is_kept():
    gang = crowd()

    renew_start_times()

    found = ExpectedStart.objects.get(podgroup_number=gang.pk)
    assert (found.earliest_at, found.why) == (None, Why.FEW_FORECASTS)
    kept = StartForecast.objects.get(podgroup_number=gang.pk)
    assert 40.0 < kept.median < 62.0
    assert (kept.earliest, kept.latest, kept.actual) == (None, None, None)
    assert (kept.queue_name, kept.size) == ("default", "cpu-8")


def test_a_forecast_is_kept_once_until_the_wait_has_doubled():
    gang = crowd()
    renew_start_times()
    look_again()
    assert StartForecast.objects.filter(podgroup_number=gang.pk).count() == 1

    long_ago = timezone.now() - timedelta(hours=1)
    PodGroup.objects.filter(pk=gang.pk).update(created_at=long_ago)
    StartForecast.objects.update(made_at=long_ago + timedelta(minutes=1))
    look_again()

    assert StartForecast.objects.filter(podgroup_number=gang.pk).count() == 2


def test_when_the_gang_starts_the_forecast_is_compared_with_it():
    gang = crowd()
    renew_start_times()
    StartForecast.objects.update(made_at=timezone.now() - timedelta(seconds=20))
    PodGroup.objects.filter(pk=gang.pk).update(started_at=timezone.now(), phase="Running")

    look_again()

    row = StartForecast.objects.get(podgroup_number=gang.pk)
    assert row.actual == pytest.approx(20.0, abs=2.0)
    assert row.ended_at is not None


def test_a_gang_that_is_gone_without_a_start_teaches_nothing():
    gang = crowd()
    renew_start_times()
    gang.job.delete()

    look_again()

    row = StartForecast.objects.get(podgroup_number=gang.pk)
    assert row.actual is None
    assert row.ended_at is not None


def test_where_nobody_waits_nothing_is_shown():
    ExpectedStart.objects.create(podgroup_number=5, made_at=timezone.now())

    renew_start_times()

    assert not ExpectedStart.objects.exists()


def test_one_looks_at_a_time_and_then_it_pauses_for_what_the_look_cost(monkeypatch):
    crowd()
    spent = iter([100.0, 102.0, 103.0])
    monkeypatch.setattr(start_times.time, "thread_time", lambda: next(spent, 103.0))

    assert renew_start_times()
    assert not renew_start_times()

    row = LookAhead.objects.get(pk=1)
    assert row.processor_seconds == pytest.approx(3.0)
    pause = (row.next_at - timezone.now()).total_seconds()
    assert pause == pytest.approx(3.0 / conf().forecast_share, abs=5.0)


def test_a_worker_that_died_while_looking_is_followed_by_another_one():
    crowd()
    LookAhead.objects.create(pk=1, next_at=timezone.now() - timedelta(seconds=1))

    assert renew_start_times()


def test_looking_ahead_changes_nothing_that_a_session_reads():
    crowd()
    before = Change.objects.count()
    groups = list(PodGroup.objects.order_by("pk").values())

    renew_start_times()

    assert Change.objects.count() == before
    assert list(PodGroup.objects.order_by("pk").values()) == groups


def ended(name, seconds, **fields):
    gang = job(name, replicas=2).podgroup
    began = timezone.now() - timedelta(hours=1)
    values = {
        "phase": "Completed",
        "started_at": began,
        "finished_at": began + timedelta(seconds=seconds),
        "owner": "ann",
    }
    PodGroup.objects.filter(pk=gang.pk).update(**{**values, **fields})


def test_run_times_are_learnt_from_gangs_that_have_ended():
    for number in range(6):
        ended(f"done-{number}", 100.0 + number)
    ended("evicted", 9_000.0, evictions=1)
    job("waits")

    learn_run_times()

    row = LearntRunTime.objects.get(user="ann", queue="default", size="cpu-8")
    assert row.count == 6
    assert row.quantiles[10] == pytest.approx(102.5)
    assert LearntRunTime.objects.filter(user=ANY, queue="default", size="cpu-8").exists()


def test_the_table_of_run_times_is_written_anew():
    LearntRunTime.objects.create(user="x", queue="y", size="z", count=9, quantiles=[])

    learn_run_times()

    assert not LearntRunTime.objects.exists()
