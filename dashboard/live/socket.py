"""One open page's socket: checks who listens and passes changes on. It takes no commands.

It is a plain ASGI application, not a Channels consumer: with a thousand sockets, the way from the
hub to the wire is what counts.
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

from dashboard.live.client import Client
from dashboard.live.hub import SIGNED_OUT, Hub
from dashboard.live.identity import Identification, Visitor
from dashboard.live.topics import may_follow
from scheduler.outages import in_a_line

logger = logging.getLogger(__name__)

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TRY_AGAIN_LATER = 1013
_LONGEST_REQUEST = 16_384
_MOST_TOPICS = 64


async def live_socket(scope: Message, receive: Receive, send: Send) -> None:
    await receive()  # websocket.connect
    key = scope["cookies"].get(settings.SESSION_COOKIE_NAME, "")
    try:
        visitor = await _visitor_of(key)
    except DatabaseError as problem:
        logger.warning("No page can be connected just now: %s", in_a_line(problem))
        await send({"type": "websocket.close", "code": TRY_AGAIN_LATER})
        return
    if visitor is None:
        await send({"type": "websocket.close", "code": SIGNED_OUT})
        return
    await send({"type": "websocket.accept"})
    await _serve_client(Client(visitor.user, key, send, visitor.visible), receive)


async def _visitor_of(session_key: str) -> Visitor | None:
    if not session_key:
        return None
    return await Identification.of_this_loop().visitor_of(session_key)


async def _serve_client(client: Client, receive: Receive) -> None:
    hub = Hub.of_this_loop()
    hub.add_client(client)
    writer = asyncio.create_task(client.write_messages())
    try:
        await _listen(client, hub, receive)
    finally:
        hub.remove_client(client)
        writer.cancel()
        # If the socket broke while writing, nobody is left to tell.
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await writer


async def _listen(client: Client, hub: Hub, receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return
        _answer_request(client, hub, message.get("text") or "")


def _answer_request(client: Client, hub: Hub, text: str) -> None:
    """Do what the page asks. A request that cannot be read is answered and does nothing."""
    request = read_request(text)
    if request is None:
        example = '{"type": "subscribe", "topics": ["queues"]}'
        client.refuse_topic("", f"Not understood. Send JSON such as {example}.")
        return
    if request["type"] == "resync":
        hub.send_snapshot(client, request["topics"][0])
        return
    for topic in request["topics"]:
        if len(client.topics) >= _MOST_TOPICS:
            client.refuse_topic(topic, f"One socket follows at most {_MOST_TOPICS} topics.")
        elif may_follow(client.visible, topic):
            hub.subscribe(client, topic)
        else:
            client.refuse_topic(topic, "There is no such topic, or you may not follow it.")


def read_request(text: str) -> Message | None:
    """The request with its list of topics, or None if it is not one."""
    if len(text) > _LONGEST_REQUEST:
        return None
    try:
        request = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict) or request.get("type") not in ("subscribe", "resync"):
        return None
    topics = request.get("topics")
    if request["type"] == "resync":
        topics = [request.get("topic")]
    if not isinstance(topics, list) or not topics:
        return None
    if not all(isinstance(topic, str) for topic in topics):
        return None
    return {"type": request["type"], "topics": topics}
