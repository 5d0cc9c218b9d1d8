"""/insights/forecasts/, its API, and expected starts on the pages of jobs."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.templatetags.times import moment
from scheduler.domain.start_forecasts import Why
from scheduler.models import ExpectedStart, PodGroup, StartForecast
from scheduler.selectors.jobs.start_times import FEWEST
from tests.dashboard.clients import reader_of
from tests.dashboard.work import text as source
from tests.worlds import job, node, queue, run_session

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _past_forecasts() -> None:
    """Of research 15 of 20 held, of secret none, and of batch there are too few."""
    for name in ("research", "secret", "batch"):
        queue(name)
    foretold("research", 15, actual=100.0)
    foretold("research", 5, actual=900.0)
    foretold("secret", FEWEST, actual=900.0)
    foretold("batch", 3, actual=100.0, size="cpu-1")


def text(answer):
    """What a reader sees of a page."""
    return " ".join(re.sub(r"<[^>]*>", " ", source(answer)).split())


def foretold(queue_name, count, *, actual, size="gpu-8", **fields):
    made_at = timezone.now() - timedelta(hours=1)
    rows = []
    for number in range(count):
        values = {
            "podgroup_number": 1000 + number,
            "podgroup_name": f"default/old-{number}",
            "queue_name": queue_name,
            "size": size,
            "made_at": made_at,
            "low": 50.0,
            "median": 90.0,
            "high": 150.0,
            "earliest": 60.0,
            "latest": 180.0,
            "actual": actual,
            "ended_at": made_at + timedelta(seconds=actual or 0),
        }
        rows.append(StartForecast(**{**values, **fields}))
    StartForecast.objects.bulk_create(rows)


@pytest.fixture
def reader() -> Client:
    """May see research only."""
    return reader_of("research")


def test_the_page_shows_coverage_and_error_by_queue_and_size(root_admin):
    words = text(root_admin.get("/insights/forecasts/"))

    assert "research 5 to 8 GPUs 20 75 % 15 of 20 10 s 2 min" in words
    assert "batch up to 1 CPU 3 too few: 3 of 20 – –" in words
    assert "stated: 80 %" in words


def test_a_reader_sees_only_the_queues_that_they_may_see(reader):
    words = text(reader.get("/insights/forecasts/"))

    assert "research" in words
    assert "secret" not in words
    rows = reader.get("/api/v1/forecasts/").json()["status"]["rows"]
    assert [row["queue"] for row in rows] == ["research"]


def test_whoever_has_no_role_is_told_so():
    client = Client()
    client.force_login(get_user_model().objects.create_user("newcomer", password="x" * 12))

    assert client.get("/insights/forecasts/").status_code == 403


def test_the_api_says_the_same_in_figures(root_admin):
    status = root_admin.get("/api/v1/forecasts/?queue=research&window=24h").json()["status"]

    assert status["stated"] == 0.8
    assert status["rows"] == [
        {
            "queue": "research",
            "size": "gpu-8",
            "known": 20,
            "held": 15,
            "coverage": 0.75,
            "medianErrorSeconds": 10.0,
            "medianWidthSeconds": 120.0,
            "message": "",
        }
    ]
    assert status["whole"]["known"] == 20
    assert root_admin.get("/api/v1/forecasts/?window=1y").status_code == 400


@pytest.mark.parametrize("address", ["/insights/forecasts/?format=csv", "/api/v1/forecasts/"])
def test_both_give_it_as_csv(root_admin, address):
    answer = root_admin.get(address, headers={"Accept": "text/csv"})

    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert lines[0].startswith("queue,size,known,held,coverage")
    assert "research,gpu-8,20,15,0.75,10.0,120.0," in lines


def test_a_gang_that_is_late_counts_as_a_miss_before_it_starts(root_admin):
    StartForecast.objects.all().delete()
    foretold("research", FEWEST, actual=None, ended_at=None)
    foretold("batch", FEWEST, actual=None, ended_at=None, made_at=timezone.now())

    rows = root_admin.get("/api/v1/forecasts/").json()["status"]["rows"]

    assert [(row["queue"], row["known"], row["held"]) for row in rows] == [("research", FEWEST, 0)]


def test_gangs_that_went_without_a_start_are_left_out(root_admin):
    StartForecast.objects.all().delete()
    foretold("research", FEWEST, actual=None, ended_at=timezone.now())

    assert root_admin.get("/api/v1/forecasts/").json()["status"]["rows"] == []
    assert "Nothing could be compared yet" in text(root_admin.get("/insights/forecasts/"))


# Jobs


@pytest.fixture
def gang() -> PodGroup:
    node("n1", cpu="4")
    job("first", "research", replicas=4)
    run_session()
    found = job("big", "research", replicas=4).podgroup
    run_session()
    return found


def expect(gang, **fields):
    now = timezone.now()
    values = {
        "podgroup_number": gang.pk,
        "made_at": now,
        "earliest_at": now + timedelta(minutes=10, seconds=5),
        "latest_at": now + timedelta(minutes=40, seconds=5),
        "cases": 50,
    }
    return ExpectedStart.objects.create(**{**values, **fields})


def test_the_list_of_jobs_says_when_each_starts(root_admin, gang):
    expect(gang)

    assert "in 10 min to 40 min" in text(root_admin.get("/jobs/"))


def test_the_page_of_a_job_says_between_when_and_when(root_admin, gang):
    found = expect(gang)

    answer = root_admin.get("/jobs/default/big/")

    between = f"between {moment(found.earliest_at)} and {moment(found.latest_at)}"
    assert between in answer.content.decode()
    assert "from 50 earlier forecasts" in text(answer)


def test_where_there_is_no_estimate_the_page_says_why(root_admin, gang):
    expect(gang, earliest_at=None, latest_at=None, why=Why.FEW_FORECASTS)

    words = text(root_admin.get("/jobs/default/big/"))

    assert "No estimate of its start: Too few forecasts of such waits" in words
    assert "no estimate" in text(root_admin.get("/jobs/"))


def test_explain_has_the_range_with_its_stated_coverage(root_admin, gang):
    expect(gang)

    found = root_admin.get("/api/v1/podgroups/default/big/explain/").json()["expectedStart"]

    assert found["coverage"] == 0.8
    assert found["cases"] == 50
    assert found["earliest"] < found["latest"]
    assert found["noEstimate"] == ""


def test_explain_has_nothing_where_nobody_has_looked(root_admin, gang):
    assert root_admin.get("/api/v1/podgroups/default/big/explain/").json()["expectedStart"] is None


@pytest.mark.parametrize("kind", ["jobs", "podgroups"])
def test_lists_and_objects_of_the_api_have_it_while_the_gang_waits(root_admin, gang, kind):
    expect(gang)
    one = f"/api/v1/{kind}/default/big/"
    asked = f"/api/v1/{kind}/?fields=metadata.name,status.expectedStart"

    def told() -> list[object]:
        (listed,) = root_admin.get(f"/api/v1/{kind}/?search=big").json()["results"]
        (cut,) = root_admin.get(f"{asked}&search=big").json()["results"]
        whole = root_admin.get(one).json()
        return [found["status"]["expectedStart"] for found in (listed, cut, whole)]

    first = told()
    assert [start["cases"] for start in first] == [50, 50, 50]

    ExpectedStart.objects.update(cases=60, made_at=timezone.now())  # the next look
    assert [start["cases"] for start in told()] == [60, 60, 60]

    PodGroup.objects.filter(pk=gang.pk).update(phase="Running")
    assert told() == [None, None, None]


def test_a_list_asks_once_for_the_starts_of_all(root_admin, gang, django_assert_max_num_queries):
    expect(gang)
    with CaptureQueriesContext(connection) as few:
        root_admin.get("/api/v1/podgroups/")
    for number in range(5):
        expect(job(f"more-{number}", "research", replicas=4).podgroup)

    with django_assert_max_num_queries(len(few)):
        root_admin.get("/api/v1/podgroups/")
