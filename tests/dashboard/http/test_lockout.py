"""Wrong passwords: guessing ends, for an account, an address and a crowd of addresses.

The owner still gets in.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db.models import F
from django.test import Client

from dashboard.http.lockout import KNOWN_BROWSER_COOKIE
from scheduler.services.demo.setup import ensure_builtin_objects
from tests.dashboard.sample import PASSWORD, add_user

pytestmark = pytest.mark.django_db
QUICK = PBKDF2PasswordHasher().encode(PASSWORD, "salt", iterations=1)
HOME = "203.0.113.1"
OFFICE = "203.0.113.2"
ELSEWHERE = "198.51.100.7"


@pytest.fixture(autouse=True)
def people(settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 4
    settings.SIGN_IN_ADDRESS_LIMIT = 8
    settings.SIGN_IN_USER_LIMIT = 12
    ensure_builtin_objects()
    add_user("olga", hashed=QUICK)
    add_user("paul", hashed=QUICK)


def tries(
    address: str,
    name: str = "olga",
    password: str = "wrong",
    client: Client | None = None,
    **headers: str,
) -> int:
    answer = (client or Client()).post(
        "/accounts/login/",
        {"username": name, "password": password},
        REMOTE_ADDR=address,
        **headers,
    )
    return answer.status_code


def signs_in(address: str, name: str = "olga", client: Client | None = None) -> bool:
    return tries(address, name, PASSWORD, client) == 302


def test_an_account_is_locked_for_the_address_that_guesses_and_for_no_other():
    assert [tries(ELSEWHERE) for _ in range(4)] == [200, 200, 200, 429]

    assert not signs_in(ELSEWHERE)
    assert signs_in(HOME)
    assert signs_in(ELSEWHERE, "paul")


def test_a_new_name_of_the_browser_is_no_new_beginning():
    answers = [tries(ELSEWHERE, HTTP_USER_AGENT=f"known browser {number}") for number in range(5)]

    assert answers == [200, 200, 200, 429, 429]


def test_an_address_that_tries_one_account_after_the_other_is_locked():
    answers = [tries(ELSEWHERE, f"user-{number}") for number in range(9)]

    assert answers == [200] * 7 + [429, 429]
    assert not signs_in(ELSEWHERE)
    assert signs_in(HOME)


def test_the_addresses_of_one_ipv6_network_are_one():
    answers = [tries(f"2001:db8:1:2::{number}") for number in range(1, 6)]

    assert answers == [200, 200, 200, 429, 429]


def test_a_crowd_of_addresses_has_one_try_each_and_the_owner_is_not_kept_out():
    for number in range(11):
        assert tries(f"198.51.100.{number}") == 200

    assert [tries("198.51.100.99"), tries("198.51.100.98")] == [429, 429]
    assert not signs_in("198.51.100.3")
    assert signs_in(HOME)


def test_who_shares_the_address_of_an_attacker_gets_in_where_they_worked_before():
    browser = Client()
    assert signs_in(OFFICE, client=browser)
    browser.post("/accounts/logout/")
    for _ in range(20):
        tries(OFFICE)
        tries(OFFICE, "somebody")

    assert not signs_in(OFFICE)
    assert signs_in(OFFICE, client=browser)


def test_a_known_browser_is_locked_too_when_it_guesses_and_known_for_one_account_only():
    browser = Client()
    assert signs_in(OFFICE, client=browser)
    browser.post("/accounts/logout/")

    assert [tries(OFFICE, client=browser) for _ in range(5)] == [200, 200, 200, 429, 429]
    assert [tries(OFFICE, "paul", client=browser) for _ in range(4)] == [200, 200, 200, 429]


def test_a_forged_cookie_makes_no_known_browser():
    strange = Client()
    strange.cookies[KNOWN_BROWSER_COOKIE] = "eyJ1c2VybmFtZSI6Im9sZ2EifQ:1abc:forged"

    assert [tries(OFFICE, client=strange) for _ in range(4)] == [200, 200, 200, 429]


def test_trying_on_does_not_make_the_lock_longer():
    for _ in range(4):
        tries(ELSEWHERE)
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(minutes=14))
    assert tries(ELSEWHERE) == 429
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(minutes=2))

    assert signs_in(ELSEWHERE)


def test_the_right_password_ends_the_count():
    for _ in range(3):
        tries(HOME)
    assert signs_in(HOME)

    assert [tries(HOME) for _ in range(3)] == [200, 200, 200]


def test_the_cookie_is_of_no_use_to_scripts():
    cookie = (
        Client()
        .post("/accounts/login/", {"username": "olga", "password": PASSWORD})
        .cookies[KNOWN_BROWSER_COOKIE]
    )

    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def changes(client: Client, old: str, address: str = HOME) -> int:
    new = "another long password"
    body = {"old": old, "new": new, "again": new}
    return client.post("/account/password/", body, REMOTE_ADDR=address).status_code


def asks_api(client: Client, old: str, dry_run: bool = False) -> Any:
    where = f"/api/v1/users/~/password/{'?dry_run=true' if dry_run else ''}"
    body = {"old": old, "new": "another long password"}
    return client.post(where, body, content_type="application/json", REMOTE_ADDR=HOME)


@pytest.fixture
def stolen() -> Client:
    """A browser whose session is olga's, in other hands."""
    client = Client()
    client.force_login(get_user_model().objects.get(username="olga"))
    return client


def test_the_old_password_cannot_be_guessed_on_the_account_page(stolen: Client):
    assert [changes(stolen, "wrong") for _ in range(4)] == [400, 400, 400, 429]

    assert changes(stolen, PASSWORD) == 429
    assert not signs_in(HOME)
    assert changes(stolen, PASSWORD, OFFICE) == 302


@pytest.mark.parametrize("dry_run", [False, True])
def test_the_old_password_cannot_be_guessed_by_the_api(stolen: Client, dry_run: bool):
    answers = [asks_api(stolen, "wrong", dry_run) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [400, 400, 400, 429]
    assert "15 minutes" in answers[-1].json()["detail"]
    assert asks_api(stolen, PASSWORD).status_code == 429
    assert not signs_in(HOME)


def test_the_pages_of_the_tables_take_no_password(stolen: Client):
    answer = stolen.get("/admin/password_change/")

    assert (answer.status_code, answer["Location"]) == (302, "/account/")
