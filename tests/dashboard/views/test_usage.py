"""/insights/usage/ and its API: who used what, and who may know it."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler.domain.usage import Account
from scheduler.models import ClusterState, LossRow, UsageBook, UsageRow
from scheduler.services.usage.sums import Sums
from tests.dashboard.work import text as source
from tests.worlds import queue

pytestmark = [pytest.mark.django_db]
DAY = datetime(2026, 10, 5, tzinfo=UTC)
OCTOBER = "from=2026-10-01&to=2026-10-31&resource=gpu"
GPU = "nvidia.com/gpu"


def second(days: float) -> int:
    return int((DAY + timedelta(days=days)).timestamp())


def book(name: str, owner: str, days: float, hours: int, figure: str = "used") -> None:
    """GPU-hours of one job."""
    sums = Sums()
    account = Account(name, "default", owner, f"job-of-{owner}")
    sums.add_pod(account, second(days), figure, hours * 3600, {GPU: 1000})
    sums.write()


def deserve(name: str, days: float, hours: int, figure: str = "deserved") -> None:
    sums = Sums()
    sums.add_queue(name, second(days), GPU, figure, hours * 3600 * 1000)
    sums.write()


@pytest.fixture(autouse=True)
def _used() -> None:
    """team-a used 412 of the 960 GPU-hours that it deserved, batch 40 that it borrowed."""
    UsageBook.objects.create(pk=1, complete_until=second(26))
    queue("team-a")
    queue("batch")
    book("team-a", "ann", 0, 300)
    book("team-a", "bob", 8, 112)
    book("team-a", "bob", 8, 20, "lost")
    book("batch", "eve", 1, 40)
    book("batch", "eve", 1, 7, "waited")
    deserve("team-a", 0, 960)
    deserve("team-a", 1, 40, "lent")
    deserve("batch", 1, 40, "borrowed")
    deserve("", 0, 2000)


def text(answer) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", source(answer)).split())


def status(client: Client, query: str = OCTOBER) -> dict:
    answer = client.get(f"/api/v1/usage/?{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()["status"]


def test_the_api_says_what_each_queue_used_of_what_it_deserved(root_admin):
    found = status(root_admin)

    first, batch = found["rows"]
    assert first["message"] == "412 of 960 GPU-hours deserved, 43\u00a0%"
    assert (first["used"], first["lent"], first["lost"], first["idle"]) == (412, 40, 20, 508)
    assert first["usedSeconds"] == str(412 * 3600)
    assert (batch["name"], batch["used"], batch["borrowed"], batch["waited"]) == (
        "batch",
        40,
        40,
        7,
    )
    assert found["capacity"] == 2000
    assert found["message"] == "452 of 2\u202f000 GPU-hours that the cluster had, 23\u00a0%"
    assert status(root_admin, f"{OCTOBER}&by=user")["rows"][0]["message"] == (
        "300 of 452 GPU-hours used by all, 66\u00a0%"
    )


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("user", ["ann", "bob", "eve"]),
        ("namespace", ["default"]),
        ("job", ["default/job-of-ann", "default/job-of-bob", "default/job-of-eve"]),
    ],
)
def test_every_group_has_the_same_sum(root_admin, by, names):
    found = status(root_admin, f"{OCTOBER}&by={by}")

    assert [row["name"] for row in found["rows"]] == names
    assert sum(row["used"] for row in found["rows"]) == found["whole"]["used"] == 452


@pytest.mark.parametrize("step", ["day", "week", "month"])
def test_the_steps_add_up_to_the_rows(root_admin, step):
    found = status(root_admin, f"{OCTOBER}&step={step}")

    sums = {series["name"]: sum(filter(None, series["used"])) for series in found["series"]}
    assert sums == {"team-a": 412, "batch": 40}
    assert len(found["steps"]) == {"day": 31, "week": 5, "month": 1}[step]


def test_a_queue_is_shown_with_all_below_it_and_a_deleted_one_stays(root_admin):
    below = queue("old", "team-a")
    book("old", "ann", 3, 5)
    below.deleted_at = DAY + timedelta(days=4)
    below.save()

    found = status(root_admin, f"{OCTOBER}&queue=team-a")

    assert {row["name"]: row["used"] for row in found["rows"]} == {"team-a": 412, "old": 5}


def test_those_with_a_role_above_a_deleted_queue_read_its_past(batch_reader):
    below = queue("old", "batch")
    book("old", "ann", 3, 5)
    below.deleted_at = DAY + timedelta(days=4)
    below.save()

    assert {row["name"] for row in status(batch_reader)["rows"]} == {"batch", "old"}


def test_a_tenant_sees_neither_queues_nor_users_of_others(batch_reader):
    for by in ("queue", "user", "job"):
        query = f"{OCTOBER}&by={by}"
        for answer in (
            batch_reader.get(f"/insights/usage/?{query}"),
            batch_reader.get(f"/api/v1/usage/?{query}"),
            batch_reader.get(f"/insights/usage/?{query}&format=csv"),
        ):
            words = source(answer)
            assert "eve" in words or "batch" in words
            for hidden in ("team-a", "ann", "bob", "412", "452"):
                assert not re.search(rf"\b{hidden}\b", words), (by, hidden)


def test_a_queue_of_others_is_like_none(batch_reader):
    answer = batch_reader.get(f"/api/v1/usage/?{OCTOBER}&queue=team-a")

    assert answer.status_code == 400
    assert answer.json()["detail"] == "There is no queue “team-a” that you may see."


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("window=9d", "window"),
        ("from=yesterday", "from"),
        ("from=2026-10-01&to=2026-09-01", "from"),
        ("from=2020-01-01", "from"),
        ("from=2026-10-01&window=7d", "window"),
        ("by=colour", "by"),
        ("step=minute", "step"),
        ("window=365d&step=hour", "step"),
        ("resource=gold", "resource"),
        ("to=9999-12-31", "to"),
    ],
)
def test_what_cannot_be_is_refused_by_name(root_admin, query, field):
    answer = root_admin.get(f"/api/v1/usage/?{query}")

    assert answer.status_code == 400
    assert answer.json()["violations"][0]["field"] == field
    assert root_admin.get(f"/insights/usage/?{query}").status_code == 400


def test_csv_has_the_same_rows(root_admin):
    for path in ("/api/v1/usage/", "/insights/usage/"):
        answer = root_admin.get(f"{path}?{OCTOBER}&format=csv")
        rows = list(csv.DictReader(io.StringIO(source(answer))))
        assert [(row["name"], float(row["used"])) for row in rows] == [
            ("team-a", 412),
            ("batch", 40),
        ]
        assert rows[0]["unit"] == "GPU-hours"


def test_the_page_has_figures_with_unit_and_denominator(root_admin):
    words = text(root_admin.get(f"/insights/usage/?{OCTOBER}"))

    assert "452 of 2 000 GPU-hours that the cluster had, 23 %" in words
    assert "All figures are GPU-hours." in words
    assert "All figures are up to" in words


def test_the_page_says_that_nothing_is_booked_yet(root_admin):
    UsageBook.objects.update(complete_until=None)

    words = text(root_admin.get("/insights/usage/?from=2025-01-01&to=2025-01-02"))

    assert "Nothing has been booked yet" in words


@pytest.mark.parametrize("path", ["/insights/usage/", "/api/v1/usage/"])
def test_the_number_of_queries_does_not_grow(root_admin, path):
    ClusterState.objects.update(paused=False)

    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            assert root_admin.get(f"{path}?{OCTOBER}&by=job").status_code == 200
        return len(found)

    queries()
    before = queries()
    for number in range(12):
        queue(f"more-{number}")
        book(f"more-{number}", f"user-{number}", number, 3)

    assert queries() == before


def test_steps_of_which_nothing_is_known_are_gaps_and_not_0(root_admin):
    deserve("", 2, 2000)  # nobody used anything on this day

    found = status(root_admin, OCTOBER)
    page = text(root_admin.get(f"/insights/usage/?{OCTOBER}"))

    used = {series["name"]: series["used"] for series in found["series"]}["team-a"]
    by_day = dict(zip((step[8:10] for step in found["steps"]), used, strict=True))
    assert (by_day["05"], by_day["07"], by_day["08"]) == (300, 0, None)
    assert "7 Oct 2026 00:00 0 0 0" in page
    assert "8 Oct 2026 00:00 – – –" in page


def test_hours_in_which_nobody_looked_at_the_room_are_gaps(root_admin):
    for part, amount in (("used", 3), ("no-demand", 1)):
        LossRow.objects.create(
            seconds=UsageRow.DAY, resource=GPU, at=DAY, part=part, amount=amount * 3600 * 1000
        )
    path = f"?{OCTOBER}"

    room = root_admin.get(f"/api/v1/fairness/{path}").json()["status"]["room"]
    page = text(root_admin.get(f"/insights/fairness/{path}"))
    before = root_admin.get("/api/v1/fairness/?from=2026-09-01&to=2026-09-02&resource=gpu").json()

    assert [row["steps"][3:6] for row in room if row["part"] == "used"] == [[None, 3.0, None]]
    assert "5 Oct 2026 00:00 75.0" in page
    assert "6 Oct 2026 00:00 – –" in page
    assert {row["hours"] for row in before["status"]["room"]} == {None}


def test_refused_prices_stay_in_the_form(root_admin):
    typed = {
        "valid_from": "2026-10-01",
        "currency": "EUR",
        f"price:{GPU}": "2,5",
    }

    refused = root_admin.post("/insights/usage/prices/set/", typed)

    assert refused.status_code == 400
    assert f"The price of {GPU} must be a number" in text(refused)
    for value in typed.values():
        assert f'value="{value}"' in source(refused)
    assert root_admin.get("/insights/usage/prices/set/").url == "/insights/usage/prices/"
    right = {**typed, f"price:{GPU}": "2.5"}
    assert root_admin.post("/insights/usage/prices/set/", right).status_code == 302
    assert f"{GPU} 2.5 EUR" in text(root_admin.get("/insights/usage/prices/"))
