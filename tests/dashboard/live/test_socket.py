"""The websocket, from a service's commit to the page, through the real channel layer on a real Redis."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import OperationalError, transaction
from django.test import Client as Browser

from dashboard.asgi import application
from dashboard.live import hub, identity, redis_watch
from dashboard.live.topics import read_topics
from scheduler import notify
from scheduler.models import Grant, PodGroup, Queue, QueueFigures
from scheduler.services.accounts.access import grant_role, revoke_grant
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.users import save_group, save_user
from scheduler.services.queues.create_update import create_queue, update_queue
from tests.dashboard.conftest import RedisServer
from tests.dashboard.sample import GPU, add_gang, add_queue, add_user, amounts, load_tree

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_server")]

Message = dict[str, Any]


@pytest.fixture
def cookie() -> str:
    load_tree()
    return cookie_of(add_user("reader"))


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


async def test_who_may_see_one_branch_hears_of_that_branch_only(cookie: str):
    narrow = await sync_to_async(lambda: cookie_of(add_user("narrow", queue="research")))()
    async with page(narrow, "queues", "queue:serving", "queue:vision") as opened:
        messages = [await next_of(opened, "snapshot", "refused") for _ in range(3)]
        await sync_to_async(allocate)("serving", 1)
        await sync_to_async(allocate)("vision", 10)
        delta = await next_of(opened, "delta")

    snapshots = {message["topic"]: message for message in messages}
    assert {row["key"] for row in snapshots["queues"]["rows"]} == {"research", "vision", "language"}
    assert snapshots["queue:serving"]["type"] == "refused"
    assert [row["key"] for row in delta["rows"]] == ["vision"]


async def test_who_has_no_role_is_told_nothing_of_machines(cookie: str):
    nobody = await sync_to_async(lambda: cookie_of(add_user("nobody", role="")))()
    async with page(nobody, "nodes", "queues") as opened:
        told = {
            message["topic"]: message
            for message in [await next_of(opened, "snapshot", "refused") for _ in range(2)]
        }

    assert (told["nodes"]["type"], told["queues"]["rows"]) == ("refused", [])


async def test_jobs_of_queues_out_of_sight_are_not_named_when_they_come_or_go(cookie: str):
    def come_and_go() -> None:
        with transaction.atomic():
            PodGroup.objects.filter(name="report-1").update(phase="Completed")
            PodGroup.objects.filter(name="label").update(phase="Completed")
            notify.jobs_changed()

    narrow = await sync_to_async(lambda: cookie_of(add_user("narrow", queue="research")))()
    async with page(narrow, "jobs") as opened:
        snapshot = await next_of(opened, "snapshot")
        await sync_to_async(come_and_go)()
        delta = await until(opened, lambda message: message["gone"])

    assert {row["queue"] for row in snapshot["rows"]} == {"language", "vision", "research"}
    assert delta["gone"] == ["default/label"]


async def test_who_sees_one_branch_is_told_at_once_of_any_change_there_and_of_none_elsewhere(
    cookie: str, monkeypatch: pytest.MonkeyPatch
):
    def grown(name: str) -> None:
        with transaction.atomic():  # nothing that a row of the topic shows
            PodGroup.objects.filter(name=name).update(min_member=7)
            notify.jobs_changed()

    monkeypatch.setattr(hub, "SWEEP_SECONDS", 3600.0)
    narrow = await sync_to_async(lambda: cookie_of(add_user("narrow", queue="research")))()
    async with page(narrow, "jobs") as opened:
        await next_of(opened, "snapshot")
        await sync_to_async(grown)("report-1")
        await sync_to_async(grown)("train-1")
        delta = await next_of(opened, "delta")

    assert [row["key"] for row in delta["rows"]] == ["*/language"]


async def test_a_grant_that_is_taken_away_closes_the_topic(
    cookie: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hub, "ACCESS_CHECK_SECONDS", 0.1)
    async with page(cookie, "queue:vision") as opened:
        await next_of(opened, "snapshot")
        await Grant.objects.all().adelete()
        refusal = await next_of(opened, "refused")

    assert refusal["topic"] == "queue:vision"


@pytest.fixture
def only_by_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found by looking again now and then."""
    monkeypatch.setattr(hub, "ACCESS_CHECK_SECONDS", 3600.0)
    monkeypatch.setattr(hub, "ACCESS_PAUSE_SECONDS", 0.0)


