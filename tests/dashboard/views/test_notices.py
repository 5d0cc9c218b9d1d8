"""The inbox and the page of notifications."""

from __future__ import annotations

import pytest
from django.test import Client

from scheduler.models import AuditEntry, Grant, Notice, NoticeChannel, NoticeRule
from scheduler.services.notices.fan_out import write_notices
from scheduler.services.notices.publish import publish
from tests.services.notices.people import person, started
from tests.services.notices.receiver import receiver

pytestmark = pytest.mark.django_db
SETTINGS = "/account/notices/settings/"


@pytest.fixture
def ada():
    return person("ada", sees="default")


@pytest.fixture
def browser(ada):
    client = Client()
    client.force_login(ada)
    return client


def say(*numbers: int) -> None:
    publish(started(number) for number in numbers)
    write_notices()


def test_a_rule_fills_the_inbox_until_it_is_read(browser):
    browser.post("/account/notices/rules/", {"kind": "JobStarted"})
    say(1, 2)

    shown = browser.get("/account/notices/").content.decode()
    assert "Job default/train-1 has started" in shown
    assert 'href="/jobs/default/train-2/"' in shown
    assert "Notices, 2 unread" in shown

    first = Notice.objects.get(key="started:1")
    browser.post("/account/notices/read/", {"notice": first.pk})
    unread = browser.get("/account/notices/?show=unread").content.decode()
    assert "train-1 has" not in unread
    assert "train-2 has" in unread

    browser.post("/account/notices/read/")
    assert "unread" not in browser.get("/").content.decode().split('id="bell"')[1][:200]


def test_the_bell_counts_to_99(browser):
    browser.post("/account/notices/rules/", {"kind": "JobStarted"})
    say(*range(100))

    bell = browser.get("/").content.decode().split('id="bell"')[1].split("</a>")[0]

    assert "99+<span" in bell


def test_an_inbox_shows_no_queue_that_its_owner_may_not_see_any_more(browser):
    browser.post("/account/notices/rules/", {"kind": "JobStarted"})
    say(1)
    Grant.objects.all().delete()

    shown = browser.get("/account/notices/").content.decode()

    assert "train-1" not in shown


def test_somebody_elses_notices_rules_and_channels_are_not_there(browser, ada):
    bob = person("bob", sees="default")
    rule = NoticeRule.objects.create(user=bob, kind="JobStarted")
    channel = NoticeChannel.objects.create(user=bob, kind="Webhook", name="hook", target="http://x")

    browser.post(f"/account/notices/rules/{rule.pk}/forget/")
    browser.post(f"/account/notices/channels/{channel.pk}/delete/")

    assert NoticeRule.objects.filter(pk=rule.pk).exists()
    assert NoticeChannel.objects.filter(pk=channel.pk).exists()
    assert browser.get(f"/api/v1/noticechannels/{channel.pk}/").status_code == 404


def test_the_secret_of_a_webhook_is_shown_once(browser):
    given = {"kind": "Webhook", "name": "room", "target": "https://example.com/hook"}

    answer = browser.post("/account/notices/channels/", given)

    secret = NoticeChannel.objects.get().secret
    assert secret in answer.content.decode()
    assert secret not in browser.get(SETTINGS).content.decode()
    assert secret not in browser.get("/api/v1/noticechannels/").content.decode()
    assert not AuditEntry.objects.filter(after__icontains=secret).exists()


@pytest.mark.parametrize(
    ("address", "given", "words"),
    [
        ("rules", {"kind": "Rain"}, "There are no notices of the kind “Rain”."),
        ("rules", {"kind": "JobWaitsLong", "times": "no"}, "timesUsual must be a number"),
        ("rules", {"kind": "JobFailed", "channel": "x"}, "You have no channel “x”."),
        ("channels", {"kind": "Webhook", "name": "a", "target": "ftp://x"}, "A webhook needs"),
        ("channels", {"kind": "Webhook", "name": "", "target": "https://x/"}, "needs a name"),
        ("channels", {"kind": "Chat", "name": "a", "target": "json://10.0.0.1"}, "NOTICE_ALLOWED"),
        ("channels", {"kind": "Pigeon", "name": "a", "target": "x"}, "There is no channel"),
        ("channels", {"kind": "Email", "name": "a", "target": "x"}, "address of e-mail"),
    ],
)
def test_what_cannot_be_is_told_and_nothing_is_kept(browser, address, given, words):
    answer = browser.post(f"/account/notices/{address}/", given)

    assert answer.status_code == 400
    assert words in answer.content.decode().replace("&#x27;", "'")
    assert not NoticeRule.objects.exists()
    assert not NoticeChannel.objects.exists()


def test_a_rule_about_a_queue_out_of_sight_is_refused_as_if_it_were_not_there(browser):
    hidden = browser.post("/account/notices/rules/", {"kind": "JobFailed", "queue": "root"})
    missing = browser.post("/account/notices/rules/", {"kind": "JobFailed", "queue": "nothing"})

    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert not NoticeRule.objects.exists()


def test_a_test_is_answered_plainly(browser, ada):
    with receiver() as hook:
        browser.post(
            "/account/notices/channels/", {"kind": "Webhook", "name": "room", "target": hook.url}
        )
        number = NoticeChannel.objects.get().pk
        first = browser.post(f"/account/notices/channels/{number}/test/", follow=True)
        second = browser.post(f"/account/notices/channels/{number}/test/")

    assert "The test did not reach room: 127.0.0.1 is an address of a private" in (
        first.content.decode()
    )
    assert second.status_code == 400
    assert "a moment ago" in second.content.decode()
    assert hook.got == []
