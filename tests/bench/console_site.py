"""The console as a server of its own, on the database of the test that measures it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from channels.layers import channel_layers
from django.contrib.auth import get_user_model
from django.db import connection

from tests.browser.conftest import session_cookie
from tests.browser.server import ConsoleServer
from tests.dashboard.conftest import RedisServer


@contextmanager
def a_console(
    folder: Path, settings: Any, fill: Callable[[], object]
) -> Iterator[tuple[ConsoleServer, str]]:
    """The server, and the cookie of an admin. News of this process reaches it through Redis."""
    redis = RedisServer(folder)
    redis.start()
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "dashboard.live.layer.NewsLayer", "CONFIG": {"hosts": [redis.url]}}
    }
    channel_layers.backends.clear()
    fill()
    get_user_model().objects.create(username="admin", is_superuser=True)
    server = ConsoleServer(f"sqlite:///{connection.settings_dict['NAME']}", redis.url, folder)
    try:
        server.start()
        yield server, session_cookie("admin")
    finally:
        server.stop()
        redis.stop()
