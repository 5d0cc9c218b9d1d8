"""The site's channel layer: that of channels-redis, with a way to publish from a plain thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import redis
from channels_redis.pubsub import (
    RedisPubSubChannelLayer,
    RedisPubSubLoopLayer,
    RedisSingleShardConnection,
)
from redis.asyncio.client import PubSub
from redis.asyncio.connection import AbstractConnection
from redis.backoff import NoBackoff
from redis.retry import Retry

_ANSWER_SECONDS = 2.0


class NewsLayer(RedisPubSubChannelLayer):  # type: ignore[misc]
    """For one Redis.

    Services publish from threads and workers without an event loop. To start one for a single
    message, with a connection of its own, would cost more than the message is worth.
    """

    def __init__(self, hosts: list[str], prefix: str = "asgi") -> None:
        super().__init__(hosts=hosts, prefix=prefix)
        self._prefix = prefix
        again_if_it_was_restarted = Retry(NoBackoff(), 1)
        self._redis = redis.Redis.from_url(
            hosts[0],
            socket_timeout=_ANSWER_SECONDS,
            socket_connect_timeout=_ANSWER_SECONDS,
            retry=again_if_it_was_restarted,
        )

    def publish(self, group: str, message: dict[str, Any]) -> None:
        """What `group_send` does, here and now. Raises `RedisError`."""
        self._redis.publish(f"{self._prefix}__group__{group}", self.serialize(message))

    def _get_layer(self) -> RedisPubSubLoopLayer:
        is_new = asyncio.get_running_loop() not in self._layers
        layer = super()._get_layer()
        if is_new:
            layer._shards = [_Connection(shard.host, layer) for shard in layer._shards]
        return layer


class _Connection(RedisSingleShardConnection):  # type: ignore[misc]
    _pubsub: Any

    def _ensure_redis(self) -> None:
        is_new = self._redis is None
        super()._ensure_redis()
        if is_new:
            pool = self._redis.connection_pool
            pool.connection_class = _that_says_when_it_was_closed(pool.connection_class)
            self._pubsub = _InTurn(self._pubsub)


def _that_says_when_it_was_closed(kind: type[AbstractConnection]) -> type[AbstractConnection]:
    """A write to a connection that has just been reset is an `OSError` in asyncio, and redis-py
    connects again. In uvloop it is a `RuntimeError`, which redis-py does not know.
    """

    class Connection(kind):  # type: ignore[misc, valid-type]
        async def send_packed_command(
            self, command: bytes | str | Iterable[bytes], check_health: bool = True
        ) -> None:
            if self._writer is not None and self._writer.transport.is_closing():
                await self.disconnect(nowait=True)
                raise redis.ConnectionError("Redis closed the connection.")
            await super().send_packed_command(command, check_health)

    return Connection


class _InTurn:
    """A subscription that one coroutine uses at a time.

    The channel layer reads from it and changes it at once. If Redis has just closed the connection,
    both would connect again, and both wait for the same answer, which asyncio refuses.
    """

    def __init__(self, pubsub: PubSub) -> None:
        self._pubsub = pubsub
        self._turn = asyncio.Lock()

    @property
    def subscribed(self) -> bool:
        return bool(self._pubsub.subscribed)

    async def get_message(self, **options: Any) -> dict[str, Any] | None:
        async with self._turn:
            message: dict[str, Any] | None = await self._pubsub.get_message(**options)
            return message

    async def subscribe(self, channel: str) -> None:
        async with self._turn:
            await self._pubsub.subscribe(channel)

    async def unsubscribe(self, channel: str) -> None:
        async with self._turn:
            await self._pubsub.unsubscribe(channel)
