"""/insights/timeline/ and its API: what happened on one axis, as far as the reader may know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import (
    AuditEntry,
    Eviction,
    ExpectedStart,
    PodGroup,
    SavedScenario,
    SchedulingSession,
)
from scheduler.services.cluster.simulation import lose_node
from scheduler.services.queues.commands import command_queue
from tests.dashboard.work import person, signed_in, small_cluster, text

PAGE = "/insights/timeline/"
API = "/api/v1/timeline/"


pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def evicted(number: int, at: datetime, queue: str = "vision") -> None:
    rows = []
    for index in range(number):
        rows.append(
            Eviction(
                session_number=1,
                pod_name=f"default/{queue}-{index}",
                podgroup_name=f"default/{queue}",
                queue_name=queue,
                action="reclaim",
                created_at=at + timedelta(seconds=index),
            )
        )
    Eviction.objects.bulk_create(rows)


def marks(name: str, query: str = "") -> list[dict[str, object]]:
    answer = signed_in(name).get(f"{API}?{query}")
    assert answer.status_code == 200, answer.json()
    return answer.json()["status"]["marks"]


def of_lane(found: list[dict[str, object]], lane: str) -> list[dict[str, object]]:
    return [mark for mark in found if mark["lane"] == lane]


@pytest.mark.both_databases
def test_many_evictions_are_one_mark_with_their_number_and_their_time():
    at = datetime(2026, 3, 1, 14, 0, tzinfo=UTC)
    evicted(37, at)

    (mark,) = marks("admin", "start=2026-03-01T00:00Z&end=2026-03-02T00:00Z&lane=evictions")

    assert (mark["count"], mark["message"]) == (37, "37 evictions of session 1")
    assert (mark["at"], mark["until"]) == ("2026-03-01T14:00:00Z", "2026-03-01T14:00:36Z")
    assert mark["url"] == "/sessions/1/"


def test_a_gathered_mark_leads_nearer_to_what_it_gathers():
    at = datetime(2026, 3, 1, 14, 0, tzinfo=UTC)
    evicted(30, at)
    Eviction.objects.filter(pk__in=Eviction.objects.values("pk")[:15]).update(session_number=2)

    (mark,) = marks("admin", "start=2026-03-01T00:00Z&end=2026-03-02T00:00Z&lane=evictions")
    nearer = marks("admin", str(mark["url"]).partition("?")[2])

    assert [one["count"] for one in nearer] == [10, 10, 10]


def test_deeds_on_queues_nodes_and_the_policy_have_their_lanes_and_pages():
    command_queue("vision", QueueCommand.SUSPEND, by=person("admin"))
    lose_node("n2", by=person("admin"))

    found = marks("admin", "span=1h")

    (state,) = of_lane(found, "queues")
    entry = AuditEntry.objects.get(action="SuspendQueue", name="vision")
    assert (state["message"], state["queue"]) == ("queue vision was suspended", "vision")
    assert state["url"] == f"/audit/{entry.pk}/"
    (lost,) = of_lane(found, "nodes")
    assert lost["message"] == "node n2 was lost"
    assert of_lane(marks("vera", "span=1h"), "nodes")[0]["url"] == "/nodes/n2/"


def test_expected_starts_are_marks_ahead_of_now():
    gang = PodGroup.objects.get(name="train-2")
    now = timezone.now()
    ExpectedStart.objects.create(
        podgroup_number=gang.pk,
        made_at=now,
        earliest_at=now + timedelta(minutes=5),
        latest_at=now + timedelta(minutes=20),
    )

    (mark,) = of_lane(marks("vera", "span=24h"), "forecasts")

    assert mark["ahead"] is True
    assert mark["message"] == "expected start of default/train-2"
    assert mark["url"] == "/jobs/default/train-2/"


def test_what_happened_to_other_tenants_is_not_told():
    command_queue("batch", QueueCommand.SUSPEND, by=person("admin"))
    evicted(3, timezone.now() - timedelta(minutes=5), "batch")

    for answer in (
        signed_in("vera").get(f"{PAGE}?span=1h"),
        signed_in("vera").get(f"{API}?span=1h"),
    ):
        assert "batch" not in text(answer)
    assert of_lane(marks("vera", "span=1h"), "evictions") == []
    assert signed_in("vera").get(f"{PAGE}?queue=batch").status_code == 404
    assert signed_in("vera").get(f"{API}?queue=batch").status_code == 400


def test_a_moment_is_opened_as_the_session_before_it_and_replayed():
    session = SchedulingSession.objects.order_by("number").first()
    at = (session.started_at + timedelta(milliseconds=1)).isoformat().replace("+00:00", "Z")

    answer = signed_in("admin").get(f"{API}?at={at}").json()["status"]["session"]
    page = text(signed_in("admin").get(PAGE, {"at": at, "replay": "1"}))

    assert (answer["number"], answer["kept"]) == (session.number, True)
    assert f"/sessions/{session.number}/" in page
    assert "Run again, it decides the same, bit for bit:" in page
    assert "Under the policy of today:" in page
    assert signed_in("vera").get(PAGE, {"at": at, "replay": "1"}).status_code == 403


def test_a_moment_that_is_not_kept_leads_to_the_nearest_that_is():
    first = SavedScenario.objects.order_by("session_number").first()
    idle = SchedulingSession.objects.create(
        number=first.session_number + 5000, started_at=timezone.now(), state="Done"
    )
    at = (idle.started_at + timedelta(milliseconds=1)).isoformat().replace("+00:00", "Z")
    nearest = SavedScenario.objects.order_by("-session_number").first()

    answer = signed_in("admin").get(f"{API}?at={at}").json()["status"]["session"]
    page = text(signed_in("vera").get(PAGE, {"at": at}))

    assert (answer["number"], answer["kept"]) == (idle.number, False)
    assert answer["nearestKept"]["number"] == nearest.session_number
    assert "it placed and evicted nothing, and such sessions are not kept." in page
    assert f"session {nearest.session_number}</a>" in page
    assert f"/sessions/{nearest.session_number}/" in text(
        signed_in("admin").get(f"/sessions/{idle.number}/")
    )
    SavedScenario.objects.all().delete()
    assert "No other session can either." in text(signed_in("vera").get(PAGE, {"at": at}))


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("span=2h", "span"),
        ("start=x", "start"),
        ("start=2026-01-02&end=2026-01-01", "end"),
        ("start=1999-01-01&end=2026-01-01", "start"),
        ("lane=gossip", "lane"),
        ("at=noon", "at"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(query: str, field: str):
    answer = signed_in("admin").get(f"{API}?{query}")

    assert answer.status_code == 400
    assert answer.json()["violations"][0]["field"] == field
    assert signed_in("admin").get(f"{PAGE}?{query}").status_code == 400


def test_a_year_of_history_takes_no_more_queries_and_few_marks():
    client = signed_in("admin")
    client.get(PAGE)
    with CaptureQueriesContext(connection) as few:
        client.get(f"{PAGE}?span=1y")
    now = timezone.now()
    for day in range(1, 360, 3):
        evicted(5, now - timedelta(days=day))

    with CaptureQueriesContext(connection) as many:
        page = client.get(f"{PAGE}?span=1y")

    assert len(many) <= len(few) + 1  # single marks are read where there are any
    assert text(page).count('class="mark') <= 7 * 130


def test_it_is_drawn_again_by_itself_while_it_holds_the_present():
    present = text(signed_in("admin").get(f"{PAGE}?span=24h"))
    past = text(signed_in("admin").get(f"{PAGE}?start=2026-01-01T00:00Z&end=2026-01-02T00:00Z"))

    assert 'data-poll="30000"' in present
    assert "data-poll" not in past
    assert "drawn at" in past


def test_the_same_marks_are_given_as_csv():
    evicted(2, timezone.now() - timedelta(minutes=5))

    table = text(signed_in("admin").get(f"{PAGE}?span=1h&format=csv"))

    assert table.splitlines()[0] == "lane,at,until,count,message,queue,kind,name,url"
    assert any(line.startswith("evictions,") for line in table.splitlines())
    answer = signed_in("admin").get(API, headers={"accept": "text/csv"})
    assert answer.headers["Content-Type"].startswith("text/csv")
