"""Messages reach their receivers at least once: signed, gathered, and only what may be seen."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from scheduler import conf as conf_module
from scheduler.domain.notices import NoticeKind
from scheduler.models import Grant, NoticeAttempt, NoticeChannel, NoticeDelivery
from scheduler.services.accounts.actors import Actor
from scheduler.services.notices import delivery as deliveries
from scheduler.services.notices.choices import add_channel, rotate_secret, send_test
from scheduler.services.notices.delivery import PAUSES, deliver_notices, pause_after
from scheduler.services.notices.fan_out import write_notices
from scheduler.services.notices.gathering import LONGEST_IN_QUIETS
from scheduler.services.notices.publish import publish
from tests.services.notices.people import person, rule, started
from tests.services.notices.receiver import Got, receiver

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

QUIET = 15.0


@pytest.fixture(autouse=True)
def loopback_is_allowed(monkeypatch):
    usual = conf_module.conf()
    notices = replace(usual.notices, allowed_networks=("127.0.0.0/8",), gather_seconds=QUIET)
    changed = replace(usual, notices=notices)
    for module in (deliveries, conf_module):
        monkeypatch.setattr(module, "conf", lambda: changed)
    for name in ("choices", "messages", "gathering"):
        monkeypatch.setattr(f"scheduler.services.notices.{name}.conf", lambda: changed)


@pytest.fixture
def ada():
    return person("ada", sees="default")


def webhook(user, url, *, name="hook"):
    channel = add_channel(user, "Webhook", name, url, by=Actor(user.username, user=user))
    rule(user, NoticeKind.JOB_STARTED, "", channel)
    return channel


def let_quiet(seconds: float = QUIET + 1) -> None:
    """As if so much time had passed."""
    for row in NoticeDelivery.objects.filter(state="Waiting"):
        row.due_at -= timedelta(seconds=seconds)
        if row.claimed_at:
            row.claimed_at -= timedelta(seconds=seconds)
        row.save()


def say(*numbers: int) -> None:
    publish(started(number) for number in numbers)
    write_notices()


def is_signed(got: Got, secret: str) -> bool:
    """By the text of the standard, with nothing of ours."""
    key = base64.b64decode(secret.split("_", 1)[1])
    content = f"{got.id}.{got.headers['webhook-timestamp']}.".encode() + got.body
    wanted = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    given = got.headers["webhook-signature"].split(" ")
    return f"v1,{wanted}" in given


def test_a_webhook_is_signed_and_says_what_happened(ada):
    with receiver() as hook:
        channel = webhook(ada, hook.url)
        say(1)
        let_quiet()
        deliver_notices()

    (got,) = hook.got
    assert is_signed(got, channel.secret)
    assert abs(int(got.headers["webhook-timestamp"]) - time.time()) < 60
    assert got.value["type"] == "notices"
    assert got.value["data"]["notices"][0]["name"] == "train-1"
    delivery = NoticeDelivery.objects.get()
    assert (delivery.state, delivery.attempts) == ("Sent", 1)
    assert NoticeAttempt.objects.get().status == 204


def test_it_waits_until_it_is_quiet(ada):
    with receiver() as hook:
        webhook(ada, hook.url)
        say(1)
        deliver_notices()

        assert hook.got == []


def test_a_storm_is_one_message(ada):
    with receiver() as hook:
        webhook(ada, hook.url)
        for first in range(1, 500, 50):
            say(*range(first, first + 50))
            let_quiet(QUIET / 2)
        let_quiet()
        deliver_notices()

    (got,) = hook.got
    assert got.value["data"]["count"] == 500
    assert len(got.value["data"]["notices"]) + got.value["data"]["leftOut"] == 500


def test_a_storm_that_goes_on_is_cut(ada):
    with receiver() as hook:
        webhook(ada, hook.url)
        say(1)
        longest = LONGEST_IN_QUIETS * QUIET
        row = NoticeDelivery.objects.get()
        begun = timezone.now() - timedelta(seconds=longest)
        NoticeDelivery.objects.filter(pk=row.pk).update(created_at=begun)
        say(2)
        deliver_notices()
        say(3)

    assert len(hook.got) == 1
    assert hook.got[0].value["data"]["count"] == 2
    assert NoticeDelivery.objects.filter(state="Waiting").count() == 1


def test_a_message_that_cannot_be_sent_does_not_hold_up_the_others(ada, monkeypatch):
    usual = deliveries.post

    def breaks(url, *given, **more):
        if "broken" in url:
            raise RuntimeError("a bug")
        return usual(url, *given, **more)

    monkeypatch.setattr(deliveries, "post", breaks)
    with receiver() as hook:
        webhook(ada, "http://127.0.0.1:1/broken", name="broken")
        NoticeChannel.objects.get(name="broken").rules.all().delete()
        other = webhook(ada, hook.url)
        rule(ada, NoticeKind.JOB_STARTED, "default", NoticeChannel.objects.get(name="broken"))
        say(1)
        let_quiet()
        deliver_notices()

    assert len(hook.got) == 1
    assert NoticeDelivery.objects.get(channel=other).state == "Sent"
    broken = NoticeDelivery.objects.get(channel__name="broken")
    assert (broken.state, broken.attempts) == ("Waiting", 1)
    assert broken.due_at > timezone.now()
    assert "log of the worker" in NoticeAttempt.objects.get(delivery=broken).message


def test_what_failed_is_tried_again_under_the_same_id_until_it_works(ada):
    with receiver(lambda number: 500 if number < 3 else 200) as hook:
        webhook(ada, hook.url)
        say(1)
        for pause in (QUIET, *PAUSES[:2]):
            let_quiet(2 * pause)
            deliver_notices()

    assert len(hook.got) == 3
    assert len({got.id for got in hook.got}) == 1
    assert len({got.body for got in hook.got}) == 1
    log = list(NoticeAttempt.objects.values_list("number", "status", "worked"))
    assert log == [(1, 500, False), (2, 500, False), (3, 200, True)]


def test_it_is_given_up_in_the_end(ada):
    with receiver(500) as hook:
        webhook(ada, hook.url)
        say(1)
        for _ in range(len(PAUSES) + 3):
            let_quiet(2 * PAUSES[-1])
            deliver_notices()

    assert len(hook.got) == len(PAUSES) + 1
    assert NoticeDelivery.objects.get().state == "Failed"


def test_pauses_grow_and_are_not_all_alike():
    spans = [
        {round(pause_after(attempt).total_seconds(), 6) for _ in range(20)} for attempt in (1, 4)
    ]

    assert max(spans[0]) < min(spans[1])
    assert len(spans[0]) > 1


def test_what_came_later_does_not_join_a_message_that_was_tried(ada):
    with receiver(lambda number: 500 if number == 1 else 200) as hook:
        webhook(ada, hook.url)
        say(1)
        let_quiet()
        deliver_notices()
        say(2)
        let_quiet(2 * PAUSES[0])
        deliver_notices()

    assert sorted(got.value["data"]["count"] for got in hook.got) == [1, 1, 1]
    assert len({got.id for got in hook.got}) == 2


def test_a_redirect_is_not_followed(ada):
    with receiver() as hidden, receiver(302, hidden.url) as hook:
        webhook(ada, hook.url)
        say(1)
        let_quiet()
        deliver_notices()

    assert len(hook.got) == 1
    assert hidden.got == []
    assert "Redirects are not followed" in NoticeAttempt.objects.get().message


def test_a_receiver_that_hangs_up_is_tried_again(ada):
    with receiver(lambda _number: None) as hook:
        webhook(ada, hook.url)
        say(1)
        let_quiet()
        deliver_notices()

    attempt = NoticeAttempt.objects.get()
    assert not attempt.worked
    assert attempt.status is None
    assert NoticeDelivery.objects.get().state == "Waiting"


def test_a_slow_receiver_is_left_when_its_time_is_over(ada, monkeypatch):
    let_go = threading.Event()

    def dawdle(_number: int) -> int:
        let_go.wait(20)
        return 200

    with receiver(dawdle) as hook:
        channel = webhook(ada, hook.url)
        monkeypatch.setattr("scheduler.services.notices.choices.TEST_SECONDS", 0.3)

        result = send_test(channel, by=Actor("ada", user=ada))
        let_go.set()

    assert not result.worked
    assert result.message.startswith("No answer")


def test_a_receiver_that_wants_no_more_gets_no_more(ada):
    with receiver(410) as hook:
        webhook(ada, hook.url)
        say(1)
        let_quiet()
        deliver_notices()
        say(2)
        let_quiet(2 * PAUSES[-1])
        deliver_notices()

    assert len(hook.got) == 1
    assert "410" in NoticeChannel.objects.get().stopped
    assert NoticeDelivery.objects.count() == 1


def test_a_private_address_gets_nothing_where_it_is_not_allowed(ada, monkeypatch):
    with receiver() as hook:
        webhook(ada, hook.url)
        usual = deliveries.conf()
        strict = replace(usual, notices=replace(usual.notices, allowed_networks=()))
        monkeypatch.setattr(deliveries, "conf", lambda: strict)
        say(1)
        let_quiet()
        deliver_notices()

    assert hook.got == []
    assert "NOTICE_ALLOWED_NETWORKS" in NoticeAttempt.objects.get().message


def test_rights_that_were_lost_while_it_waited_count(ada):
    with receiver() as hook:
        webhook(ada, hook.url)
        say(1)
        Grant.objects.all().delete()
        let_quiet()
        deliver_notices()

    assert hook.got == []
    assert NoticeDelivery.objects.get().state == "Dropped"


def test_an_account_that_was_switched_off_while_it_waited_gets_nothing(ada):
    with receiver() as hook:
        webhook(ada, hook.url)
        say(1)
        ada.is_active = False
        ada.save()
        let_quiet()
        deliver_notices()

    assert hook.got == []


def test_what_somebody_claimed_and_did_not_finish_is_sent_again_under_the_same_id(ada):
    with receiver() as hook:
        webhook(ada, hook.url)
        say(1)
        let_quiet()
        (mine,) = deliveries._claim()
        deliveries.send(deliveries.parcel_of(mine, deliveries.notices_of(mine)))
        deliver_notices()
        assert len(hook.got) == 1

        let_quiet(2 * deliveries.ABANDONED.total_seconds())
        deliver_notices()
        deliveries.note_result(mine, deliveries.Result(False, "late"), 1.0)

    assert len(hook.got) == 2
    assert hook.got[0].id == hook.got[1].id
    assert NoticeDelivery.objects.get().state == "Sent"


def test_a_new_secret_and_the_old_one_both_count_for_a_day(ada):
    with receiver() as hook:
        channel = webhook(ada, hook.url)
        renewed = rotate_secret(channel, by=Actor("ada", user=ada))
        say(1)
        let_quiet()
        deliver_notices()
        day_ago = timezone.now() - timedelta(seconds=1)
        NoticeChannel.objects.update(old_secret_until=day_ago)
        say(2)
        let_quiet()
        deliver_notices()

    first, second = hook.got
    assert is_signed(first, channel.secret)
    assert is_signed(first, renewed.secret)
    assert is_signed(second, renewed.secret)
    assert not is_signed(second, channel.secret)


def test_an_email_has_the_same_id_whenever_it_is_sent(ada):
    channel = add_channel(ada, "Email", "mail", "ada@example.com", by=Actor("ada", user=ada))
    rule(ada, NoticeKind.JOB_STARTED, "", channel)
    say(1, 2)
    let_quiet()
    deliver_notices()

    (message,) = mail.outbox
    delivery = NoticeDelivery.objects.get()
    assert message.to == ["ada@example.com"]
    assert message.subject == "[Fumarole] 2 notices: 2 started"
    assert "Job default/train-2 has started" in message.body
    assert message.extra_headers["Message-ID"] == f"<msg_{delivery.uid.hex}@fumarole>"


def test_a_test_says_plainly_what_came_of_it(ada):
    with receiver(503) as hook:
        channel = webhook(ada, hook.url)
        result = send_test(channel, by=Actor("ada", user=ada))

    assert (result.worked, result.message) == (False, "The receiver answered 503.")
    assert hook.got[0].value["type"] == "notices.test"
    assert NoticeDelivery.objects.get(is_test=True).state == "Failed"
