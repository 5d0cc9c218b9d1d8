"""The channel layer when Redis was away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvloop

from dashboard.live.layer import NewsLayer
from dashboard.live.redis_log import ShortRedisErrors
from tests.dashboard.conftest import RedisServer


async def test_who_subscribes_while_the_connection_is_made_again_disturbs_nobody(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
):
    layer = NewsLayer([redis_server.url])
    steady = await layer.new_channel("steady")
    await layer.group_add("news", steady)
    redis_server.stop()
    while not caplog.records:  # whoever reads has noticed, and sleeps for a second
        await asyncio.sleep(0.01)
    redis_server.start()
    with redis_server.hung():
        late = asyncio.ensure_future(layer.new_channel("late"))
        await asyncio.sleep(1.5)
    await late
    await _until_heard(layer, steady)
    await layer.flush()

    problems = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert [problem for problem in problems if isinstance(problem, RuntimeError)] == []


@pytest.fixture
def short_errors() -> Iterator[None]:
    """As in a web process."""
    errors = ShortRedisErrors(5.0)
    logger = logging.getLogger("channels_redis.pubsub")
    logger.addFilter(errors)
    yield
    logger.removeFilter(errors)


@pytest.mark.usefixtures("short_errors")
def test_the_last_page_may_leave_just_after_the_connection_was_reset(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
):
    async def leave_and_come_back() -> None:
        layer = NewsLayer([redis_server.url])
        steady = await layer.new_channel("steady")
        await layer.group_add("news", steady)
        leaving = asyncio.ensure_future(layer.receive(await layer.new_channel("leaving")))
        await asyncio.sleep(0)
        pubsub = layer._get_layer()._shards[0]._pubsub
        async with pubsub._turn:  # nobody reads, so nobody notices
            layer._redis.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            writer = pubsub._pubsub.connection._writer
            while not writer.transport.is_closing():
                writer.write(b"PING\r\n")
                await asyncio.sleep(0.01)
            await _cancel(leaving, times=1)
        await asyncio.wait([leaving])
        await _until_heard(layer, steady)
        await layer.flush()

    with ThreadPoolExecutor(1) as thread:  # this one's event loops stay asyncio's own
        thread.submit(uvloop.run, leave_and_come_back()).result()

    assert _tracebacks(caplog) == []


@pytest.mark.usefixtures("short_errors")
async def test_a_process_that_ends_while_redis_hangs_logs_no_traceback(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
):
    layer = NewsLayer([redis_server.url])
    leaving = asyncio.ensure_future(layer.receive(await layer.new_channel("leaving")))
    await asyncio.sleep(0)
    async with layer._get_layer()._shards[0]._pubsub._turn:  # as long as Redis says nothing
        await _cancel(leaving, times=2)
        await asyncio.wait([leaving])
    await layer.flush()

    assert leaving.cancelled()
    assert _tracebacks(caplog) == []


async def _cancel(task: asyncio.Future[object], times: int) -> None:
    """First when its page leaves, and again when the process ends."""
    for _ in range(times):
        task.cancel()
        for _ in range(5):  # it begins to leave
            await asyncio.sleep(0)


def _tracebacks(caplog: pytest.LogCaptureFixture) -> list[BaseException | None]:
    return [record.exc_info[1] for record in caplog.records if record.exc_info]


async def _until_heard(layer: NewsLayer, channel: str) -> None:
    """The subscription lives on: news is heard by it."""
    heard = asyncio.ensure_future(layer.receive(channel))
    while not heard.done():
        layer.publish("news", {"type": "news", "changed": []})
        await asyncio.wait([heard], timeout=0.2)
    assert heard.result()["type"] == "news"
