"""Single sign-on in Chromium: to Dex, in with the roles of the groups there, and out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from playwright.sync_api import Page, expect

from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.sign_on import map_group
from tests.browser.conftest import ConsoleServer
from tests.browser.test_forecasts import take_pictures
from tests.dashboard.conftest import RedisServer
from tests.dashboard.sso.dex import running_dex
from tests.dashboard.sso.provider import CLIENT, SECRET

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def console_with_dex(
    console: ConsoleServer, browser_redis: RedisServer, tmp_path: Path
) -> Iterator[ConsoleServer]:
    """Another web server over the same database, which sends people to Dex."""
    database = f"sqlite:///{connection.settings_dict['NAME']}"
    server = ConsoleServer(database, browser_redis.url, tmp_path)
    with running_dex(f"{server.url}/accounts/sign-on/back/", screen=True) as issuer:
        server.environment |= {
            "SSO_ISSUER": issuer,
            "SSO_CLIENT_ID": CLIENT,
            "SSO_CLIENT_SECRET": SECRET,
            "SSO_NAME": "Dex",
        }
        server.start()
        yield server
        server.stop()


def test_in_with_dex_and_out_again(
    page: Page, console_with_dex: ConsoleServer, act: Callable[..., Any]
):
    act(map_group, "authors", role="viewer", queue="research", by=SYSTEM)
    page.goto(f"{console_with_dex.url}/queues/")
    take_pictures(page, "sign-on")
    page.get_by_role("link", name="Sign in with Dex").click()
    page.get_by_role("link", name="Log in with Mock").click()

    expect(page.get_by_role("link", name="vision").first).to_be_visible()
    expect(page.get_by_text("production")).to_have_count(0)
    page.goto(f"{console_with_dex.url}/account/")
    expect(page.get_by_text("through authors of the sign-on provider")).to_be_visible()
    take_pictures(page, "sign-on-account")

    page.locator("form[action='/accounts/logout/']").evaluate("form => form.requestSubmit()")
    expect(page.get_by_text("You are still signed in at Dex")).to_be_visible()
    page.goto(f"{console_with_dex.url}/queues/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
