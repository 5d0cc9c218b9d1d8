"""Whether Redis answers.

A process with open pages asks it every few seconds. Pages are told the last answer.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from typing import Final

import redis
from django.conf import settings
from django.utils import timezone
from redis.backoff import NoBackoff
from redis.retry import Retry

from scheduler.outages import Outage, in_a_line

logger = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 2.0
_ASK_AGAIN_SECONDS = 2.0
_SURE_AFTER = 2
"""Questions without an answer: on a busy machine one answer may be late."""
_away_since: datetime | None = None
_outage = Outage(logger, "Redis answers again.")


def ping() -> None:
    """Raises `redis.RedisError`, or `OSError`, where it does not answer in time. Asks once."""
    options = {
        "socket_connect_timeout": ANSWER_SECONDS,
        "socket_timeout": ANSWER_SECONDS,
        "retry": Retry(NoBackoff(), 0),
    }
    with redis.Redis.from_url(settings.REDIS_URL, **options) as client:
        client.ping()


def away_since() -> datetime | None:
    """As last found; None where it answers, or where nobody has asked yet."""
    return _away_since


def set_away(since: datetime | None) -> None:
    global _away_since
    _away_since = since


class RedisWatch:
    """Asks again and again, and says each time whether the answer changed."""

    def __init__(self) -> None:
        self._unanswered = 0
        self._first_unanswered = timezone.now()

    async def has_changed(self) -> bool:
        was_away = away_since() is not None
        problem = await asyncio.to_thread(_ping_problem)
        if problem is None:
            self._unanswered = 0
            set_away(None)
            _outage.over()
        else:
            self._note_problem(problem)
        return was_away != (away_since() is not None)

    def _note_problem(self, problem: str) -> None:
        if not self._unanswered:
            self._first_unanswered = timezone.now()
        self._unanswered += 1
        if self._unanswered >= _SURE_AFTER and away_since() is None:
            set_away(self._first_unanswered)
            _outage.noticed("Redis does not answer: %s", problem)

    async def pause(self) -> None:
        await asyncio.sleep(_ASK_AGAIN_SECONDS)


def _ping_problem() -> str | None:
    try:
        ping()
    except (redis.RedisError, OSError) as problem:
        return in_a_line(problem)
    return None
