"""Lists that are followed in an event loop: one reading for all, rights, and slow readers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator

from dashboard.api.watch import hub, streams
from dashboard.api.watch.endpoint import PLACES
from dashboard.api.watch.streams import Stream
from dashboard.asgi import application
from dashboard.live.readers import Reader
from scheduler.models import ApiToken, Grant
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role
from scheduler.services.accounts.tokens import revoke_token
from scheduler.services.queues.create_update import update_queue
from tests.dashboard.api.conftest import Caller
from tests.dashboard.api.watch.followers import Follower
from tests.dashboard.sample import load_tree

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_server")]


class Open(Follower):
    """A stream that is open."""

    def __init__(self, token: str, path: str, version: str = "") -> None:
        super().__init__()
        headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
        if version:
            headers.append((b"last-event-id", version.encode()))
        where, _, query = f"/api/v1/{path}".partition("?")
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": where,
            "raw_path": where.encode(),
            "query_string": query.encode(),
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }
        self.channel = ApplicationCommunicator(application, scope)
        self.head: dict[str, Any] = {}
        self._rest = ""

    async def begin(self) -> Open:
        await self.channel.send_input({"type": "http.request", "body": b""})
        self.head = await self.channel.receive_output(timeout=60)
        assert self.head["status"] == 200
        await self.until(lambda: bool(self.version))
        return self

    async def begin_with(self, before: Follower) -> Open:
        """Go on from what another connection said."""
        self.objects = dict(before.objects)
        return await self.begin()

    async def until(self, wanted: Any) -> None:
        async with asyncio.timeout(60):
            while not wanted():
                message = await self.channel.receive_output(timeout=60)
                *whole, self._rest = (self._rest + message["body"].decode()).split("\n\n")
                self.apply("\n\n".join(whole))

    async def leave(self) -> None:
        await self.channel.send_input({"type": "http.disconnect"})
        await self.channel.wait(timeout=60)

    def names(self) -> set[str]:
        return {found["metadata"]["name"] for found in self.objects.values()}


async def in_thread(function: Any, *arguments: Any, **more: Any) -> Any:
    return await sync_to_async(function)(*arguments, **more)


async def all_places_are_free() -> None:
    """They are given back when the answer is closed, which a thread does after the reader left."""
    async with asyncio.timeout(60):
        while PLACES.taken():
            await asyncio.sleep(0.05)


@pytest.fixture
def reader(settings: Any) -> Caller:
    load_tree()
    found = Caller("reader", ("read",))
    grant_role(user="reader", role="viewer", queue="research", by=SYSTEM)
    return found


def change_weight(name: str, weight: int) -> None:
    update_queue(name, {"spec": {"weight": weight}}, by=SYSTEM, merge=True)


async def test_one_reading_serves_all_who_follow_the_same_list(reader: Caller):
    first = await Open(reader.token, "queues/?watch=1").begin()
    second = await Open(reader.token, "queues/?watch=1").begin()

    await in_thread(change_weight, "vision", 77)
    for stream in (first, second):
        await stream.until(lambda stream=stream: "MODIFIED vision" in stream.heard)
    views = len(hub.WatchHub.of_this_loop()._followed())
    await first.leave()
    await second.leave()

    assert first.names() == {"research", "vision", "language"}
    assert first.objects == second.objects
    assert views == 1
    assert dict(first.head["headers"])[b"X-Accel-Buffering"] == b"no"
    await all_places_are_free()


async def test_who_comes_back_is_told_what_happened_meanwhile_and_nothing_twice(reader: Caller):
    first = await Open(reader.token, "queues/?watch=1").begin()
    await first.leave()
    await in_thread(change_weight, "vision", 78)

    again = await Open(reader.token, "queues/?watch=1", first.version).begin_with(first)

    await again.leave()
    assert again.heard.count("MODIFIED vision") == 1
    assert len(set(again.heard)) == len(again.heard)


async def test_rights_count_while_a_list_is_followed(reader: Caller):
    stream = await Open(reader.token, "queues/?watch=1").begin()

    await in_thread(grant_role, user="reader", role="viewer", queue="serving", by=SYSTEM)
    await stream.until(lambda: "serving" in stream.names())
    await in_thread(lambda: Grant.objects.get(queue__name="serving").delete())
    await stream.until(lambda: "serving" not in stream.names())
    await in_thread(lambda: revoke_token(ApiToken.objects.get(user=reader.user), by=SYSTEM))
    await stream.until(lambda: stream.end is not None)
    await stream.channel.wait(timeout=60)

    assert stream.end == {"reason": "rights", "message": "You may no longer follow this list."}


async def test_a_reader_that_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "SLOW_SECONDS", 0.0)
    stream = Stream(None, Reader(1), None)  # type: ignore[arg-type]
    stream.tell(["event: ADDED\n\n"])
    await asyncio.sleep(0.01)

    stream.tell(["event: ADDED\n\n"])

    async with asyncio.timeout(5):
        await stream.until_cut()
