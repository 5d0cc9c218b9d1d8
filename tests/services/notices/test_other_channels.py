"""E-mail through a mail server, chat through apprise, and jobs that wait longer than usual."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from django.utils import timezone

from scheduler.conf import conf
from scheduler.domain.notices import NoticeKind
from scheduler.models import Notice, NoticeChannel, PodGroup
from scheduler.services.notices import chat, delivery
from scheduler.services.notices.delivery import Parcel, send
from scheduler.services.notices.fan_out import write_notices
from scheduler.services.notices.waits import look_for_long_waits
from tests.running import random_port
from tests.services.notices.people import person, rule
from tests.services.notices.receiver import receiver
from tests.worlds import job


def parcel(kind: str, target: str) -> Parcel:
    return Parcel(kind, target, "msg_1", "Job a/b has failed", "Look at it.", b"{}")


class Kept:
    """What a mail server was given."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        self.messages.append((envelope.rcpt_tos, message_from_bytes(envelope.content)))
        return "250 kept"


def test_a_real_mail_server_takes_it(settings):
    kept = Kept()
    server = Controller(kept, hostname="127.0.0.1", port=random_port(), ready_timeout=30)
    server.start()
    try:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST = "127.0.0.1"
        settings.EMAIL_PORT = server.port
        result = send(parcel(NoticeChannel.EMAIL, "ada@example.com"))
    finally:
        server.stop()

    assert result.worked, result.message
    ((to, message),) = kept.messages
    assert to == ["ada@example.com"]
    assert message["Message-ID"] == "<msg_1@fumarole>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert "Look at it." in message.get_payload()


def test_a_mail_server_that_is_away_is_a_result(settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST = "127.0.0.1"
    settings.EMAIL_PORT = 1

    result = send(parcel(NoticeChannel.EMAIL, "ada@example.com"))

    assert not result.worked
    assert result.message.startswith("The mail server did not take it")


def allow(monkeypatch, network):
    usual = conf()
    allowing = replace(usual, notices=replace(usual.notices, allowed_networks=(network,)))
    monkeypatch.setattr(delivery, "conf", lambda: allowing)


def test_chat_goes_through_apprise(monkeypatch):
    allow(monkeypatch, "127.0.0.1/32")
    with receiver(200) as room:
        target = room.url.replace("http://", "json://")
        result = send(parcel(NoticeChannel.CHAT, target))

    assert result.worked, result.message
    assert room.got[0].value["title"] == "Job a/b has failed"


def test_chat_follows_no_redirect(monkeypatch):
    allow(monkeypatch, "127.0.0.1/32")
    with receiver(200) as private, receiver(307, private.url) as room:
        target = room.url.replace("http://", "json://")
        result = send(parcel(NoticeChannel.CHAT, target))

    assert not result.worked
    assert room.got
    assert not private.got


ADDRESSES = {
    "slack": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general",
    "discord": f"discord://{'1' * 18}/{'a' * 60}",
    "tgram": f"tgram://123456789:{'a' * 35}/-1001234",
    "gchat": "gchat://workspace/key/token",
    "wxteams": f"wxteams://{'a' * 80}",
    "pover": f"pover://{'u' * 30}@{'a' * 30}",
}
DISCORD = ADDRESSES["discord"]


@pytest.mark.parametrize("between", [" ", ",", ", ", "\n"])
def test_chat_takes_no_second_address(between):
    with receiver(200) as private:
        second = private.url.replace("http://", "json://")
        result = send(parcel(NoticeChannel.CHAT, f"{DISCORD}{between}{second}"))

    assert not result.worked
    assert not private.got


def test_chat_reads_no_file_and_no_other_server_for_a_template():
    with receiver(200) as private:
        result = send(parcel(NoticeChannel.CHAT, f"{DISCORD}?template={private.url}"))

    assert result.message == "Options are not taken: leave out the “?” and what follows it."
    assert not private.got


@pytest.mark.parametrize(
    "target",
    [
        "json://127.0.0.1/",
        "json://localhost/",
        "json://metadata.google.internal/",
        "file:///etc/passwd",
        "mailto://example.com",
        "rocket://10.0.0.1/",
        "nonsense",
        "json://10.1.0.5:80@127.0.0.1/",
        "json://127.0.0.1/@10.1.0.5/",
        "json://127.0.0.1#@10.1.0.5/",
        "json://[::ffff:10.1.0.5]/",
    ],
)
def test_chat_leads_nowhere_else(target):
    with pytest.raises(chat.NotSendable):
        chat.check_chat(target, ("10.1.0.5/32",))


@pytest.mark.parametrize("service", chat.SERVICES)
def test_chat_of_a_known_service_is_taken(service):
    chat.check_chat(ADDRESSES[service], ())


@pytest.mark.parametrize("scheme", chat.OWN_SERVERS)
def test_chat_on_an_allowed_server_is_taken(scheme):
    chat.check_chat(f"{scheme}://user:pass@10.1.0.5:8065/{'a' * 24}", ("10.1.0.0/16",))


@pytest.mark.django_db
@pytest.mark.both_databases
def test_a_job_that_waits_longer_than_usual_is_told_once():
    now = timezone.now()
    for number in range(12):
        made = job(f"old-{number}")
        PodGroup.objects.filter(job=made).update(
            created_at=now - timedelta(minutes=22),
            started_at=now - timedelta(minutes=20),
            phase="Completed",
        )
    job("slow")
    job("new")
    PodGroup.objects.filter(name="slow").update(created_at=now - timedelta(minutes=5))
    for name, times in (("ada", 2.0), ("bob", 3.0)):
        rule(person(name, admin=True), NoticeKind.JOB_WAITS_LONG, "default", times=times)

    for _ in range(2):
        look_for_long_waits()
        write_notices()

    told = list(Notice.objects.values_list("user__username", "title"))
    assert told == [("ada", "Job default/slow waits longer than usual")]
    assert "Jobs like it waited for 2 minutes." in Notice.objects.get().message
