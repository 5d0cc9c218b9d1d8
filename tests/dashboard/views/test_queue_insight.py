"""The tree sorted by figures, pinned queues, what changed lately, and queues side by side."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduler.models import Preference, Queue, QueueSample
from tests.dashboard.work import signed_in, small_cluster, text
from tests.worlds import queue

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def order(answer: Any, table: str = "queue-tree") -> list[str]:
    drawn = text(answer).partition(f'id="{table}"')[2].partition("</table>")[0]
    return re.findall(r'data-key="([^"]+)"', drawn)


def unchanged() -> None:
    long_ago = timezone.now() - timedelta(days=2)
    Queue.objects.update(state_since=long_ago)
    QueueSample.objects.all().delete()


def test_siblings_of_the_tree_are_sorted_by_any_figure():
    client = signed_in("admin")

    up = client.get("/queues/", {"sort": "deserved:cpu", "levels": "0"})
    down = client.get("/queues/", {"sort": "-deserved:cpu", "levels": "0"})
    unknown = client.get("/queues/", {"sort": "colour", "levels": "0"})

    assert order(up).index("language") < order(up).index("vision")
    assert order(down).index("vision") < order(down).index("language")
    assert order(down).index("research") < order(down).index("batch")
    assert order(unknown)[0] == "root"
    assert order(unknown) != order(down)


def test_the_flat_table_is_sorted_over_all_queues():
    answer = signed_in("admin").get("/queues/", {"view": "table", "sort": "-cpu"})

    assert order(answer)[:3] == ["root", "research", "vision"]


def test_a_pinned_queue_is_on_top_for_who_pinned_it_alone():
    sam = signed_in("sam")

    sam.post("/queues/-/pinned/", {"queue": "vision", "pinned": "1"})

    assert order(sam.get("/queues/"), "pinned-queues") == ["vision"]
    assert "pinned-queues" not in text(signed_in("admin").get("/queues/"))
    sam.post("/queues/-/pinned/", {"queue": "vision", "pinned": "0"})
    assert Preference.objects.get(user__username="sam").pinned_queues == []


def test_a_queue_out_of_sight_cannot_be_pinned():
    answer = signed_in("sam").post("/queues/-/pinned/", {"queue": "batch", "pinned": "1"})

    assert answer.status_code in (403, 404)
    assert not Preference.objects.filter(user__username="sam").exists()


def test_pins_over_the_api_keep_their_order_and_their_number():
    client = signed_in("admin")
    where = "/api/v1/users/admin/preferences/"

    kept = client.patch(
        where, {"spec": {"pinned": ["vision", "batch", "nothing"]}}, content_type="application/json"
    )
    for number in range(21):
        queue(f"more-{number}")
    many = [f"more-{number}" for number in range(21)]
    refused = client.patch(where, {"spec": {"pinned": many}}, content_type="application/json")

    assert kept.json()["spec"]["pinned"] == ["vision", "batch"]
    assert refused.status_code == 400
    assert "20 queues" in refused.json()["detail"] + str(refused.json()["violations"])


@pytest.mark.both_databases
def test_only_queues_that_changed_are_listed_with_what_is_above_them():
    unchanged()
    now = timezone.now()
    QueueSample.objects.create(queue_name="batch", seconds=QueueSample.RAW, at=now, data={})
    Queue.objects.filter(name="language").update(state_since=now)

    page = signed_in("admin").get("/queues/", {"changed": "1h", "levels": "0"})
    answer = signed_in("admin").get("/api/v1/queuefigures/", {"changedWithin": "1h"}).json()

    assert set(order(page)) == {"root", "batch", "research", "language"}
    changed = {row["name"]: row["changed"] for row in answer["status"]["queues"]}
    assert changed == {"batch": ["figures"], "language": ["state"]}


def test_up_to_four_queues_are_compared_on_one_scale():
    answer = signed_in("admin").get("/queues/-/compare/", {"q": ["vision", "batch"]})

    assert answer.status_code == 200
    cpu = next(line for line in answer.context["lines"] if line["resource"] == "cpu")
    assert [cell["queue"] for cell in cpu["cells"]] == ["vision", "batch"]
    assert "12 CPU" in cpu["cells"][0]["text"]
    assert [line["queue"] for line in answer.context["chart"]["lines"]] == ["vision", "batch"]


def test_the_comparison_keeps_the_navigation():
    answer = signed_in("admin").get("/queues/-/compare/", {"q": ["vision", "batch"]})

    assert 'href="/insights/usage/"' in answer.content.decode()


def test_a_comparison_says_which_queue_there_is_not():
    seen = signed_in("vera").get("/queues/-/compare/", {"q": ["vision", "batch"]})
    many = signed_in("admin").get(
        "/queues/-/compare/", {"q": ["root", "vision", "batch", "language", "research"]}
    )

    assert seen.status_code == 400
    assert "There is no queue “batch” that you may see." in text(seen)
    assert seen.context["names"] == ["vision"]
    assert len(many.context["names"]) == 4
    assert "4 queues are the most" in text(many)


def test_ticked_queues_lead_to_their_comparison():
    answer = signed_in("admin").get("/queues/-/compare/", {"queue": ["vision", "batch"]})

    assert answer.url == "/queues/-/compare/?q=vision&q=batch"


def test_the_api_compares_and_refuses_what_it_does_not_know():
    client = signed_in("admin")

    both = client.get("/api/v1/queuefigures/", {"queue": "vision,batch"}).json()
    sorts = client.get("/api/v1/queuefigures/", {"sort": "-deserved:cpu"}).json()

    names = [row["name"] for row in both["status"]["queues"]]
    assert names == ["vision", "batch"]
    assert both["status"]["queues"][0]["resources"]["cpu"]["limit"] == "12"
    assert both["status"]["queues"][0]["waits"]["reasons"]
    ordered = [row["name"] for row in sorts["status"]["queues"]]
    assert ordered.index("vision") < ordered.index("language")
    for given in ({"queue": "nothing"}, {"sort": "colour"}, {"changedWithin": "soon"}):
        refused = client.get("/api/v1/queuefigures/", given)
        assert refused.status_code == 400
        assert refused.json()["violations"][0]["field"] == next(iter(given))


@pytest.mark.parametrize(
    "address", ["/queues/?sort=-pending:cpu&changed=1h", "/queues/-/compare/?q=vision&q=batch"]
)
def test_the_number_of_queries_does_not_grow_with_the_queues(address: str):
    client = signed_in("admin")
    client.get(address)

    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        return len(queries)

    before = asked()
    for number in range(10):
        queue(f"more-{number}", "research")

    assert asked() == before
