"""The tree of 1,000 queues on the server, against `json.dumps` of its rows.

Reported, not asserted.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from dashboard.present.queues import page_resources, present_queues
from dashboard.present.row_html import TableOptions, queue_table_rows
from scheduler.models import PodGroup, Queue, QueueFigures
from scheduler.selectors.queues.listing import queue_rows
from tests.bench.noted import note_times
from tests.dashboard.sample import amounts, load_tree

TEAMS = 40
PER_TEAM = 25
GANGS = 10_000


def grow(number_of_teams: int = TEAMS) -> None:
    """Teams of 25 queues with figures, on three levels, and 10,000 gangs in them."""
    load_tree()
    root = Queue.objects.get(name="root")
    teams = Queue.objects.bulk_create(
        Queue(name=f"team-{team:02}", parent=root, weight=team + 1)
        for team in range(number_of_teams)
    )
    leaves = Queue.objects.bulk_create(
        Queue(
            name=f"{team.name}-{number:02}",
            parent=team,
            deserved=amounts(number, 4 * number, f"{16 * number}Gi"),
        )
        for team in teams
        for number in range(PER_TEAM)
    )
    QueueFigures.objects.bulk_create(
        QueueFigures(
            queue=queue,
            allocated=amounts(place % 9, place % 77, f"{place % 300}Gi"),
            deserved=amounts(4, 40, "200Gi"),
            request=amounts(9, 80, "300Gi"),
        )
        for place, queue in enumerate([*teams, *leaves])
    )
    phases = ("Pending", "Running", "Completed")
    PodGroup.objects.bulk_create(
        PodGroup(
            namespace="default",
            name=f"gang-{number}",
            queue=leaves[number % len(leaves)],
            phase=phases[number % 3],
        )
        for number in range(GANGS)
    )


def times_ms(work: Callable[[], Any], times: int = 7) -> list[float]:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def median_ms(work: Callable[[], Any]) -> float:
    return statistics.median(times_ms(work))


def an_admin() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username="admin", is_superuser=True))
    return client


@pytest.mark.django_db
def test_the_tree_of_ten_thousand_queues():
    grow(10 * TEAMS)
    client = an_admin()
    page = client.get("/queues/")

    whole = times_ms(lambda: client.get("/queues/"), 5)

    note_times("the whole page of 10,408 queues", whole, megabytes=len(page.content) / 1e6)
    print(f"\n10,408 queues: {statistics.median(whole):.0f} ms, {len(page.content) / 1e6:.2f} MB")


@pytest.mark.django_db
def test_the_tree_of_a_thousand_queues():
    grow()
    client = an_admin()
    board = queue_rows()
    rows = list(present_queues(board).values())
    page = client.get("/queues/")
    dumped = median_ms(lambda: json.dumps(rows))
    whole = times_ms(lambda: client.get("/queues/"))
    parts = {
        "read from the database": median_ms(queue_rows),
        "present": median_ms(lambda: present_queues(board)),
        "draw": median_ms(
            lambda: queue_table_rows(rows, TableOptions(tuple(page_resources(board))))
        ),
        "the whole page": statistics.median(whole),
    }
    note_times(
        f"the whole page of {len(rows):,} queues",
        whole,
        ratio=round(statistics.median(whole) / dumped, 2),
    )

    print(
        f"\n{len(rows)} queues, {GANGS} gangs; the page has {len(page.content) / 1e6:.2f} "
        f"MB; json.dumps of its rows takes {dumped:.1f} ms"
    )
    for part, taken in parts.items():
        print(f"  {part:24} {taken:7.1f} ms  {taken / dumped:4.1f} x json.dumps")
