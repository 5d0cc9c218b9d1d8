"""What a reader knows, kept in Redis for a while.

A reader that comes back is often served by another web process, which has not read the list in the
same moments. It takes over from what the first one wrote down.
"""

from __future__ import annotations

import logging
import zlib
from typing import Final

from django.conf import settings
from redis.exceptions import RedisError

from dashboard.api.framework.shared_redis import redis_client, redis_name
from dashboard.api.watch.views import KEPT_SECONDS, State, View, state_in

logger = logging.getLogger(__name__)

_KIND: Final = "watch"
_MOST_STEPS: Final = 2_000
_MOST_BYTES: Final = 2_000_000


def keep(view: View) -> None:
    """Without Redis a reader that comes to another process must list again."""
    packed = zlib.compress(view.record(_MOST_STEPS), 1)
    if len(packed) > _MOST_BYTES:
        return
    try:
        redis_client(settings.REDIS_URL).set(
            redis_name(_KIND, view.id), packed, ex=int(KEPT_SECONDS)
        )
    except RedisError as error:
        logger.info("What followers of a list know was not kept: %s", error)


def kept_state(view_id: str, noun: str, number: int) -> State | None:
    try:
        packed = redis_client(settings.REDIS_URL).get(redis_name(_KIND, view_id))
    except RedisError as error:
        logger.info("What followers of a list know was not found: %s", error)
        return None
    if not isinstance(packed, bytes):
        return None
    return state_in(zlib.decompress(packed), noun, number)
