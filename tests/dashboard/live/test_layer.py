"""The channel layer when Redis was away."""

from __future__ import annotations

import asyncio

import pytest

from dashboard.live.layer import NewsLayer
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


async def _until_heard(layer: NewsLayer, channel: str) -> None:
    """The subscription lives on: news is heard by it."""
    heard = asyncio.ensure_future(layer.receive(channel))
    while not heard.done():
        layer.publish("news", {"type": "news", "changed": []})
        await asyncio.wait([heard], timeout=0.2)
    assert heard.result()["type"] == "news"
