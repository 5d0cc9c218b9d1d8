"""Odd input through pages: an answer in words, whatever it is; never an error of the server's."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from scheduler.models import AuditEntry
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]

LONG = "9" * 5000  # more digits than Python itself is ready to read
NUMBERS = (LONG, "9" * 18, "9" * 25, "-1", "--5", "٣", "1e5", "x", "\x00")

NO_JOBS = (
    "spec: 5",
    "metadata: [1]\nspec: {tasks: [1]}",
    "spec: {tasks: 5}",
    "spec: {tasks: {a: b}}",
    "spec: {tasks: [{template: 4}]}",
    "spec: {tasks: [{template: {spec: 4}}]}",
    "spec: {tasks: [{template: {spec: {containers: [5]}}}]}",
    "spec: {tasks: [{template: {spec: {containers: [{resources: 4, command: 5}]}}}]}",
    "spec: {tasks: [{template: {spec: {containers: [{resources: {requests: 4}}]}}}]}",
)
NO_QUEUES = (
    "a: 2020-99-99",
    "[" * 3000,
    f"a: {LONG}",
    "? [a]\n: b",
    "a: .nan",
    "a: !!binary aGVsbG8=",
    "&a [*a]",
    "a: \x00",
)


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


@pytest.fixture
def admin() -> Client:
    client = signed_in("admin")
    client.raise_request_exception = False
    return client


def errors(
    client: Client,
    method: str,
    url: str,
    given: list[dict[str, Any]],
) -> list[tuple[str, object]]:
    """Of what is given, what the page cannot answer."""
    answers = [(str(one)[:200], getattr(client, method)(url, one)) for one in given]
    return [
        (words, getattr(answer, "exc_info", ("",))[:2])
        for words, answer in answers
        if answer.status_code >= 500
    ]


@pytest.mark.parametrize(
    "url", ["/jobs/", "/audit/", "/sessions/", "/activity/", "/nodes/", "/jobs/default/train-1/"]
)
def test_marks_of_pages(admin: Client, url: str):
    marks = [{name: number} for name in ("before", "after", "from", "page") for number in NUMBERS]

    assert errors(admin, "get", url, marks) == []


@pytest.mark.parametrize("field", ["weight", "priority"])
def test_numbers_of_the_queue_form(admin: Client, field: str):
    forms = [{"name": "new", "parent": "root", field: number} for number in NUMBERS]

    assert errors(admin, "post", "/queues/-/check/", forms) == []
    assert errors(admin, "post", "/queues/-/new/?parent=root", forms) == []


def test_versions_that_a_form_sends_back(admin: Client):
    given = [{"version": number} for number in NUMBERS]

    assert (
        errors(
            admin,
            "post",
            "/queues/vision/edit/",
            [{**one, "parent": "research", "weight": "1"} for one in given],
        )
        == []
    )
    assert (
        errors(
            admin,
            "post",
            "/policy/",
            [{**one, "do": "save", "text": "tiers: 5"} for one in given],
        )
        == []
    )


def test_queues_that_are_none(admin: Client):
    texts = [{"as": "yaml", "yaml": text} for text in NO_QUEUES]

    assert errors(admin, "post", "/queues/-/check/", texts) == []
    assert errors(admin, "post", "/queues/-/new/?parent=root", texts) == []


@pytest.mark.parametrize("wanted", ["turn", "check", "submit"])
def test_jobs_that_are_none(admin: Client, wanted: str):
    texts = [{"do": wanted, "as": "yaml", "yaml": text} for text in (*NO_JOBS, *NO_QUEUES)]

    assert errors(admin, "post", "/jobs/-/new/", texts) == []


@pytest.mark.parametrize("field", ["replicas", "needed", "cpu", "memory", "gpu"])
def test_numbers_of_the_job_form(admin: Client, field: str):
    forms = [
        {"do": "check", "name": "x", "queue": "vision", "replicas": "1", field: number}
        for number in NUMBERS
    ]

    assert errors(admin, "post", "/jobs/-/new/", forms) == []


@pytest.mark.parametrize("deed", ["change", "delete"])
def test_a_group_that_somebody_else_has_deleted(admin: Client, deed: str):
    answer = admin.post(
        "/users/-/group/",
        {"do": deed, "name": "gone", "members": "sam"},
        follow=True,
    )

    assert "It is no longer there" in text(answer)


@pytest.mark.parametrize("day", ["0000-00-00", "0001-01-01", "9999-12-31", "2020-02-30", "today"])
def test_days_in_the_record(admin: Client, day: str):
    assert errors(admin, "get", "/audit/", [{"since": day}]) == []


@pytest.mark.parametrize(
    "zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"]
)  # whatever the hour, UTC has another day than one of them
def test_a_day_in_the_record_begins_where_the_reader_is(admin: Client, zone: str):
    admin.post("/account/display/", {"time_zone": zone, "theme": "system"})
    AuditEntry.objects.create(actor="sam", action="X", kind="Queue", name="early")
    today = datetime.now(ZoneInfo(zone)).date()

    assert "early" in names_in_the_record(admin, today)
    assert "early" not in names_in_the_record(admin, today + timedelta(days=1))


def names_in_the_record(client: Client, since: date) -> list[str]:
    return [
        entry["row"].name
        for entry in client.get("/audit/", {"since": str(since)}).context["entries"]
    ]


@pytest.mark.parametrize(
    "page",
    [
        "-/new/",
        "vision/edit/",
        "vision/delete/",
        "vision/farewell/",
        "vision/suspend/",
        "-/commands/",
    ],
)
def test_a_page_that_can_be_read_answers_head(admin: Client, page: str):
    assert admin.head(f"/queues/{page}").status_code == admin.get(f"/queues/{page}").status_code


NUL = "a\x00b"


def looked_for_with_nul(client: Client) -> set[int]:
    places = [
        "/jobs/",
        "/activity/",
        "/audit/",
        "/users/",
        "/queues/",
        "/nodes/",
        "/queues/vision/jobs/",
        "/jobs/default/train-1/",
    ]
    return {
        client.get(place, {name: NUL}).status_code
        for place in places
        for name in ("q", "name", "queue", "reason", "pods", "after")
    }


def named_with_nul(client: Client) -> set[int]:
    pages = [
        "queues/%00/",
        "queues/%00/edit/",
        "queues/%00/suspend/",
        "jobs/%00/%00/",
        "nodes/%00/",
        "users/%00/",
        "queues/%00/history.csv",
    ]
    return {client.get(f"/{page}").status_code for page in pages}


def sent_with_nul(client: Client) -> set[int]:
    reasons = [
        "queues/vision/suspend/",
        "jobs/default/train-1/suspend/",
        "nodes/n1/cordon/",
        "sessions/-/pause/",
        "queues/vision/farewell/",
    ]
    codes = {client.post(f"/{place}", {"reason": NUL}).status_code for place in reasons}
    return codes | {
        client.post("/users/-/grant/", {"who": f"user:{NUL}"}).status_code,
        client.post("/jobs/-/views/", {NUL: "x"}).status_code,
    }


def test_a_character_that_no_text_can_have(admin: Client):
    assert (looked_for_with_nul(admin), named_with_nul(admin), sent_with_nul(admin)) == (
        {400},
        {404},
        {400},
    )
    assert "The field “q” has a character" in text(admin.get("/jobs/", {"q": NUL}))


@pytest.mark.postgres
def test_a_character_that_no_text_can_have_on_postgresql(admin: Client):
    assert (looked_for_with_nul(admin), named_with_nul(admin), sent_with_nul(admin)) == (
        {400},
        {404},
        {400},
    )


def test_more_fields_than_the_server_reads(admin: Client, settings: Any):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 3

    answer = admin.post("/queues/-/folded/", {"queue": ["a", "b", "c", "d"]})

    assert answer.status_code == 400
    assert "This request cannot be read" in text(answer)


@pytest.mark.parametrize(
    "path",
    [
        "queues/vision/suspend/",
        "jobs/default/train-1/cancel/",
        "policy/",
        "account/tokens/",
        "queues/-/folded/",
        "users/-/grant/",
    ],
)
def test_a_read_only_installation_changes_nothing(admin: Client, settings: Any, path: str):
    settings.READ_ONLY = True
    before = AuditEntry.objects.count()

    answer = admin.post(
        f"/{path}",
        {"reason": "x", "name": "x", "scope": "read", "do": "save", "text": "actions: allocate"},
    )

    assert (answer.status_code, answer["Retry-After"]) == (503, "60")
    assert "read-only at the moment" in text(answer)
    assert AuditEntry.objects.count() == before
    assert admin.get("/queues/vision/").status_code == 200
