"""The websocket, from a service's commit to the page, through the real channel layer on a real
Redis.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction

from dashboard.live import hub, identity
from dashboard.live.topics import read_topics
from scheduler import notify
from scheduler.models import Queue
from tests.dashboard.live.sockets import allocate, cookie_of, next_of, page, row_of, socket, until
from tests.dashboard.sample import GPU, add_gang, add_queue, add_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_server")]


async def test_a_page_gets_the_whole_tree_and_then_only_what_changed(cookie: str):
    async with page(cookie, "queues") as opened:
        snapshot = await next_of(opened, "snapshot")
        await sync_to_async(allocate)("vision", 9)
        delta = await until(opened, lambda message: row_of(message, "vision"))

    assert [row["key"] for row in snapshot["rows"]][:2] == ["root", "default"]
    assert (snapshot["topic"], snapshot["seq"], snapshot["gone"]) == ("queues", 1, [])
    assert delta["type"] == "delta"
    assert delta["seq"] == 2
    assert [row["key"] for row in delta["rows"]] == ["vision"]
    assert delta["rows"][0]["resources"][GPU]["allocated"] == "9"


async def test_what_one_page_is_told_the_other_is_told_too(cookie: str):
    async with page(cookie, "queues") as one, page(cookie, "queues") as other:
        await next_of(one, "snapshot")
        await next_of(other, "snapshot")
        await sync_to_async(allocate)("vision", 11)

        for opened in (one, other):
            delta = await until(opened, lambda message: row_of(message, "vision"))
            assert row_of(delta, "vision")["resources"][GPU]["text"] == "11 of 32 GPU"


async def test_a_deleted_queue_is_named_in_gone_and_a_new_one_arrives(cookie: str):
    def replace() -> None:
        with transaction.atomic():
            Queue.objects.filter(name="default").delete()
            add_queue("incoming")
            notify.queues_changed(["default", "incoming"])

    async with page(cookie, "queues") as opened:
        await next_of(opened, "snapshot")
        await sync_to_async(replace)()
        delta = await until(opened, lambda message: row_of(message, "incoming"))

    assert delta["gone"] == ["default"]


async def test_nothing_is_told_of_a_transaction_that_was_rolled_back(cookie: str):
    def think_again() -> None:
        with contextlib.suppress(ZeroDivisionError), transaction.atomic():
            allocate("vision", 30)
            raise ZeroDivisionError

    async with page(cookie, "queues") as opened:
        await next_of(opened, "snapshot")
        await sync_to_async(think_again)()
        await sync_to_async(allocate)("serving", 7)
        delta = await next_of(opened, "delta")

    assert [row["key"] for row in delta["rows"]] == ["serving"]


async def test_a_queues_own_topic_carries_that_queue_alone(cookie: str):
    async with page(cookie, "queue:vision") as opened:
        snapshot = await next_of(opened, "snapshot")

    assert [row["key"] for row in snapshot["rows"]] == ["vision"]


async def test_a_new_gang_changes_the_counts_of_its_queue_and_of_those_above(cookie: str):
    def submit() -> None:
        with transaction.atomic():
            add_gang("vision", "more", phase="Pending")
            notify.jobs_changed(["default/more"])

    async with page(cookie, "queues") as opened:
        await next_of(opened, "snapshot")
        await sync_to_async(submit)()
        delta = await until(opened, lambda message: row_of(message, "vision"))

    assert {row["key"]: row["subtree"]["pending"] for row in delta["rows"]} == {
        "vision": 1,
        "research": 2,
        "root": 3,
    }


async def test_resync_sends_the_topic_whole_again(cookie: str):
    async with page(cookie, "queues") as opened:
        first = await next_of(opened, "snapshot")
        await opened.send_json_to({"type": "resync", "topic": "queues"})
        again = await next_of(opened, "snapshot")

    assert again["rows"] == first["rows"]
    assert again["seq"] == first["seq"] + 1


async def test_there_is_a_heartbeat(cookie: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub, "HEARTBEAT_SECONDS", 0.2)
    async with page(cookie, "queues") as opened:
        assert await next_of(opened, "heartbeat") == {"type": "heartbeat"}


@pytest.mark.parametrize(
    "request_text",
    [
        "not json",
        "[]",
        '{"type": "order", "topics": ["queues"]}',
        '{"type": "subscribe"}',
        '{"type": "subscribe", "topics": [1]}',
        "x" * 20_000,
        "[" * 16_000,
    ],
    ids=[
        "no JSON",
        "no object",
        "unknown type",
        "no topics",
        "topic that is no text",
        "too long",
        "too deep",
    ],
)
async def test_a_request_that_can_not_be_read_is_answered_and_the_socket_lives_on(
    cookie: str, request_text: str
):
    async with page(cookie) as opened:
        await opened.send_to(text_data=request_text)
        refusal = await next_of(opened, "refused")
        await opened.send_json_to({"type": "subscribe", "topics": ["queues"]})
        await next_of(opened, "snapshot")

    assert "Not understood" in refusal["message"]


@pytest.mark.parametrize("topic", ["secrets", "queue:", "queue:../etc", "job:x y", "queues:all"])
async def test_an_unknown_topic_is_refused_by_name(cookie: str, topic: str):
    async with page(cookie, topic) as opened:
        refusal = await next_of(opened, "refused")

    assert refusal["topic"] == topic


async def test_who_is_not_signed_in_is_not_let_in():
    accepted, code = await socket(None).connect()

    assert (accepted, code) == (False, 4401)


async def test_a_page_of_another_origin_is_not_let_in(cookie: str):
    accepted, _ = await socket(cookie, origin="https://elsewhere.example").connect()

    assert not accepted


def test_many_jobs_are_read_at_once(cookie: str, django_assert_num_queries: Any):
    topics = [
        f"job:{key}"
        for key in ("default/label", "default/report-1", "default/no-such", "default/train-1")
    ]

    with django_assert_num_queries(2):
        rows = read_topics(topics)

    assert {topic: list(found) for topic, found in rows.items()} == {
        "job:default/label": ["default/label"],
        "job:default/report-1": ["default/report-1"],
        "job:default/no-such": [],
        "job:default/train-1": ["default/train-1"],
    }


async def test_those_who_come_at_once_are_asked_for_together(
    cookie: str, monkeypatch: pytest.MonkeyPatch
):
    asked: list[set[str]] = []
    find = identity.visitors

    def noted(keys: set[str]) -> Any:
        asked.append(set(keys))
        return find(keys)

    monkeypatch.setattr(identity, "visitors", noted)
    others = await sync_to_async(
        lambda: [cookie_of(add_user(f"reader-{number}")) for number in range(3)]
    )()
    sockets = [socket(key) for key in (cookie, *others) * 20]

    await asyncio.gather(*(opened.connect(timeout=60) for opened in sockets))
    for opened in sockets:
        await opened.send_json_to({"type": "subscribe", "topics": ["queues"]})

    firsts = [await next_of(opened, "snapshot") for opened in sockets]
    assert len(firsts) == 80
    assert set().union(*asked) == {cookie, *others}
    assert len(asked) < 10
    for opened in sockets:
        await opened.disconnect()
