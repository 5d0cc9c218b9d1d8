from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from scheduler.models import (
    BulkItem,
    BulkRun,
    Change,
    ChangeHorizon,
    Decision,
    Event,
    Eviction,
    Job,
    Pod,
    PodClass,
    QueueSample,
    SchedulingSession,
)
from scheduler.services.records import retention
from scheduler.services.records.events import EventNote, record_events
from scheduler.services.records.retention import KEPT, tidy_up
from tests.mirrored import kubernetes_mode
from tests.worlds import job

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def finished(name: str, phase: str, days: float, ttl: int | None = None) -> Job:
    made = job(name)
    Job.objects.filter(pk=made.pk).update(
        phase=phase,
        finished_at=timezone.now() - timedelta(days=days),
        ttl_seconds_after_finished=ttl,
    )
    return made


def test_rows_past_their_time_go_and_the_others_stay():
    _, _, kept = KEPT["sessions"]
    now = timezone.now()
    old = SchedulingSession.objects.create(
        number=1,
        state="Done",
        started_at=now - kept - timedelta(minutes=1),
    )
    SchedulingSession.objects.create(
        number=2,
        state="Done",
        started_at=now - kept + timedelta(minutes=1),
    )
    Decision.objects.create(
        session=old,
        kind="Bind",
        pod_name="a",
        action="allocate",
        created_at=now,
        done_at=now,
    )
    Eviction.objects.create(
        session=old,
        session_number=1,
        pod_name="a",
        podgroup_name="b",
        queue_name="c",
        action="reclaim",
        created_at=now,
    )

    tidy_up()

    assert [session.number for session in SchedulingSession.objects.all()] == [2]
    assert Eviction.objects.get().session_number == 1


def test_a_job_goes_when_its_time_to_live_is_over_with_all_it_had():
    finished("short", "Completed", days=0.1, ttl=60)
    finished("long", "Failed", days=0.1, ttl=86_400)
    finished("ages", "Failed", days=0.1, ttl=2**31 - 1)

    tidy_up()

    assert [row.name for row in Job.objects.all()] == ["ages", "long"]
    assert set(Pod.objects.values_list("podgroup__name", flat=True)) == {"ages", "long"}


def test_a_suspended_job_is_not_over_however_long_it_waits():
    finished("paused", "Aborted", days=400, ttl=60)
    finished("done", "Completed", days=400)

    tidy_up()

    assert [row.name for row in Job.objects.all()] == ["paused"]


def test_sign_ins_that_ran_out_and_runs_that_everybody_has_forgotten_go(django_user_model: Any):
    owner = django_user_model.objects.create_user("ada")
    now = timezone.now()
    for key, age in (("old", -1), ("new", 1)):
        Session.objects.create(
            session_key=key, session_data="", expire_date=now + timedelta(minutes=age)
        )
    old, new = (
        BulkRun.objects.create(owner=owner, action="AbortJob", state=BulkRun.DONE) for _ in range(2)
    )
    BulkItem.objects.create(run=old, namespace="default", name="train")
    BulkRun.objects.filter(pk=old.pk).update(created_at=now - timedelta(days=31))

    tidy_up()

    assert list(Session.objects.values_list("pk", flat=True)) == ["new"]
    assert list(BulkRun.objects.values_list("pk", flat=True)) == [new.pk]
    assert not BulkItem.objects.exists()


def test_events_of_pods_go_long_before_those_of_their_podgroups():
    hours_ago = timezone.now() - timedelta(hours=3)
    record_events(
        [EventNote("Pod", "a-0", "FailedScheduling"), EventNote("PodGroup", "a", "Unschedulable")],
        hours_ago,
    )

    tidy_up()

    assert [event.kind for event in Event.objects.all()] == ["PodGroup"]


def test_classes_that_no_pod_has_go():
    job("a", cpu="1")
    job("b", cpu="2")
    Job.objects.filter(name="a").delete()

    tidy_up()

    assert [dict(row.requests)["cpu"] for row in PodClass.objects.all()] == [2000]


def test_the_change_log_keeps_its_newest_entries_and_says_where_it_begins(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(retention, "CHANGES_KEPT", 5)
    for number in range(10):
        job(f"job-{number}")
    before = Change.objects.count()

    tidy_up()

    assert (
        Change.objects.count() < before
        or Change.objects.values("transaction").distinct().count() == 1
    )
    assert ChangeHorizon.objects.get().position > 0


def test_a_minute_is_rolled_up_only_when_no_session_can_still_be_writing_a_sample_of_it(
    monkeypatch: pytest.MonkeyPatch,
):
    noon = datetime(2026, 5, 4, 12, tzinfo=UTC)
    QueueSample.objects.create(
        queue_name="a",
        seconds=0,
        at=noon,
        data={"allocated": {"cpu": 1000}, "state": "Open"},
    )
    rolled = []
    for seconds in (61, 75):
        monkeypatch.setattr(
            retention.timezone,
            "now",
            lambda seconds=seconds: noon + timedelta(seconds=seconds),
        )
        tidy_up()
        rolled.append(QueueSample.objects.filter(seconds=60).count())

    assert rolled == [0, 1]


def test_jobs_of_a_real_cluster_stay_until_the_cluster_deletes_them():
    finished("old", "Completed", days=40)
    finished("short", "Completed", days=1, ttl=60)

    with kubernetes_mode():
        tidy_up()

    assert Job.objects.count() == 2
