"""Callers of the API: real tokens on Django's test client, one for each role that a test needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.test import Client

from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role
from scheduler.services.accounts.tokens import create_token

if TYPE_CHECKING:
    from tests.control_plane.plane import ControlPlane
    from tests.dashboard.asking import ConsoleOf


class Caller:
    """Speaks JSON to /api/v1/ with a token; answers are checked for their code and read."""

    def __init__(
        self,
        username: str,
        scopes: tuple[str, ...] = ("admin",),
        *,
        superuser: bool = False,
        **headers: str,
    ) -> None:
        users = get_user_model().objects
        self.user = users.filter(username=username).first() or (
            users.create_superuser if superuser else users.create_user
        )(username)
        number = self.user.api_tokens.count()
        self.token = create_token(self.user, f"test-{number}", scopes, by=SYSTEM).secret
        self.client = Client(raise_request_exception=True)
        self.headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json",
            **headers,
        }
        self.last: Any = None

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        expect: int | None = None,
        text: str | None = None,
        **headers: str,
    ) -> Any:
        path = path.removeprefix("http://testserver")
        path = path if path.startswith("/") else f"/api/v1/{path}"
        data = text if text is not None else "" if body is None else json.dumps(body)
        kind = headers.pop("content_type", "application/json")
        self.last = self.client.generic(
            method,
            path,
            data,
            content_type=kind,
            headers={**self.headers, **headers},
        )
        if expect is not None:
            assert self.last.status_code == expect, (
                f"{method} {path}: {self.last.status_code} {self.last.content.decode()[:2000]}"
            )
        return self._read()

    def _read(self) -> Any:
        kind = self.last.headers.get("Content-Type", "")
        if "event-stream" in kind:
            return self._begun_stream()
        if "json" in kind and not self.last.streaming:
            return json.loads(self.last.content)
        if "yaml" in kind:
            return list(yaml.safe_load_all(self.last.content))
        return (self.last.getvalue() if self.last.streaming else self.last.content).decode()

    def _begun_stream(self) -> str:
        """The first words of a stream that may go on for an hour."""
        first: bytes = next(iter(self.last.streaming_content))
        self.last._iterator.close()
        return first.decode()

    def get(self, path: str, expect: int = 200, **headers: str) -> Any:
        return self.ask("GET", path, expect=expect, **headers)

    def post(self, path: str, body: Any = None, expect: int = 200, **headers: str) -> Any:
        return self.ask("POST", path, body, expect=expect, **headers)

    def put(self, path: str, body: Any = None, expect: int = 200, **headers: str) -> Any:
        return self.ask("PUT", path, body, expect=expect, **headers)

    def patch(self, path: str, body: Any = None, expect: int = 200, **headers: str) -> Any:
        return self.ask("PATCH", path, body, expect=expect, **headers)

    def delete(self, path: str, expect: int = 200, **headers: str) -> Any:
        return self.ask("DELETE", path, expect=expect, **headers)

    def apply(self, text: str, query: str = "", expect: int = 200) -> Any:
        return self.ask(
            "POST",
            f"apply/{query}",
            text=text,
            content_type="application/yaml",
            expect=expect,
        )


@pytest.fixture(autouse=True)
def no_counts_of_other_tests(settings: Any) -> None:
    """Nor any that a Redis of this machine may hold."""
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    cache.clear()


@pytest.fixture
def admin(db: None) -> Caller:
    return Caller("boss", superuser=True)


@pytest.fixture
def caller(db: None) -> Callable[..., Caller]:
    """A user with the given roles: caller("ann", viewer="team-a")."""

    def make(username: str, scopes: tuple[str, ...] = ("admin",), **roles: str) -> Caller:
        found = Caller(username, scopes)
        for role, queue in roles.items():
            grant_role(user=username, role=role, queue=queue, by=SYSTEM)
        return found

    return make


def queue(name: str, parent: str = "root", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"parent": parent, **spec}}


def node(name: str, **allocatable: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"allocatable": {"pods": "110", **allocatable}}}


def job(
    name: str,
    in_queue: str = "default",
    replicas: int = 1,
    cpu: str = "1",
    **spec: Any,
) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox",
        "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}},
    }
    task = {
        "name": "worker",
        "replicas": replicas,
        "template": {"spec": {"containers": [container]}},
    }
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"queue": in_queue, "tasks": [task], **spec},
    }


@pytest.fixture(scope="module")
def console_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleOf]:
    """One console for all tests of a module: to start it takes longer than most of them."""
    # most runs need none
    from tests.control_plane.console import TlsConsole, database_of_tests

    running: dict[str, TlsConsole] = {}

    def start(plane: ControlPlane) -> TlsConsole:
        if plane.address not in running:
            folder = tmp_path_factory.mktemp("console")
            console = TlsConsole(plane, database_of_tests(), folder)
            running[plane.address] = console
            console.start()
        return running[plane.address]

    yield start
    for console in running.values():
        console.stop()
