"""One open page's socket: says who may listen, passes changes on, takes no orders.

A plain ASGI application rather than a Channels consumer: at a thousand sockets the way from the hub to the wire is what counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from dashboard.live.hub import Client, Hub
from dashboard.live.identity import Door
from dashboard.live.topics import may_follow
from scheduler.outages import in_a_line

logger = logging.getLogger(__name__)

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

SIGNED_OUT, TRY_AGAIN_LATER = 4401, 1013
_LONGEST_REQUEST = 16_384
_MOST_TOPICS = 64


async def live_socket(scope: Message, receive: Receive, send: Send) -> None:
    await receive()  # websocket.connect
    key = scope["cookies"].get(settings.SESSION_COOKIE_NAME, "")
    try:
        visitor = await Door.of_this_loop().visitor(key) if key else None
    except DatabaseError as problem:
        logger.warning("Nobody can be connected to the news just now: %s", in_a_line(problem))
        await send({"type": "websocket.close", "code": TRY_AGAIN_LATER})
        return
    if visitor is None:
        await send({"type": "websocket.close", "code": SIGNED_OUT})
        return
    await send({"type": "websocket.accept"})
    client = Client(visitor.user, key, send, visitor.sight)
    hub = Hub.of_this_loop()
    hub.join(client)
    writer = asyncio.create_task(client.write())
    try:
        await _listen(client, hub, receive)
    finally:
        hub.leave(client)
        writer.cancel()
        with contextlib.suppress(
            asyncio.CancelledError, Exception
        ):  # a socket that broke while writing has nobody left to tell
            await writer


async def _listen(client: Client, hub: Hub, receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return
        _answer(client, hub, message.get("text") or "")


def _answer(client: Client, hub: Hub, text: str) -> None:
    """Do what the page asks; a request that can not be read is answered, not obeyed and not fatal."""
    request = _parse(text)
    if request is None:
        client.refuse(
            "", 'Not understood. Send JSON such as {"type": "subscribe", "topics": ["queues"]}.'
        )
        return
    if request["type"] == "resync":
        hub.resync(client, request["topics"][0])
        return
    for topic in request["topics"]:
        if len(client.topics) >= _MOST_TOPICS:
            client.refuse(topic, f"One socket follows at most {_MOST_TOPICS} topics.")
        elif may_follow(client.sight, topic):
            hub.subscribe(client, topic)
        else:
            client.refuse(topic, "There is no such topic, or you may not follow it.")


def _parse(text: str) -> Message | None:
    """The request with its list of topics, or None if it is not one."""
    if len(text) > _LONGEST_REQUEST:
        return None
    try:
        request = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict) or request.get("type") not in ("subscribe", "resync"):
        return None
    topics = request.get("topics") if request["type"] == "subscribe" else [request.get("topic")]
    if (
        not isinstance(topics, list)
        or not topics
        or not all(isinstance(topic, str) for topic in topics)
    ):
        return None
    return {"type": request["type"], "topics": topics}
