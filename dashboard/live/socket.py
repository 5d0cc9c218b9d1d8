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
from dashboard.live.identity import Identification
from dashboard.live.tokens import chosen_protocol, shown_token, visitor_with
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
    try:
        client = await _client_of(scope, send)
    except DatabaseError as problem:
        logger.warning("No page can be connected just now: %s", in_a_line(problem))
        await send({"type": "websocket.close", "code": TRY_AGAIN_LATER})
        return
    if client is None:
        await send({"type": "websocket.close", "code": SIGNED_OUT})
        return
    await send({"type": "websocket.accept", "subprotocol": chosen_protocol(scope)})
    await _serve_client(client, receive)


async def _client_of(scope: Message, send: Send) -> Client | None:
    """None where nobody is signed in."""
    secret = shown_token(scope)
    if secret is not None:
        found = await visitor_with(secret)
        if found is None:
            return None
        visitor, token = found
        return Client(visitor.user, None, send, visitor.visible, token)
    key = scope["cookies"].get(settings.SESSION_COOKIE_NAME, "")
    if not key:
        return None
    page = await Identification.of_this_loop().visitor_of(key)
    if page is None:
        return None
    return Client(page.user, key, send, page.visible)


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
