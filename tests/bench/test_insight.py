"""The map of 5,000 nodes and a year on the timeline: the CPU time of the server, the number of
queries and the size of the page are reported.

NODES=5000 EVICTIONS=100000 python -m pytest tests/bench/test_insight.py -s
"""

from __future__ import annotations

import os
import statistics
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduler.domain.resources import Resources
from scheduler.models import AuditEntry, Eviction, Node
from tests.dashboard.work import signed_in, small_cluster

NODES = int(os.environ.get("NODES", "5000"))
EVICTIONS = int(os.environ.get("EVICTIONS", "100000"))
ENTRIES = EVICTIONS // 10
PAGES = (
    "/nodes/?view=map",
    "/nodes/n1/waiting/",
    "/nodes/-/room/",
    "/nodes/-/room/?queue=vision",
    "/insights/timeline/?span=24h",
    "/insights/timeline/?span=1y",
)
ROUNDS = 5


def grow() -> None:
    has = Resources.parse({"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"})
    nodes = []
    for number in range(NODES):
        labels = {"rack": f"r{number // 40:03d}"}
        nodes.append(Node(name=f"big-{number:05d}", allocatable=has, labels=labels))
    Node.objects.bulk_create(nodes, batch_size=1000)
    _fill_a_year()


def _fill_a_year() -> None:
    now = timezone.now()
    evictions = []
    for number in range(EVICTIONS):
        evictions.append(
            Eviction(
                session_number=number,
                pod_name=f"default/p-{number}",
                podgroup_name=f"default/g-{number % 500}",
                queue_name="vision",
                action="reclaim",
                created_at=now - timedelta(days=365) * (number / EVICTIONS),
            )
        )
    Eviction.objects.bulk_create(evictions, batch_size=2000)
    entries = []
    for number in range(ENTRIES):
        action = ("UpdateQueue", "SuspendQueue", "ResumeQueue")[number % 3]
        entry = AuditEntry(
            action=action, kind="Queue", name="vision", queue_name="vision", door="UI"
        )
        entries.append(entry)
    made = AuditEntry.objects.bulk_create(entries, batch_size=2000)
    assert len(made) == ENTRIES


def measure(client: Client, path: str) -> tuple[float, int, int]:
    """Milliseconds of CPU in this process, queries, bytes."""
    client.get(path)
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        answer = client.get(path)
        taken.append(1000 * (time.process_time() - began))
    with CaptureQueriesContext(connection) as queries:
        client.get(path)
    return statistics.median(taken), len(queries), len(answer.content)


@pytest.mark.django_db
def test_the_map_and_the_timeline_with_much_to_show():
    small_cluster()
    client = signed_in("admin")
    before = {path: measure(client, path) for path in PAGES}
    grow()

    print(f"\n{NODES} nodes, {EVICTIONS} evictions in a year, {ENTRIES} entries of the audit log")
    for path in PAGES:
        milliseconds, queries, size = measure(client, path)
        print(f"{path:40} {milliseconds:8.0f} ms {queries:4} queries {size / 1024:8.0f} KiB")
        assert queries <= before[path][1] + 2  # single marks are read where there are any