def narrow_cookie() -> str:
    return cookie_of(add_user("narrow", queue="research"))


@pytest.mark.usefixtures("only_by_news")
async def test_a_grant_that_is_revoked_closes_the_topic_at_once_and_a_new_one_shows_what_it_gives(
    cookie: str,
):
    narrow = await sync_to_async(narrow_cookie)()
    async with page(narrow, "queues", "queue:vision") as opened:
        first = {
            message["topic"]: message
            for message in [await next_of(opened, "snapshot") for _ in range(2)]
        }
        grant = await Grant.objects.aget(user__username="narrow")
        await sync_to_async(revoke_grant)(grant, by=SYSTEM)
        told = [await next_of(opened, "refused", "snapshot") for _ in range(2)]
        await sync_to_async(grant_role)(user="narrow", role="viewer", queue="serving", by=SYSTEM)
        after = await next_of(opened, "snapshot")

    assert len(first["queues"]["rows"]) == 3
    assert sorted((message["type"], message["topic"]) for message in told) == [
        ("refused", "queue:vision"),
        ("snapshot", "queues"),
    ]
    assert [message["rows"] for message in told if message["type"] == "snapshot"] == [[]]
    assert [row["key"] for row in after["rows"]] == ["serving"]


@pytest.mark.usefixtures("only_by_news")
async def test_who_leaves_a_group_loses_what_it_gave(cookie: str):
    def prepared() -> str:
        save_group({"name": "crew", "members": [add_user("member", role="").username]})
        grant_role(group="crew", role="viewer", queue="serving", by=SYSTEM)
        return cookie_of(get_user_model().objects.get(username="member"))

    member = await sync_to_async(prepared)()
    async with page(member, "queues") as opened:
        before = await next_of(opened, "snapshot")
        await sync_to_async(save_group)({"members": []}, name="crew")
        after = await next_of(opened, "snapshot")

    assert [[row["key"] for row in message["rows"]] for message in (before, after)] == [
        ["serving"],
        [],
    ]


@pytest.mark.usefixtures("only_by_news")
async def test_a_queue_that_is_made_in_sight_is_seen_and_one_that_moves_out_of_it_is_not(
    cookie: str,
):
    narrow = await sync_to_async(narrow_cookie)()
    async with page(narrow, "queues") as opened:
        await next_of(opened, "snapshot")
        await sync_to_async(create_queue)(
            {"metadata": {"name": "speech"}, "spec": {"parent": "research"}}
        )
        await until(opened, lambda message: row_of(message, "speech"))
        await sync_to_async(update_queue)("speech", {"spec": {"parent": "root"}}, merge=True)
        after = await until(
            opened, lambda message: message["type"] == "snapshot" and not row_of(message, "speech")
        )

    assert {row["key"] for row in after["rows"]} == {"research", "vision", "language"}


@pytest.mark.usefixtures("only_by_news")
@pytest.mark.parametrize(
    "change",
    [{"isActive": False}, {"password": "quite another one"}],
    ids=["switched off", "new password"],
)
async def test_an_account_that_is_changed_so_is_shown_out_at_once(
    cookie: str, change: dict[str, Any]
):
    narrow = await sync_to_async(narrow_cookie)()
    async with page(narrow, "queues") as opened:
        await next_of(opened, "snapshot")
        await sync_to_async(save_user)(change, username="narrow")

        assert await close_code(opened) == 4401


@pytest.mark.usefixtures("only_by_news")
async def test_signing_out_in_another_tab_closes_the_socket_at_once(cookie: str):
    def sign_out() -> None:
        browser = Browser()
        browser.cookies["sessionid"] = cookie
        browser.post("/accounts/logout/")

    async with page(cookie, "queues") as opened:
        await next_of(opened, "snapshot")
        await sync_to_async(sign_out)()

        assert await close_code(opened) == 4401


async def close_code(opened: WebsocketCommunicator) -> int:
    while (output := await opened.receive_output(timeout=60))["type"] != "websocket.close":
        pass
    return int(output["code"])


async def test_signing_out_closes_the_socket(cookie: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub, "ACCESS_CHECK_SECONDS", 0.1)
    async with page(cookie, "queues") as opened:
        await next_of(opened, "snapshot")
        await Session.objects.all().adelete()

        assert await close_code(opened) == 4401


def new_password() -> None:
    user = get_user_model().objects.get(username="reader")
    user.set_password("another long one")
    user.save()


