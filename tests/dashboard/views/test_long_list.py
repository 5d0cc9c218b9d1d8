"""What a page asks for while somebody scrolls through many jobs."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.models import PodGroup, Queue
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]

MANY = 120


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def add(first: int, last: int, queue: str = "vision") -> list[PodGroup]:
    here = Queue.objects.get(name=queue)
    return PodGroup.objects.bulk_create(
        PodGroup(namespace="many", name=f"job-{number}", queue=here, phase="Pending")
        for number in range(first, last)
    )


def ask(who: str, part: str, **parameters: Any) -> Any:
    return signed_in(who).get(
        "/jobs/", {"q": "namespace:many", **parameters}, headers={"X-Rows": part}
    )


def test_the_ends_of_pages_lead_to_every_row():
    made = add(0, MANY)
    ends = ask("admin", "ends").json()

    second = text(ask("admin", "rows", before=ends["ends"][0]))

    assert ends["rows"] == MANY
    assert ends["ends"] == [made[-50].pk, made[-100].pk]
    assert second.count("<tr ") == 50
    assert f'data-row="{made[-51].pk}"' in second
    assert f'data-row="{made[-50].pk}"' not in second
    assert "<html" not in second


def test_oldest_first_they_are_counted_from_the_other_end():
    made = add(0, MANY)

    assert ask("admin", "ends", sort="oldest").json()["ends"] == [made[49].pk, made[99].pk]


def test_who_sees_one_queue_is_told_nothing_of_others():
    add(0, MANY, queue="batch")

    assert ask("vera", "ends").json() == {"rows": 0, "ends": []}
    assert "<tr" not in text(ask("vera", "rows"))


def test_rows_far_down_cost_as_many_queries():
    add(0, MANY)
    client = signed_in("admin")
    found = []
    for before in (10**9, PodGroup.objects.latest("pk").pk - 60):
        with CaptureQueriesContext(connection) as queries:
            client.get("/jobs/", {"before": before}, headers={"X-Rows": "rows"})
        found.append(len(queries))

    assert found[0] == found[1]
