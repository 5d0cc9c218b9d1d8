"""A sign-on with a real provider, without a browser. In one: `tests/browser/test_sign_on.py`."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from urllib.parse import urlsplit

import pytest
import requests
from django.core.management import CommandError, call_command
from django.test import Client

from scheduler.models import Grant, Identity
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.sign_on import map_group
from scheduler.services.demo.setup import ensure_builtin_objects
from tests.dashboard.sso.dex import running_dex
from tests.dashboard.sso.provider import sign_on_at
from tests.dashboard.work import text

# Dex comes with the programs of a control plane, and takes as long to build.
pytestmark = pytest.mark.kubernetes

BACK = "/accounts/sign-on/back/"


@pytest.fixture(scope="module")
def dex() -> Iterator[str]:
    with running_dex(f"http://testserver{BACK}") as issuer:
        yield issuer


def come_in(client: Client) -> object:
    """As a browser does: to Dex, from page to page there, and back."""
    address = client.get("/accounts/sign-on/", {"next": "/queues/"})["Location"]
    with requests.Session() as browser:
        while not address.startswith(f"http://testserver{BACK}"):
            answer = browser.get(address, allow_redirects=False, timeout=10)
            assert answer.is_redirect, answer.text
            address = requests.compat.urljoin(address, answer.headers["Location"])
    back = urlsplit(address)
    return client.get(f"{back.path}?{back.query}")


def test_a_sign_on_with_dex(client: Client, db: None, dex: str):
    ensure_builtin_objects()
    map_group("authors", role="submitter", queue="default", by=SYSTEM)

    with sign_on_at(dex):
        answer = come_in(client)

        assert answer["Location"] == "/queues/"  # type: ignore[index]
        grant = Grant.objects.get()
        assert grant.user is not None
        assert grant.user.get_username() == "kilgore@kilgore.trout"
        assert Identity.objects.get().groups == ["authors"]
        assert "You are still signed in at the provider" in text(client.post("/accounts/logout/"))


def test_without_a_mapping_dex_lets_in_and_we_do_not(client: Client, db: None, dex: str):
    ensure_builtin_objects()
    with sign_on_at(dex):
        page = text(come_in(client))

    assert "None of your groups has a role here. The provider sent: authors." in page


def test_the_connection_to_dex(db: None, dex: str):
    out = StringIO()
    with sign_on_at(dex):
        call_command("check_sign_on", url="http://testserver", stdout=out)

    assert "wrong" not in out.getvalue()
    assert "right    Secret" in out.getvalue()
    assert "right    Way back" in out.getvalue()


@pytest.mark.parametrize(
    ("wrong", "url", "step"),
    [
        ({"client_secret": "another"}, "http://testserver", "wrong    Secret"),
        ({}, "http://elsewhere", "wrong    Way back"),
    ],
)
def test_what_dex_refuses(db: None, dex: str, wrong: dict[str, str], url: str, step: str):
    out = StringIO()
    with sign_on_at(dex, **wrong), pytest.raises(CommandError):
        call_command("check_sign_on", url=url, stdout=out)

    assert step in out.getvalue()


def test_a_wrong_secret_at_dex(client: Client, db: None, dex: str):
    ensure_builtin_objects()
    with sign_on_at(dex, client_secret="another"):
        answer = come_in(client)

    assert "SSO_CLIENT_SECRET" in text(answer)