async def test_another_password_closes_the_sockets_of_browsers_that_had_the_old_one(
    cookie: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hub, "ACCESS_CHECK_SECONDS", 0.1)
    async with page(cookie, "queues") as opened:
        await next_of(opened, "snapshot")
        await sync_to_async(new_password)()

        assert await close_code(opened) == 4401


async def test_who_is_no_longer_cluster_admin_sees_what_his_roles_show_from_then_on(
    cookie: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hub, "ACCESS_CHECK_SECONDS", 0.1)
    users = get_user_model().objects.filter(username="narrow")
    narrow = await sync_to_async(lambda: cookie_of(add_user("narrow", queue="research")))()
    await users.aupdate(is_superuser=True)
    async with page(narrow, "queues") as opened:
        before = await next_of(opened, "snapshot")
        await users.aupdate(is_superuser=False)
        after = await next_of(opened, "snapshot")

    assert "serving" in {row["key"] for row in before["rows"]}
    assert {row["key"] for row in after["rows"]} == {"research", "vision", "language"}


async def test_a_job_that_moves_out_of_sight_is_gone(cookie: str):
    def move() -> None:
        with transaction.atomic():
            PodGroup.objects.filter(name="label").update(queue=Queue.objects.get(name="serving"))
            notify.jobs_changed()

    narrow = await sync_to_async(lambda: cookie_of(add_user("narrow", queue="research")))()
    async with page(narrow, "jobs", "job:default/label") as opened:
        for _ in range(2):
            await next_of(opened, "snapshot")
        await sync_to_async(move)()
        told = [await until(opened, lambda message: message["gone"]) for _ in range(2)]

    assert {message["topic"]: message["gone"] for message in told} == {
        "jobs": ["default/label"],
        "job:default/label": ["default/label"],
    }


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


async def test_a_redis_that_was_away_is_found_again_and_news_flows(
    cookie: str, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        hub, "SWEEP_SECONDS", 3600.0
    )  # so that only news, not looking again, can bring the change
    hub.Hub._hubs.clear()
    async with page(cookie, "queues") as opened:
        await next_of(opened, "snapshot")
        redis_server.stop()
        await sync_to_async(allocate)(
            "vision", 12
        )  # nobody hears of this one, and the service does not mind
        redis_server.start()
        delta = None
        for gpus in range(13, 33):  # the layer needs a moment to come back
            await sync_to_async(allocate)("vision", gpus)
            with contextlib.suppress(TimeoutError):
                delta = await asyncio.wait_for(
                    asyncio.shield(asyncio.ensure_future(next_of(opened, "delta"))), 1
                )
                break

    assert delta
    assert row_of(delta, "vision")


async def test_what_was_missed_while_redis_was_away_is_found_by_looking_again(
    cookie: str, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hub, "SWEEP_SECONDS", 0.2)
    hub.Hub._hubs.clear()
    redis_server.stop()
    try:
        async with page(cookie, "queues") as opened:
            await next_of(opened, "snapshot")
            await sync_to_async(allocate)("vision", 17)
            delta = await next_of(opened, "delta")
    finally:
        redis_server.start()

    assert row_of(delta, "vision")["resources"][GPU]["allocated"] == "17"


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


async def test_while_the_database_is_away_nobody_is_let_in_and_nothing_breaks(
    cookie: str, monkeypatch: pytest.MonkeyPatch
):
    def away(_keys: set[str]) -> None:
        raise OperationalError("gone")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(identity, "visitors", away)
        accepted, _ = await socket(cookie).connect(timeout=60)
        assert not accepted

    async with page(cookie, "queues") as opened:
        assert (await next_of(opened, "snapshot"))["topic"] == "queues"


async def test_a_redis_that_hangs_is_named_and_so_is_its_return(
    cookie: str, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(redis_watch, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(redis_watch, "_ASK_AGAIN_SECONDS", 0.1)
    async with page(cookie, "cluster") as opened:
        (row,) = (await next_of(opened, "snapshot"))["rows"]
        assert not row["isRedisAway"]

        with redis_server.hung():
            (row,) = (await next_of(opened, "delta"))["rows"]
            assert row["isRedisAway"]
            assert row["notices"][0]["text"] == "Redis does not answer for"
            assert not [
                notice for notice in row["notices"] if "scheduler worker" in notice.get("after", "")
            ]

        (row,) = (await next_of(opened, "delta"))["rows"]
        assert not row["isRedisAway"]
