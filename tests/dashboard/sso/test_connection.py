"""The test of the connection: each step, right and wrong, on the page and by manage.py."""

from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client

from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.sign_on import map_group
from tests.dashboard.sample import add_user
from tests.dashboard.sso.provider import Provider, sign_on_at
from tests.dashboard.sso.walking import sign_on
from tests.dashboard.work import text

BACK = "http://testserver/accounts/sign-on/back/"


def verdicts(*, fails: bool = False) -> dict[str, str]:
    out = StringIO()
    try:
        call_command("check_sign_on", url="http://testserver", stdout=out)
        assert not fails
    except CommandError:
        assert fails
    found = {}
    for line in out.getvalue().splitlines():
        verdict, _, rest = line.partition(" ")
        found[rest.strip().partition(":")[0]] = verdict
    return found


def test_all_is_right(client: Client, provider: Provider):
    provider.redirect_uri = BACK
    map_group("authors", role="viewer", by=SYSTEM)
    sign_on(client)

    assert set(verdicts().values()) == {"right"}
    assert len(verdicts()) == 9


@pytest.mark.parametrize(
    ("fault", "step"),
    [
        ({"issuer_said": "https://elsewhere"}, "Issuer"),
        ({"clock_ahead": 600.0}, "Clock"),
        ({"secret": "another"}, "Secret"),
        ({"redirect_uri": "https://elsewhere/"}, "Way back"),
        ({"status": 503}, "Description of the provider"),
    ],
)
def test_one_thing_is_wrong(provider: Provider, fault: dict[str, object], step: str):
    for name, value in fault.items():
        setattr(provider, name, value)

    found = verdicts(fails=True)

    assert [title for title, verdict in found.items() if verdict == "wrong"] == [step]


def test_nobody_is_there(db: None):
    with sign_on_at("http://127.0.0.1:9"):
        found = verdicts(fails=True)

    assert found == {"Settings": "right", "Description of the provider": "wrong"}


def test_it_is_not_set_up(db: None):
    assert verdicts(fails=True) == {"Settings": "wrong"}


def test_the_page_shows_it_to_cluster_admins_alone(client: Client, provider: Provider):
    provider.has_sign_out = False
    client.force_login(get_user_model().objects.create_superuser("admin"))
    page = text(client.get("/users/-/sign-on/?check=1"))
    client.force_login(add_user("boss", "admin", "default"))
    other = text(client.get("/users/-/sign-on/?check=1"))

    assert "The provider knows the client and its secret." in page
    assert "it has no address for it" in page or "has no address for it" in page
    assert "The connection" not in other
