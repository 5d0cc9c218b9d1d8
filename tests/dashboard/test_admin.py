"""/admin/: superusers read everything there and change nothing."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client

from scheduler.models import ApiToken, Job, NoticeChannel, Queue
from tests.dashboard.work import signed_in, small_cluster

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def test_every_table_can_be_read():
    client: Client = signed_in("admin")
    paths = [
        f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        for model in admin.site._registry
    ]
    assert len(paths) > 25

    assert {path: client.get(path).status_code for path in paths} == dict.fromkeys(paths, 200)


def test_nothing_can_be_changed_added_or_deleted():
    client = signed_in("admin")
    job = Job.objects.get(name="train-1")
    place = f"/admin/scheduler/job/{job.pk}"

    answers = [
        client.post(f"{place}/change/", {"name": "x"}),
        client.post(f"{place}/delete/", {"post": "yes"}),
        client.get("/admin/scheduler/queue/add/"),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert client.get(f"{place}/change/").status_code == 200
    assert Job.objects.get(pk=job.pk).name == "train-1"
    assert Queue.objects.filter(name="vision").exists()


@pytest.mark.parametrize("who", ["ruth", "sam", "vera"])
def test_others_do_not_get_in(who: str):
    answer = signed_in(who).get("/admin/", follow=True)

    assert answer.status_code == 403
    assert "does not have the permission for this page" in answer.content.decode()


def test_who_is_not_signed_in_comes_back_after_it(client: Client):
    answer = client.get("/admin/scheduler/", follow=True)

    assert unquote(answer.redirect_chain[-1][0]) == "/accounts/login/?next=/admin/scheduler/"


def test_secrets_are_on_no_page():
    signed_in("sam").post("/account/tokens/", {"name": "laptop", "scope": "read", "days": ""})
    token = ApiToken.objects.get()

    page = signed_in("admin").get(f"/admin/scheduler/apitoken/{token.pk}/change/").content.decode()
    account = signed_in("admin").get(f"/admin/auth/user/{token.user_id}/change/").content.decode()

    assert "laptop" in page
    assert token.digest not in page
    assert "pbkdf2" not in account


def test_secrets_of_channels_are_on_no_page():
    channel = NoticeChannel.objects.create(
        user=User.objects.get(username="sam"),
        kind=NoticeChannel.CHAT,
        name="team room",
        target="slack://key-of-the-room",
        secret="whsec_new",
        old_secret="whsec_old",
    )
    client = signed_in("admin")

    row = client.get(f"/admin/scheduler/noticechannel/{channel.pk}/change/").content.decode()
    table = client.get("/admin/scheduler/noticechannel/").content.decode()

    for page in (row, table):
        assert "team room" in page
        assert "whsec_" not in page
        assert "key-of-the-room" not in page
