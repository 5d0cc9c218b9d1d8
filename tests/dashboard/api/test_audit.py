"""The audit log: every write through any door, and nothing that could change it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection, transaction

from scheduler.models import AuditEntry
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.records import audit
from scheduler.services.records.retention import tidy_up
from tests.dashboard.api.conftest import Caller, job, queue

pytestmark = [pytest.mark.django_db]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "attempt",
    [
        "UPDATE scheduler_auditentry SET actor = 'nobody'",
        "DELETE FROM scheduler_auditentry",
        "UPDATE scheduler_auditentry SET id = id + 1",
    ],
)
def test_the_database_refuses_to_change_or_delete_a_row(attempt: str):
    row = audit.record(SYSTEM, "CreateQueue", "Queue", "a")

    with (
        pytest.raises(DatabaseError, match="audit log cannot be changed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(attempt)
    with pytest.raises(DatabaseError), transaction.atomic():
        row.delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        AuditEntry.objects.filter(pk=row.pk).update(actor="x")

    assert AuditEntry.objects.get(pk=row.pk).actor == "system"


@pytest.mark.postgres
def test_postgresql_refuses_to_truncate_it():
    audit.record(SYSTEM, "CreateQueue", "Queue", "a")

    with (
        pytest.raises(DatabaseError, match="audit log"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("TRUNCATE scheduler_auditentry")


def test_sqlite_refuses_to_replace_a_row():
    if connection.vendor != "sqlite":
        pytest.skip("INSERT OR REPLACE is SQLite's own")
    row = audit.record(SYSTEM, "CreateQueue", "Queue", "a")

    with (
        pytest.raises(DatabaseError, match="audit log"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            (
                "INSERT OR REPLACE INTO scheduler_auditentry SELECT * FROM "
                "scheduler_auditentry WHERE id = %s"
            ),
            [row.pk],
        )


def test_it_outlives_users_queues_and_pruning(admin: Caller):
    admin.post("users/", {"username": "ann"}, expect=201)
    admin.post("queues/", queue("a"), expect=201)
    admin.post("queues/a/close/")
    admin.delete("queues/a/")
    admin.delete("users/ann/")
    get_user_model().objects.filter(username="boss").exists()
    before = AuditEntry.objects.count()

    tidy_up()

    assert AuditEntry.objects.count() == before
    assert {"CreateQueue", "CloseQueue", "DeleteQueue", "CreateUser", "DeleteUser"} <= set(
        AuditEntry.objects.values_list("action", flat=True)
    )


def test_each_write_says_who_when_from_where_and_what(admin: Caller):
    admin.post("queues/", queue("a"), expect=201, **{"X-Request-ID": "a-request-of-mine"})
    admin.patch("queues/a/", {"spec": {"weight": 5}}, **{"User-Agent": "vcctl/1.0"})
    admin.apply("kind: Queue\nmetadata: {name: a}\nspec: {weight: 6}\n")

    made, changed, applied = (
        row["spec"] for row in reversed(admin.get("audit/?name=a")["results"])
    )
    assert (made["actor"], made["door"], made["address"], made["requestId"]) == (
        "boss",
        "API",
        "127.0.0.1",
        "a-request-of-mine",
    )
    assert (
        changed["door"],
        changed["before"]["spec"]["weight"],
        changed["after"]["spec"]["weight"],
    ) == ("CLI", 1, 5)
    assert (applied["door"], applied["message"]) == ("manifest", "Changed weight from 5 to 6.")
    assert admin.get("audit/?door=CLI")["results"][0]["spec"] == changed
    assert admin.get("audit/?request_id=a-request-of-mine")["results"][0]["spec"] == made


def test_what_is_refused_or_rehearsed_leaves_no_entry(admin: Caller):
    before = AuditEntry.objects.count()

    admin.post("queues/", queue("Bad"), expect=400)
    admin.post("queues/?dry_run=true", queue("a"))
    admin.post("jobs/?dry_run=true", job("j"))
    admin.post("queues/default/close/?dry_run=true")
    admin.post("queues/default/open/")  # a no-op

    assert AuditEntry.objects.count() == before


def test_it_is_exported_as_a_table(admin: Caller):
    admin.post("queues/", queue("a"), expect=201)

    text = admin.ask("GET", "audit/?kind=Queue", Accept="text/csv", expect=200)
    assert text.splitlines()[0].startswith("at,actor,door")
    assert "CreateQueue" in text
    assert "attachment" in admin.last["Content-Disposition"]


def _many_entries(number: int) -> None:
    from django.utils import timezone

    AuditEntry.objects.bulk_create(
        [
            AuditEntry(
                at=timezone.now(),
                actor="ann" if index % 2 else "ben",
                action="KeepQueue",
                kind="Queue",
                name=f"q{index}",
            )
            for index in range(number)
        ]
    )


def test_an_export_has_every_row_that_the_filters_leave(admin: Caller):
    _many_entries(5001)

    table = admin.ask(
        "GET", "audit/?user=ann&action=KeepQueue", Accept="text/csv", expect=200
    ).splitlines()
    lines = admin.ask(
        "GET", "audit/?action=KeepQueue&ordering=at", Accept="application/x-ndjson", expect=200
    ).splitlines()

    assert (len(table), table[1].split(",")[9], table[-1].split(",")[9]) == (2501, "q4999", "q1")
    assert [json.loads(line)["spec"]["name"] for line in lines] == [
        f"q{index}" for index in range(5001)
    ]


def test_an_export_has_no_pages(admin: Caller):
    for parameter in ("page_size=10", "cursor=x", "fields=spec.at"):
        problem = admin.ask("GET", f"audit/?{parameter}", Accept="text/csv", expect=400)
        assert problem["violations"][0]["field"] == parameter.split("=")[0]


def test_an_export_keeps_to_what_the_reader_may_see(admin: Caller, caller: Callable[..., Caller]):
    admin.post("queues/", [queue("a"), queue("b")])

    seen = caller("ann", admin="a").ask("GET", "audit/", Accept="application/x-ndjson", expect=200)
    assert {json.loads(line)["spec"]["queue"] for line in seen.splitlines()} == {"a"}


def test_a_server_for_many_sends_the_export_while_it_reads(admin: Caller):
    """Under ASGI the pieces come from an asynchronous iterator.

    A synchronous one would be read whole before the first byte.
    """
    from django.test import AsyncClient

    _many_entries(2500)

    async def ask() -> tuple[bool, bool, int]:
        answer = await AsyncClient().get(
            "/api/v1/audit/?action=KeepQueue", headers={**admin.headers, "Accept": "text/csv"}
        )
        pieces = [piece async for piece in answer.streaming_content]
        return answer.is_async, len(pieces) > 1, b"".join(pieces).count(b"\r\n")

    assert async_to_sync(ask)() == (True, True, 2501)
