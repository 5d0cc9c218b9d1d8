"""What web processes tell each other through Redis, where a slow answer is worse than none."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

import redis
from django.conf import settings

_ANSWER_SECONDS: Final = 0.25
"""A Redis that takes longer counts as away: what is kept there is not worth a slow answer."""


@lru_cache(maxsize=4)
def redis_client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url, socket_timeout=_ANSWER_SECONDS, socket_connect_timeout=_ANSWER_SECONDS
    )


def redis_name(kind: str, key: str) -> str:
    """Several installations may share a Redis, so each has names of its own."""
    return f"fumarole:{_installation_key(settings.SECRET_KEY)}:{kind}:{key}"


@lru_cache(maxsize=4)
def _installation_key(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()[:12]
