"""Signing in: the page, wrong passwords, the lock, and that nothing is shown before."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.test import Client

from scheduler.services.demo.setup import ensure_builtin_objects
from tests.dashboard.sample import PASSWORD, add_user
from tests.dashboard.work import text

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader() -> Any:
    ensure_builtin_objects()
    return add_user("reader", hashed=make_password(PASSWORD))


def sign_in(client: Client, password: str, name: str = "reader") -> Any:
    return client.post(
        "/accounts/login/", {"username": name, "password": password, "next": "/queues/"}
    )


@pytest.mark.parametrize("path", ["/queues/", "/queues/root/"])
def test_pages_ask_for_sign_in_and_lead_back(client: Client, path: str):
    answer = client.get(path)

    assert answer.status_code == 302
    assert answer["Location"] == f"/accounts/login/?next={path}"


def test_the_right_password_opens_the_page_asked_for(client: Client, reader: Any):
    answer = sign_in(client, PASSWORD)

    assert answer["Location"] == "/queues/"
    assert client.get("/queues/").status_code == 200


def test_a_wrong_password_is_said_plainly_and_the_name_is_kept(client: Client, reader: Any):
    page = text(sign_in(client, "wrong"))

    assert "This name and password do not belong together." in page
    assert 'value="reader"' in page


def test_too_many_wrong_passwords_lock_for_a_while_even_with_the_right_one(
    client: Client,
    reader: Any,
    settings: Any,
):
    settings.AXES_FAILURE_LIMIT = 3
    for _ in range(3):
        locked = sign_in(client, "wrong")
    right = sign_in(client, PASSWORD)

    for answer in (locked, right):
        assert answer.status_code == 429
        assert answer["Retry-After"] == "900"
        assert "locked for 15 minutes" in text(answer)


def test_a_page_that_does_not_exist_says_so(client: Client, reader: Any):
    client.force_login(reader)

    for path, words in {
        "/nowhere/": "There is no page at",
        "/queues/nothing/": "There is no queue named “nothing”",
    }.items():
        answer = client.get(path)
        assert answer.status_code == 404
        assert words in text(answer)


def test_pages_carry_a_policy_that_forbids_inline_script_and_foreign_sources(client: Client):
    policy = client.get("/accounts/login/")["Content-Security-Policy"]

    assert "default-src 'self'" in policy
    assert "unsafe-inline" not in policy


@pytest.mark.parametrize(
    "path",
    [
        "/queues/",
        "/",
        "/account/",
        "/api/v1/queues/",
        "/queues/-/names.json",
        "/queues/-/rows.json",
        "/queues/no-such/",
        "/audit/",
    ],
)
def test_what_one_reader_sees_is_kept_in_no_cache_for_another(
    client: Client,
    reader: Any,
    path: str,
):
    client.force_login(reader)

    assert client.get(path)["Cache-Control"] == "private, no-cache"
