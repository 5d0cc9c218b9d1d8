"""Open pages, as the websocket sees them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from channels.testing import WebsocketCommunicator
from django.db import transaction
from django.test import Client as Browser

from dashboard.asgi import application
from scheduler import notify
from scheduler.models import QueueFigures
from tests.dashboard.sample import amounts

Message = dict[str, Any]


def cookie_of(user: Any) -> str:
    browser = Browser()
    browser.force_login(user)
    return browser.cookies["sessionid"].value


def socket(cookie: str | None, origin: str = "http://localhost") -> WebsocketCommunicator:
    headers = [(b"origin", origin.encode()), (b"host", b"localhost")]
    if cookie:
        headers.append((b"cookie", f"sessionid={cookie}".encode()))
    return WebsocketCommunicator(application, "/ws/v1/", headers=headers)


@contextlib.asynccontextmanager
async def page(cookie: str, *topics: str) -> AsyncIterator[WebsocketCommunicator]:
    opened = socket(cookie)
    accepted, _ = await opened.connect()
    assert accepted
    if topics:
        await opened.send_json_to({"type": "subscribe", "topics": list(topics)})
    try:
        yield opened
    finally:
        await opened.disconnect()


async def next_of(opened: WebsocketCommunicator, *kinds: str) -> Message:
    """The next message of one of these kinds; heartbeats and others are passed over."""
    async with asyncio.timeout(60):
        while True:
            message: Message = json.loads(await opened.receive_from(timeout=60))
            if message["type"] in kinds:
                return message


async def until(opened: WebsocketCommunicator, wanted: Any) -> Message:
    while not wanted(message := await next_of(opened, "delta", "snapshot")):
        pass
    return message


def row_of(message: Message, name: str) -> Message | None:
    return next((row for row in message["rows"] if row["key"] == name), None)


def allocate(name: str, gpus: int) -> None:
    """What a session does for a page: figures in one transaction, news on commit."""
    with transaction.atomic():
        QueueFigures.objects.filter(queue__name=name).update(allocated=amounts(gpus, 53, "300Gi"))
        notify.queues_changed([name])
