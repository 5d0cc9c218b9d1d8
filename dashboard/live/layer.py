"""The site's channel layer: that of channels-redis, with a way to publish from a plain thread."""

from __future__ import annotations

from typing import Any

import redis
from channels_redis.pubsub import RedisPubSubChannelLayer
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
