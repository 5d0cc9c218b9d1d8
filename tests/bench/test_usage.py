"""Usage and fairness with a year of history and 1,000 queues: the CPU time of the server and its
SQLite is reported, the number of queries must be the same as with ten queues and a week.

QUEUES=1000 DAYS=365 python -m pytest tests/bench/test_usage.py -s
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduler.models import Queue, UsageRow
from tests.worlds import queue

FEW = (10, 7)
MANY = (int(os.environ.get("QUEUES", "1000")), int(os.environ.get("DAYS", "365")))
USERS = 3
PAGES = (
    "/insights/usage/?window=30d&resource=cpu",
    "/insights/usage/?window=365d&resource=cpu",
    "/insights/usage/?window=365d&resource=cpu&by=user",
    "/api/v1/usage/?window=30d&resource=cpu",
    "/api/v1/usage/?window=365d&resource=cpu",
    "/insights/fairness/?window=365d&resource=cpu",
)


def add_history(queues: int, days: int) -> None:
    for number in range(queues):
        if not Queue.objects.filter(name=f"q-{number}").exists():
            queue(f"q-{number}")
    UsageRow.objects.all().delete()
    for some in _days(queues, days):
        UsageRow.objects.bulk_create(some, batch_size=5000)


def _days(queues: int, days: int) -> Iterator[list[UsageRow]]:
    today = datetime.combine(timezone.now().date(), datetime.min.time(), UTC)
    for back in range(days):
        at = today - timedelta(days=back)
        rows = [_row("cluster", at, used=queues * 10**7, deserved=queues * 10**8)]
        for number in range(queues):
            name = f"q-{number}"
            rows.append(_row("queue", at, name, used=10**7, deserved=10**8, owed=10**6))
            for user in range(USERS):
                rows.append(_row("user", at, name, f"user-{number % 50}-{user}", used=10**6))
        yield rows


def _row(grain: str, at: datetime, name: str = "", owner: str = "", **figures: int) -> UsageRow:
    return UsageRow(
        grain=grain,
        seconds=UsageRow.DAY,
        resource="cpu",
        at=at,
        queue_name=name,
        owner=owner,
        **figures,
    )


def _measured(client: Client, path: str) -> tuple[float, int]:
    client.get(path)
    with CaptureQueriesContext(connection) as queries:
        began = time.process_time()
        answer = client.get(path)
        spent = time.process_time() - began
    assert answer.status_code == 200
    return spent, len(queries)


@pytest.mark.django_db(transaction=True)
def test_pages_ask_as_often_with_a_year_of_many_queues():
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("admin", password="x" * 12))
    add_history(*FEW)
    few = {path: _measured(client, path) for path in PAGES}

    add_history(*MANY)

    for path in PAGES:
        spent, queries = _measured(client, path)
        before = few[path][0] * 1000
        print(f"{path}: {spent * 1000:.0f} ms, {queries} queries; with few {before:.0f} ms")
        assert queries == few[path][1], path
