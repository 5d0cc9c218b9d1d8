"""Sockets of programs: a token in a header or as a subprotocol, with the rights of the API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator

from dashboard.asgi import application
from dashboard.live.hub import SIGNED_OUT
from scheduler.models import ApiToken
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.tokens import create_token, revoke_token
from tests.dashboard.live.sockets import next_of
from tests.dashboard.sample import add_user, load_tree

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_server")]


@pytest.fixture
def token() -> str:
    load_tree()
    user = add_user("narrow", queue="research")
    return create_token(user, "a program", ("read",), by=SYSTEM).secret


def by_header(token: str) -> WebsocketCommunicator:
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
    return WebsocketCommunicator(application, "/ws/v1/", headers=headers)


def by_protocol(token: str) -> WebsocketCommunicator:
    headers = [(b"host", b"localhost"), (b"origin", b"https://elsewhere.example")]
    offered = ["fumarole.v1", f"fumarole.bearer.{token}"]
    return WebsocketCommunicator(application, "/ws/v1/", headers=headers, subprotocols=offered)


async def snapshot(opened: WebsocketCommunicator) -> Any:
    await opened.send_json_to({"type": "subscribe", "topics": ["queues"]})
    return await next_of(opened, "snapshot")


async def test_a_token_in_a_header_opens_a_socket_with_its_rights(token: str):
    opened = by_header(token)
    accepted, protocol = await opened.connect()
    rows = (await snapshot(opened))["rows"]
    await opened.disconnect()

    assert (accepted, protocol) == (True, None)
    assert {row["key"] for row in rows} == {"research", "vision", "language"}


async def test_a_token_as_a_subprotocol_is_not_said_back(token: str):
    opened = by_protocol(token)
    accepted, protocol = await opened.connect()
    rows = (await snapshot(opened))["rows"]
    await opened.disconnect()

    assert (accepted, protocol) == (True, "fumarole.v1")
    assert len(rows) == 3


@pytest.mark.parametrize("secret", ["", "nonsense", "fum_0000"])
async def test_a_wrong_token_opens_nothing(token: str, secret: str):
    for opened in (by_header(secret), by_protocol(secret)):
        accepted, code = await opened.connect()
        assert (accepted, code) == (False, SIGNED_OUT)


async def test_a_token_in_the_address_opens_nothing(token: str):
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
    opened = WebsocketCommunicator(application, f"/ws/v1/?token={token}", headers=headers)

    accepted, code = await opened.connect()

    assert (accepted, code) == (False, SIGNED_OUT)


async def test_a_revoked_token_closes_its_socket(token: str):
    opened = by_header(token)
    await opened.connect()
    await snapshot(opened)

    await sync_to_async(lambda: revoke_token(ApiToken.objects.get(), by=SYSTEM))()

    while (message := await opened.receive_output(timeout=60))["type"] != "websocket.close":
        assert json.loads(message["text"])["type"] in ("heartbeat", "delta", "snapshot")
    assert message["code"] == SIGNED_OUT
