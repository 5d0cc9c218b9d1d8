"""Short log lines while Redis is away."""

from __future__ import annotations

import asyncio
import logging

from redis.exceptions import RedisError

PAUSE_SECONDS = 15.0


class ShortRedisErrors(logging.Filter):
    """The channel layer logs a traceback each second while Redis is away.

    One sentence now and then says the same. Nothing is wrong where a page's leaving was cut short
    because the process ends.
    """

    def __init__(self, sweep_seconds: float) -> None:
        super().__init__()
        self._sweep_seconds = sweep_seconds
        self._last_logged = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        error = None
        if record.exc_info:
            error = record.exc_info[1]
        if isinstance(error, asyncio.CancelledError):
            return False
        if not isinstance(error, RedisError | OSError):
            return True
        record.msg = (
            f"Redis is away ({error}). "
            f"Open pages are refreshed every {self._sweep_seconds:g} s until it is back."
        )
        record.args = ()
        record.exc_info = None
        if record.created - self._last_logged <= PAUSE_SECONDS:
            return False
        self._last_logged = record.created
        return True
