"""The websocket while Redis or the database is away."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError

from dashboard.live import hub, identity, redis_watch
from tests.dashboard.conftest import RedisServer
from tests.dashboard.live.sockets import allocate, next_of, page, row_of, socket
from tests.dashboard.sample import GPU

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_server")]


async def test_a_redis_that_was_away_is_found_again_and_news_flows(
    cookie: str,
    redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(
        hub, "SWEEP_SECONDS", 3600.0
    )  # so that only news, not looking again, can bring the change
    hub.Hub._hubs.clear()
    async with page(cookie, "queues") as opened:
        await next_of(opened, "snapshot")
        redis_server.stop()
        await sync_to_async(allocate)(
            "vision", 12
        )  # nobody hears of this one, and the service does not mind
        redis_server.start()
        delta = None
        for gpus in range(13, 33):  # the layer needs a moment to come back
            await sync_to_async(allocate)("vision", gpus)
            with contextlib.suppress(TimeoutError):
                delta = await asyncio.wait_for(
                    asyncio.shield(asyncio.ensure_future(next_of(opened, "delta"))), 1
                )
                break

    assert delta
    assert row_of(delta, "vision")


async def test_what_was_missed_while_redis_was_away_is_found_by_looking_again(
    cookie: str,
    redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(hub, "SWEEP_SECONDS", 0.2)
    hub.Hub._hubs.clear()
    redis_server.stop()
    try:
        async with page(cookie, "queues") as opened:
            await next_of(opened, "snapshot")
            await sync_to_async(allocate)("vision", 17)
            delta = await next_of(opened, "delta")
    finally:
        redis_server.start()

    assert row_of(delta, "vision")["resources"][GPU]["allocated"] == "17"


async def test_while_the_database_is_away_nobody_is_let_in_and_nothing_breaks(
    cookie: str, monkeypatch: pytest.MonkeyPatch
):
    def away(_keys: set[str]) -> None:
        raise OperationalError("gone")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(identity, "visitors", away)
        accepted, _ = await socket(cookie).connect(timeout=60)
        assert not accepted

    async with page(cookie, "queues") as opened:
        assert (await next_of(opened, "snapshot"))["topic"] == "queues"


async def test_a_redis_that_hangs_is_named_and_so_is_its_return(
    cookie: str,
    redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(redis_watch, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(redis_watch, "_ASK_AGAIN_SECONDS", 0.1)
    async with page(cookie, "cluster") as opened:
        (row,) = (await next_of(opened, "snapshot"))["rows"]
        assert not row["isRedisAway"]

        with redis_server.hung():
            (row,) = (await next_of(opened, "delta"))["rows"]
            assert row["isRedisAway"]
            assert row["notices"][0]["text"] == "Redis does not answer for"
            assert not [
                notice for notice in row["notices"] if "scheduler worker" in notice.get("after", "")
            ]

        (row,) = (await next_of(opened, "delta"))["rows"]
        assert not row["isRedisAway"]
