"""How many requests one caller may make a minute.

All web processes count together, and headers of every answer tell the count.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from dashboard.api.framework.shared_redis import redis_client, redis_name
from dashboard.http.proxies import neighbourhood

logger = logging.getLogger(__name__)

_WINDOW = 60
_LEAVE_ALONE_SECONDS = 5.0
"""How long a Redis that is away is not asked again."""
_away_until = 0.0


class MinuteThrottle(BaseThrottle):
    """A limit for each minute of the clock, for an account or, before sign-in, for an address."""

    def allow_request(self, request: Request, view: Any) -> bool:
        limit: int = settings.API_ANONYMOUS_RATE_PER_MINUTE
        if request.user.is_authenticated:
            limit = settings.API_RATE_PER_MINUTE
        if limit <= 0:
            return True
        now = time.time()
        window = int(now // _WINDOW)
        count = count_request(f"{self._caller(request)}:{window}")
        self._wait = (window + 1) * _WINDOW - now
        request.rate_headers = {  # type: ignore[attr-defined]
            "RateLimit-Limit": str(limit),
            "RateLimit-Remaining": str(max(0, limit - count)),
            "RateLimit-Reset": str(int(self._wait) + 1),
        }
        return count <= limit

    def _caller(self, request: Request) -> str:
        if request.user.is_authenticated:
            return f"user-{request.user.pk}"
        return f"address-{neighbourhood(self.get_ident(request))}"

    def wait(self) -> float | None:
        return self._wait


def count_request(key: str) -> int:
    """Count one more request under this key, and return how many there are now.

    In Redis for all web processes, or in this one alone while Redis is away.
    """
    global _away_until
    if time.monotonic() >= _away_until:
        try:
            return _count_in_redis(key)
        except RedisError as error:
            _away_until = time.monotonic() + _LEAVE_ALONE_SECONDS
            logger.warning("Redis is away; each web process counts its own requests: %s", error)
    return _count_here(key)


def _count_in_redis(key: str) -> int:
    name = redis_name("rate", key)
    with redis_client(settings.REDIS_URL).pipeline(transaction=False) as both:
        both.set(name, 0, ex=2 * _WINDOW, nx=True)
        both.incr(name)
        return int(both.execute()[1])


def _count_here(key: str) -> int:
    if cache.add(f"rate:{key}", 1, timeout=2 * _WINDOW):
        return 1
    try:
        return int(cache.incr(f"rate:{key}"))
    except ValueError:  # it ran out in between
        return 1
