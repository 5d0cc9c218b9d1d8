"""Pages with 1,000 queues and 100,000 jobs of which a fifth waits: server times are reported, the
number of queries must be that of a tenth of the jobs. JOBS and QUEUES set other sizes; BENCH_OUT
names a file that the report goes to as well, which PostgreSQL's process needs.

python -m pytest tests/bench/test_jobs_at_scale.py -s
"""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler.domain.resources import Resources
from scheduler.models import Job, PodGroup, Queue, QueueFigures
from scheduler.selectors.jobs.listing import REASON_CODES
from tests.dashboard.sample import amounts, load_tree

JOBS = int(os.environ.get("JOBS", "100000"))
QUEUES = int(os.environ.get("QUEUES", "1000"))
PAGES = (
    "/jobs/",
    "/jobs/?q=state:waiting",
    "/jobs/?q=user:user-7",
    "/jobs/?q=state:failed",
    "/jobs/?group=user&q=state:waiting",
    "/jobs/?group=queue&q=state:waiting",
    "/jobs/?group=shape&q=state:waiting",
    "/jobs/?group=user",
    "/api/v1/jobs/facets/",
    "/queues/",
    "/queues/?sort=-pending:nvidia.com/gpu",
    "/queues/?view=table&sort=-nvidia.com/gpu",
    "/queues/?changed=1h",
    "/queues/-/compare/?q=queue-1&q=queue-2&q=queue-3&q=queue-4",
)


def add_queues() -> list[Queue]:
    load_tree()
    root = Queue.objects.get(name="root")
    queues = Queue.objects.bulk_create(
        Queue(name=f"queue-{number}", parent=root, deserved=amounts(1, 4, "16Gi"))
        for number in range(QUEUES)
    )
    QueueFigures.objects.bulk_create(
        QueueFigures(
            queue=queue,
            allocated=amounts(place % 9, place % 77, f"{place % 300}Gi"),
            deserved=amounts(4, 40, "200Gi"),
            request=amounts(9, 80, "300Gi"),
        )
        for place, queue in enumerate(queues)
    )
    return queues


def add_jobs(queues: list[Queue], first: int, last: int) -> None:
    for start in range(first, last, 10_000):
        numbers = range(start, min(last, start + 10_000))
        jobs = Job.objects.bulk_create((_job(number, queues) for number in numbers), 2000)
        PodGroup.objects.bulk_create((_gang(job) for job in jobs), 2000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _job(number: int, queues: list[Queue]) -> Job:
    phase = ("Completed", "Failed", "Terminated")[number % 3]
    if number % 5 == 0:
        phase = "Pending"
    elif number % 50 == 1:
        phase = "Running"
    return Job(
        namespace=f"namespace-{number % 20}",
        name=f"job-{number}",
        queue=queues[number * 7 % len(queues)],
        owner=f"user-{number % 200}",
        min_available=1,
        phase=phase,
    )


def _gang(job: Job) -> PodGroup:
    size = 1 + job.pk % 8
    phase = {"Pending": "Pending", "Running": "Running"}.get(job.phase, "Completed")
    return PodGroup(
        namespace=job.namespace,
        name=job.name,
        queue_id=job.queue_id,
        job=job,
        owner=job.owner,
        priority=job.pk % 5 * 100,
        min_member=size,
        size=size,
        min_resources=Resources.parse({"cpu": str(4 * size), "nvidia.com/gpu": str(size)}),
        phase=phase,
        reason_code=REASON_CODES[job.pk % 8] if phase == "Pending" else "",
    )


def report(line: str) -> None:
    print(line)
    if path := os.environ.get("BENCH_OUT"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def asked(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200
    return len(queries)


def milliseconds(client: Client, path: str) -> tuple[float, float]:
    """Of the clock and of this process's CPU, the median of three."""
    clock, processor = [], []
    for _ in range(3):
        began, before = time.perf_counter(), time.process_time()
        client.get(path)
        clock.append((time.perf_counter() - began) * 1000)
        processor.append((time.process_time() - before) * 1000)
    return statistics.median(clock), statistics.median(processor)


@pytest.mark.both_databases
@pytest.mark.django_db
def test_pages_of_many_jobs_and_queues():
    queues = add_queues()
    client = Client()
    client.force_login(get_user_model().objects.create(username="admin", is_superuser=True))
    add_jobs(queues, 0, JOBS // 10)
    few: dict[str, Any] = {}
    for path in PAGES:
        asked(client, path)
        few[path] = asked(client, path)
    add_jobs(queues, JOBS // 10, JOBS)

    report(f"\n{connection.vendor}: {len(queues)} queues, {JOBS} jobs")
    different = {}
    for path in PAGES:
        queries = asked(client, path)
        clock, processor = milliseconds(client, path)
        report(f"  {clock:7.0f} ms  {processor:7.0f} ms CPU  {queries:3} queries  {path}")
        if queries != few[path]:
            different[path] = (few[path], queries)
    assert different == {}
