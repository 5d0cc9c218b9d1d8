"""Rights and the websocket.

Who hears of what, and what happens to open pages when rights change.
"""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import transaction
from django.test import Client as Browser

from dashboard.live import hub
from scheduler import notify
from scheduler.models import Grant, PodGroup, Queue
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role, revoke_grant
from scheduler.services.accounts.users import save_group, save_user
from scheduler.services.queues.create_update import create_queue, update_queue
from tests.dashboard.live.sockets import allocate, cookie_of, next_of, page, row_of, until
from tests.dashboard.sample import add_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_server")]


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
