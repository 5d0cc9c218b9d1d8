"""How much one caller may ask for: a count a minute, told in headers with every answer."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

_WINDOW = 60


class MinuteThrottle(BaseThrottle):
    """So many requests in each minute of the clock, for an account or, before sign-in, for an address; kept in the cache."""

    def allow_request(self, request: Request, view: Any) -> bool:
        limit: int = settings.API_RATE_PER_MINUTE if request.user.is_authenticated else settings.API_ANONYMOUS_RATE_PER_MINUTE
        if limit <= 0:
            return True
        now = time.time()
        window = int(now // _WINDOW)
        count = _counted(f"rate:{self._who(request)}:{window}")
        self._wait = (window + 1) * _WINDOW - now
        request.rate_headers = {  # type: ignore[attr-defined]
            "RateLimit-Limit": str(limit),
            "RateLimit-Remaining": str(max(0, limit - count)),
            "RateLimit-Reset": str(int(self._wait) + 1),
        }
        return count <= limit

    def _who(self, request: Request) -> str:
        return f"user-{request.user.pk}" if request.user.is_authenticated else f"address-{self.get_ident(request)}"

    def wait(self) -> float | None:
        return self._wait


def _counted(key: str) -> int:
    if cache.add(key, 1, timeout=2 * _WINDOW):
        return 1
    try:
        return int(cache.incr(key))
    except ValueError:  # it ran out in between
        return 1
