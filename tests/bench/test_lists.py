"""Every list page with 1,000 and with 100,000 jobs: the CPU time that the server and its SQLite
take is reported, the number of queries must be the same.

python -m pytest tests/bench/test_lists.py -s
"""

from __future__ import annotations

import os
import statistics
import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduler.domain.resources import Resources
from scheduler.models import (
    AuditEntry,
    Event,
    Job,
    Pod,
    PodClass,
    PodGroup,
    Queue,
    SchedulingSession,
)
from tests.dashboard.work import small_cluster

FEW = 1_000
MANY = int(os.environ.get("JOBS", "100000"))
PAGES = (
    "/jobs/",
    "/jobs/?q=state:waiting",
    "/jobs/?q=state:failed",
    "/jobs/?q=user:user-7",
    "/jobs/?q=queue:research/*+state:finished",
    "/jobs/?q=cpu>=2",
    "/jobs/?sort=oldest",
    "/jobs/default/train-2/",
    "/nodes/",
    "/nodes/?view=map",
    "/activity/",
    "/activity/?kind=Job",
    "/audit/",
    "/sessions/",
    "/users/",
)
_ENDED = ("Completed", "Completed", "Completed", "Failed", "Terminated")


def add_jobs(first: int, last: int) -> None:
    """Jobs that have ended, as most have, each with a gang, a pod, an event and an entry in the
    audit log.
    """
    queues = list(Queue.objects.filter(name__in=("vision", "language", "batch")).order_by("name"))
    pod_class = PodClass.objects.first()
    assert pod_class is not None
    now = timezone.now()
    for start in range(first, last, 10_000):
        numbers = range(start, min(last, start + 10_000))
        jobs = Job.objects.bulk_create(
            [_job(number, queues, now) for number in numbers], batch_size=2000
        )
        groups = PodGroup.objects.bulk_create([_group(job) for job in jobs], batch_size=2000)
        Pod.objects.bulk_create([_pod(group, pod_class) for group in groups], batch_size=2000)
        Event.objects.bulk_create([_event(job, now) for job in jobs], batch_size=2000)
        AuditEntry.objects.bulk_create([_entry(job) for job in jobs], batch_size=2000)
        SchedulingSession.objects.bulk_create(
            [_session(number, now) for number in numbers], batch_size=2000
        )


def _job(number: int, queues: list[Queue], now: Any) -> Job:
    ended = now - timedelta(seconds=number)
    return Job(
        namespace="many",
        name=f"job-{number}",
        queue=queues[number % len(queues)],
        owner=f"user-{number % 17}",
        min_available=1,
        phase=_ENDED[number % len(_ENDED)],
        started_at=ended,
        finished_at=ended,
    )


def _group(job: Job) -> PodGroup:
    asked = Resources.parse({"cpu": str(1 + job.pk % 8)})
    return PodGroup(
        namespace="many",
        name=job.name,
        queue_id=job.queue_id,
        job=job,
        owner=job.owner,
        phase="Completed",
        min_resources=asked,
        started_at=job.started_at if job.pk % 3 else None,
    )


def _pod(group: PodGroup, pod_class: PodClass) -> Pod:
    return Pod(
        namespace="many",
        name=f"{group.name}-worker-0",
        podgroup=group,
        pod_class=pod_class,
        task="worker",
        phase="Succeeded",
    )


def _event(job: Job, now: Any) -> Event:
    at = now - timedelta(seconds=job.pk)
    return Event(
        kind="Job",
        namespace="many",
        name=job.name,
        queue_name="batch",
        reason=job.phase,
        first_at=at,
        last_at=at,
    )


def _entry(job: Job) -> AuditEntry:
    return AuditEntry(
        actor=job.owner,
        door="API",
        action="SubmitJob",
        kind="Job",
        namespace="many",
        name=job.name,
        queue_name="batch",
        after={"queue": "batch"},
    )


def _session(number: int, now: Any) -> SchedulingSession:
    at = now - timedelta(seconds=number)
    return SchedulingSession(
        number=1_000_000 + number,
        state="Done",
        started_at=at,
        finished_at=at,
        durations={"read": 1.0, "think": 4.0, "write": 2.0},
    )


def measured(client: Client, path: str) -> tuple[float, int]:
    client.get(path)
    taken = []
    for _ in range(5):
        began = time.process_time()
        answer = client.get(path)
        taken.append((time.process_time() - began) * 1000)
        assert answer.status_code == 200
    with CaptureQueriesContext(
        connection,
    ) as queries:
        client.get(path)
    return statistics.median(taken), len(queries)


@pytest.mark.django_db(
    transaction=True
)  # committed rows: inside one long transaction SQLite reads slower the more it has written
def test_lists_do_not_grow_with_the_tables():
    small_cluster()
    client = Client()
    client.force_login(get_user_model().objects.get(username="admin"))
    add_jobs(0, FEW)
    few = {path: measured(client, path) for path in PAGES}
    add_jobs(FEW, MANY)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    many = {path: measured(client, path) for path in PAGES}

    print(f"\n{'page':<44} {FEW:>8} jobs      {MANY:>8} jobs      queries")
    for path in PAGES:
        print(
            f"{path:<44} {few[path][0]:>9.1f} ms      {many[path][0]:>9.1f} ms      "
            f"{few[path][1]} and {many[path][1]}"
        )
    assert {path: count for path, (_, count) in few.items()} == {
        path: count for path, (_, count) in many.items()
    }
