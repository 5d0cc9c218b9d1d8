"""/insights/loans/ and its API: who uses whose idle share, and who may know it."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduler.services.queues.exposure import last_answer
from scheduler.services.records.loan_samples import note_loans
from tests.dashboard.work import text as source
from tests.worlds import job, node, queue, run_session

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _borrowed() -> None:
    """batch has 18 of 24 CPUs, 12 of them from team-a and 6 from archive, who lack nothing."""
    last_answer.forget()
    node("n1", cpu="24")
    for name, deserved in (("team-a", "14"), ("archive", "8"), ("batch", "0")):
        queue(name, deserved={"cpu": deserved})
    job("own", "team-a", replicas=2)
    job("big", "batch", replicas=18, least=1)
    run_session()
    last_answer.forget()


def text(answer):
    """What a reader sees of a page."""
    return " ".join(re.sub(r"<[^>]*>", " ", source(answer)).split())


def test_the_page_says_who_borrows_from_whom(root_admin):
    words = text(root_admin.get("/insights/loans/?resource=cpu"))

    assert "batch 18 CPU borrows 18 from" in words
    assert "team-a" in words


def test_the_api_has_the_loans_and_they_add_up(root_admin):
    status = root_admin.get("/api/v1/loans/?resource=cpu").json()["status"]

    assert status["borrowed"] == "18"
    assert sum(int(loan["amount"]) for loan in status["loans"]) == 18
    assert [row["queue"] for row in status["borrowers"]] == ["batch"]
    row = status["borrowers"][0]
    parts = [int(row[part]) for part in ("askedBack", "open", "protected", "kept")]
    assert sum(parts) == 18


def test_queues_that_a_reader_may_not_see_are_summed_and_never_named(batch_reader):
    words = text(batch_reader.get("/insights/loans/?resource=cpu"))
    status = batch_reader.get("/api/v1/loans/?resource=cpu").json()["status"]
    table = b"".join(batch_reader.get("/insights/loans/?resource=cpu&format=csv").streaming_content)

    assert "borrows 18 from other queues" in words
    assert [loan["lender"] for loan in status["loans"]] == ["other queues"]
    assert status["lenders"] == []
    for found in (words, str(status), table.decode()):
        assert "team-a" not in found
        assert "archive" not in found


def test_nobody_asks_for_a_queue_that_they_may_not_see(batch_reader):
    for address in (
        "/insights/loans/?queue=team-a",
        "/insights/loans/history.json?queue=team-a",
        "/insights/loans/history.csv?queue=team-a",
        "/api/v1/loans/?queue=team-a",
        "/api/v1/loans/history/?queue=team-a",
    ):
        assert batch_reader.get(address).status_code in (400, 403, 404), address


def test_the_history_has_the_same_figures_on_page_chart_csv_and_api(root_admin, batch_reader):
    note_loans(timezone.now())
    address = "queue=batch&resource=cpu"

    chart = root_admin.get(f"/insights/loans/history.json?{address}").json()
    status = root_admin.get(f"/api/v1/loans/history/?{address}").json()["status"]
    table = b"".join(root_admin.get(f"/insights/loans/history.csv?{address}").streaming_content)

    assert chart["borrowed"][-1] == 18
    assert chart["unit"] == "CPU"
    assert status["points"][-1]["borrowed"] == "18"
    assert "team-a" in status["points"][-1]["from"]
    assert b"18" in table
    page = text(root_admin.get(f"/insights/loans/?{address}"))
    assert "The same as a table" in page
    hidden = batch_reader.get(f"/api/v1/loans/history/?{address}").json()["status"]["points"][-1]
    assert hidden["from"] == {"other queues": "18"}
    assert "lent" not in root_admin.get("/insights/loans/history.json?resource=cpu").json()
    assert root_admin.get("/insights/loans/history.json?window=1y").status_code == 400


def test_a_queue_limits_it_and_one_without_loans_is_told_so(root_admin):
    assert "neither borrows nor lends" in text(root_admin.get("/insights/loans/?queue=default"))
    status = root_admin.get("/api/v1/loans/?resource=cpu&queue=archive").json()["status"]
    assert {loan["lender"] for loan in status["loans"]} <= {"archive"}


def test_an_unknown_resource_is_refused(root_admin):
    assert root_admin.get("/insights/loans/?resource=gold").status_code == 400
    answer = root_admin.get("/api/v1/loans/?resource=gold")
    assert answer.status_code == 400
    assert "gold" in answer.json()["detail"]


def test_whoever_has_no_role_is_told_so():
    client = Client()
    client.force_login(get_user_model().objects.create_user("newcomer", password="x" * 12))

    assert client.get("/insights/loans/").status_code == 403


def test_starved_lenders_are_named_with_who_uses_their_share(root_admin):
    job("more", "team-a", replicas=8)
    run_session()
    last_answer.forget()

    status = root_admin.get("/api/v1/loans/?resource=cpu").json()["status"]

    assert [(pair["lender"], pair["borrower"]) for pair in status["starved"]] == [
        ("team-a", "batch")
    ]
    assert "team-a lacks" in text(root_admin.get("/insights/loans/?resource=cpu"))


def test_the_number_of_queries_does_not_depend_on_the_number_of_queues(root_admin):
    few = _queries(root_admin)
    for number in range(40):
        queue(f"more-{number}", deserved={"cpu": "0"})
    run_session()

    assert _queries(root_admin) == few


def _queries(client: Client) -> int:
    """When nothing has changed since it was last asked."""
    for _ in range(2):
        last_answer.forget()
        client.get("/insights/loans/?resource=cpu")
    last_answer.forget()
    with CaptureQueriesContext(connection) as asked:
        assert client.get("/insights/loans/?resource=cpu").status_code == 200
    return len(asked)
