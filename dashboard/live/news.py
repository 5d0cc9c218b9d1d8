"""Hearing what changed, for as long as one listens."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from channels.layers import get_channel_layer

from scheduler.notify import NEWS_GROUP

logger = logging.getLogger(__name__)

_AGAIN_SECONDS: Final = 1.0

Changed = Mapping[str, Iterable[str]]


async def hear_news(channel_name: str) -> AsyncIterator[Changed]:
    """What changed, each time somebody says so. The first is empty: one listens from then on.

    The channel layer subscribes again by itself when Redis comes back.
    """
    layer = get_channel_layer()
    channel = await _join_group(layer, channel_name)
    try:
        yield {}
        while True:
            message = await layer.receive(channel)
            yield message["changed"]
    finally:
        with contextlib.suppress(Exception):  # if Redis is away, there is nothing to leave
            await layer.group_discard(NEWS_GROUP, channel)


async def _join_group(layer: Any, channel_name: str) -> str:
    while True:
        try:
            channel: str = await layer.new_channel(channel_name)
            await layer.group_add(NEWS_GROUP, channel)
        except Exception as problem:
            logger.warning(
                "Redis does not answer (%s); looking every few seconds instead, and trying again.",
                problem,
            )
            await asyncio.sleep(_AGAIN_SECONDS)
        else:
            return channel


async def keep_going(work: Callable[[], Awaitable[None]]) -> None:
    """Start again after a bug: followers must not go quiet because of one bad message."""
    while True:
        try:
            await work()
        except Exception:
            logger.exception("Telling open pages what changed failed; it starts again.")
            await asyncio.sleep(_AGAIN_SECONDS)
