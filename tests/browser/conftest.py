"""A real server, a real Redis and Chromium.

The server reads the tests' own database, so that a test can change what a page shows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from channels.layers import channel_layers
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection, connections
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.server import ConsoleServer
from tests.dashboard.conftest import RedisServer
from tests.dashboard.sample import PASSWORD, add_user, load_tree

# Playwright keeps an event loop in this thread. Without this pytest-django would take it for an
# asynchronous program.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
expect.set_options(timeout=30_000)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    quiet = [
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        "--mute-audio",
    ]
    return {**browser_type_launch_args, "args": [*browser_type_launch_args["args"], *quiet]}


@pytest.fixture(scope="session")
def browser_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def console_process(
    django_db_setup: None,
    browser_redis: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ConsoleServer]:
    database = f"sqlite:///{connection.settings_dict['NAME']}"
    server = ConsoleServer(database, browser_redis.url, Path(tmp_path_factory.mktemp("console")))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def act() -> Callable[..., Any]:
    """Run a function that changes the database, as another process would: in a thread with its own
    connection.
    """

    def run(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        def inside() -> Any:
            try:
                return function(*arguments, **keywords)
            finally:
                connections.close_all()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(inside).result()

    return run


@pytest.fixture
def console(
    transactional_db: None,
    console_process: ConsoleServer,
    browser_redis: RedisServer,
    act: Callable[..., Any],
    settings: Any,
) -> ConsoleServer:
    """The server with the sample tree and two accounts: `admin` and `reader`."""
    settings.REDIS_URL = browser_redis.url
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "dashboard.live.layer.NewsLayer",
            "CONFIG": {"hosts": [browser_redis.url]},
        }
    }
    channel_layers.backends.clear()
    act(load_tree)
    act(
        get_user_model().objects.create,
        username="admin",
        password=_hashed(),
        is_superuser=True,
        is_staff=True,
    )
    act(add_user, "reader", hashed=_hashed())
    return console_process


@cache
def _hashed() -> str:
    """The accounts' password as it is stored.

    Making it takes long on purpose, so it is made once.
    """
    return make_password(PASSWORD)


def session_cookie(name: str) -> str:
    """A session as signing in would leave it, without the price of checking a password."""
    user = get_user_model().objects.get(username=name)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return str(session.session_key)


def sign_in(page: Page, name: str = "admin", password: str = PASSWORD) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


@pytest.fixture
def signed_in(
    console: ConsoleServer,
    browser: Browser,
    act: Callable[..., Any],
) -> Iterator[Callable[..., Page]]:
    """Open a page in a browser of its own, signed in.

    Fails the test if its console shows an error.
    """
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(path: str = "/queues/", name: str = "admin", **options: Any) -> Page:
        contexts.append(browser.new_context(base_url=console.url, **options))
        contexts[-1].add_cookies(
            [{"name": "sessionid", "value": act(session_cookie, name), "url": console.url}]
        )
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda message: complaints.append(message.text) if is_complaint(message.text) else None,
        )
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints


def is_complaint(text: str) -> bool:
    """What the browser says about the page itself.

    A connection that a test cuts on purpose is not one.
    """
    return "Content Security Policy" in text or "Uncaught" in text or "SyntaxError" in text


@pytest.fixture
def pill() -> Callable[[Page], Any]:
    return lambda page: page.locator("#pill")
