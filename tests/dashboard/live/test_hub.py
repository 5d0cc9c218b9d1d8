"""A slow reader's outbox.

News is merged per row, never lost, and never in the way of the others.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dashboard.live.client import MOST_NOTICES, Client
from dashboard.live.updates import Topic, Update, encode_tail


class Wire:
    """A socket that takes a message only when it is let."""

    def __init__(self, *, open_from_the_start: bool = True) -> None:
        self.messages: list[dict[str, Any]] = []
        self.close_code: int | None = None
        self.gate = asyncio.Event()
        if open_from_the_start:
            self.gate.set()

    async def send(self, message: dict[str, Any]) -> None:
        await self.gate.wait()
        if message["type"] == "websocket.close":
            self.close_code = message["code"]
        else:
            self.messages.append(json.loads(message["text"]))


def row(key: str, value: int) -> str:
    return json.dumps({"key": key, "value": value})


def follower(wire: Wire, topic: Topic) -> tuple[Client, asyncio.Task[None]]:
    client = Client(None, None, wire.send)
    client.topics[topic.name] = 0
    topic.clients.add(client)
    return client, asyncio.create_task(client.write_messages())


def spread(topic: Topic, rows: dict[str, str]) -> None:
    update = topic.take_rows(rows)
    if update:
        for client in topic.clients:
            client.queue_update(topic, update, encode_tail(update.rows.values(), update.gone))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def replay(messages: list[dict[str, Any]]) -> dict[str, int]:
    """The rows as a page has them after these messages, with the sequence checked on the way."""
    rows: dict[str, int] = {}
    for place, message in enumerate(messages, start=1):
        assert message["seq"] == place
        if message["type"] == "snapshot":
            rows = {}
        rows |= {item["key"]: item["value"] for item in message["rows"]}
        for key in message["gone"]:
            rows.pop(key, None)
    return rows


async def test_a_slow_reader_gets_fewer_messages_and_the_same_rows():
    topic = Topic("queues", rows={"a": row("a", 0), "b": row("b", 0)})
    slow_wire = Wire(open_from_the_start=False)
    fast_wire = Wire()
    follower(slow_wire, topic)
    follower(fast_wire, topic)

    for client in topic.clients:
        client.queue_update(topic, Update(whole=True), None)
    for value in range(1, 6):
        await settle()
        spread(topic, {"a": row("a", value), "b": row("b", 0 if value < 3 else 3)})
    await settle()
    fast_before_the_slow_one_read = len(fast_wire.messages)
    slow_wire.gate.set()
    await settle()

    assert fast_before_the_slow_one_read == 6
    assert len(slow_wire.messages) < 6
    assert replay(slow_wire.messages) == replay(fast_wire.messages) == {"a": 5, "b": 3}


async def test_a_row_that_went_and_came_back_while_nobody_read_is_there():
    topic = Topic("queues", rows={"a": row("a", 0), "b": row("b", 0)})
    wire = Wire(open_from_the_start=False)
    client, _ = follower(wire, topic)
    client.queue_update(topic, Update(whole=True), None)
    await settle()

    spread(topic, {"a": row("a", 1)})
    spread(topic, {"a": row("a", 1), "b": row("b", 2)})
    spread(topic, {"b": row("b", 3)})
    wire.gate.set()
    await settle()

    assert replay(wire.messages) == {"b": 3}


async def test_merging_for_one_leaves_the_shared_update_alone():
    topic = Topic("queues", rows={"a": row("a", 0)})
    slow = Wire(open_from_the_start=False)
    fast = Wire(open_from_the_start=False)
    follower(slow, topic)
    follower(fast, topic)

    spread(topic, {"a": row("a", 1)})
    await settle()
    spread(topic, {"a": row("a", 2)})
    spread(topic, {"a": row("a", 3), "c": row("c", 3)})
    fast.gate.set()
    await settle()

    assert [message["rows"] for message in fast.messages] == [
        [{"key": "a", "value": 1}],
        [{"key": "a", "value": 3}, {"key": "c", "value": 3}],
    ]


async def test_heartbeats_do_not_pile_up_for_who_does_not_read():
    topic = Topic("queues", rows={})
    wire = Wire(open_from_the_start=False)
    client, _ = follower(wire, topic)

    for _ in range(10):
        client.queue_notice('{"type":"heartbeat"}')
        await settle()
    wire.gate.set()
    await settle()

    assert len(wire.messages) == 2  # the one that was on its way, and one for all the rest


async def test_a_resync_while_news_is_waiting_becomes_one_whole_message():
    topic = Topic("queues", rows={"a": row("a", 0)})
    wire = Wire(open_from_the_start=False)
    client, _ = follower(wire, topic)
    client.queue_notice('{"type":"heartbeat"}')
    await settle()

    spread(topic, {"a": row("a", 1)})
    client.queue_update(topic, Update(whole=True), None)
    spread(topic, {"a": row("a", 2)})
    wire.gate.set()
    await settle()

    assert [message["type"] for message in wire.messages] == ["heartbeat", "snapshot"]
    assert replay(wire.messages[1:]) == {"a": 2}


async def test_who_asks_without_end_and_reads_no_answer_is_shown_out():
    wire = Wire(open_from_the_start=False)
    client, writing = follower(wire, Topic("queues", rows={}))

    for number in range(10_000):
        client.refuse_topic(f"no-such-{number}", "There is no such topic.")
    await settle()
    waiting = client.waiting
    wire.gate.set()
    await writing

    assert waiting <= MOST_NOTICES
    assert wire.close_code == 1008


async def test_who_is_to_be_closed_is_told_nothing_more():
    topic = Topic("queues", rows={})
    wire = Wire(open_from_the_start=False)
    client, writing = follower(wire, topic)
    client.queue_notice('{"type":"heartbeat"}')
    await settle()

    spread(topic, {"a": row("a", 1)})
    client.close(4401)
    wire.gate.set()
    await writing

    assert [message["type"] for message in wire.messages] == ["heartbeat"]
    assert wire.close_code == 4401
