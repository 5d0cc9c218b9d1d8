"""vcctl and the server in one process: every request goes through the whole of Django to a real
database, but through no socket.

The tests with processes (test_stories.py, test_terminal.py) have the sockets.
"""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dashboard.cli import main
from dashboard.cli.short import PROGRAMS


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table without its head."""
        return [line.split() for line in self.out.splitlines()[1:]]


Type = Callable[..., Done]


def typed(line: str, stdin: str = "") -> Done:
    """Run a line as a shell would have cut it into words."""
    name, *words = shlex.split(line)
    app = main.program(words) if name == "vcctl" else PROGRAMS[name]
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
    )
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr("sys.stdin", io.StringIO(stdin))
        code = main.exit_code(
            lambda: main.ready(app).main(words, prog_name=name, standalone_mode=False)
        )
    return Done(code, *(pipe.buffer.getvalue().decode() for pipe in (out, err)))


@pytest.fixture(autouse=True)
def nothing_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No contexts, tokens or installations but the test's own."""
    for name in (
        "VCCTL_SERVER",
        "VCCTL_TOKEN",
        "VCCTL_TOKEN_FILE",
        "VCCTL_CONTEXT",
        "VCCTL_CA_CERT",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VCCTL_CONFIG", str(tmp_path / "contexts.json"))
    monkeypatch.setenv("FUMAROLE_VAR", str(tmp_path / "var"))
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def server(db: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[str]:
    """As Django's own test client does it: the end of a request must not close the connection that
    the test's transaction is on.
    """
    import httpx
    from django.core.signals import request_finished, request_started
    from django.core.wsgi import get_wsgi_application
    from django.db import close_old_connections

    settings.STATIC_ROOT = ""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    monkeypatch.setattr(
        "dashboard.cli.client.transport",
        httpx.WSGITransport(get_wsgi_application(), raise_app_exceptions=False),
    )
    yield "http://testserver"
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def new_token(server: str) -> Callable[..., str]:
    """A token of a user with a role: new_token("ann", role="submitter", queue="team-a")."""
    from django.contrib.auth import get_user_model

    from scheduler.services.accounts.actors import SYSTEM
    from scheduler.services.accounts.grants import grant_role
    from scheduler.services.accounts.tokens import create_token

    def make(username: str, role: str = "", queue: str = "root") -> str:
        users = get_user_model().objects
        user = users.create_user(username) if role else users.create_superuser(username)
        if role:
            grant_role(user=username, role=role, queue=queue, by=SYSTEM)
        return create_token(user, "cli", ["admin"], by=SYSTEM).secret

    return make


@pytest.fixture
def vcctl(server: str, new_token: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Type:
    """An admin at a terminal that is a pipe."""
    monkeypatch.setenv("VCCTL_SERVER", server)
    monkeypatch.setenv("VCCTL_TOKEN", new_token("boss"))
    return typed
