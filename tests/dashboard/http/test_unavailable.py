"""What cannot be done just now: a page answers as the API does, with 503 and words, and what it
showed is still so.
"""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from django.db import InterfaceError, OperationalError, connections
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.test import Client

from dashboard.api.nodes import Nodes
from dashboard.http import health
from dashboard.views import nodes
from scheduler.models import Queue
from scheduler.services.queues.transaction import TreeEdit
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]


@pytest.fixture
def admin() -> Client:
    small_cluster()
    client = signed_in("admin")
    client.raise_request_exception = False
    return client


@pytest.fixture
def commands_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(TreeEdit, "settle", broken)


def leaf() -> str:
    return str(
        Queue.objects.filter(children=None)
        .exclude(name__in=("root", "default"))
        .order_by("name")[0]
        .name
    )


@pytest.mark.usefixtures("commands_fail")
@pytest.mark.parametrize("headers", [{}, {"X-Part": "true"}], ids=["page", "dialog"])
@pytest.mark.parametrize("verb", ["suspend", "farewell"])
def test_a_command_that_fails_is_answered_like_the_api_does(
    admin: Client,
    verb: str,
    headers: dict[str, str],
):
    name = leaf()
    before = Queue.objects.get(name=name).state
    by_api = admin.post(f"/api/v1/queues/{name}/suspend/", {}, content_type="application/json")

    answer = admin.post(f"/queues/{name}/{verb}/", {"queue": name}, headers=headers)

    assert (
        (answer.status_code, answer["Retry-After"])
        == (by_api.status_code, by_api["Retry-After"])
        == (503, "2")
    )
    assert f"{name} could not be changed" in text(answer)
    assert "secret" not in text(answer)
    assert Queue.objects.get(name=name).state == before


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_database_that_does_not_answer_is_no_bug(
    admin: Client,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
):
    def silent(*_args: object, **_keywords: object) -> None:
        raise error("connection refused by 10.0.0.7")

    monkeypatch.setattr(nodes, "node_rows", silent)

    answer = admin.get("/nodes/")

    assert answer.status_code == 503
    assert "The database does not answer just now." in text(answer)
    assert "10.0.0.7" not in text(answer)


def damaged_file(folder: Path) -> None:
    """Read as Django reads it: the error is the real one."""
    file = folder / "not.sqlite3"
    file.write_text("a shopping list, and not a database\n" * 40)
    database = DatabaseWrapper(
        {
            **connections["default"].settings_dict,
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(file),
            "OPTIONS": {},
        }
    )
    with database.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sqlite_master")


def test_a_damaged_file_is_named_as_that_by_pages_the_api_and_readyz(
    admin: Client,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    def damaged(*_args: object, **_keywords: object) -> None:
        damaged_file(tmp_path)

    monkeypatch.setattr(nodes, "node_rows", damaged)
    monkeypatch.setattr(Nodes, "visible_rows", damaged)
    monkeypatch.setitem(health.CHECKS, "database", damaged)

    answers = [admin.get(path) for path in ("/nodes/", "/api/v1/nodes/", "/readyz")]

    assert [answer.status_code for answer in answers] == [503, 503, 503]
    for answer in answers:
        assert "file is damaged" in html.unescape(text(answer))
        assert "does not answer just now" not in text(answer)


def test_a_bug_is_still_a_bug(admin: Client, monkeypatch: pytest.MonkeyPatch):
    def broken(*_args: object, **_keywords: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(nodes, "node_rows", broken)

    assert admin.get("/nodes/").status_code == 500
