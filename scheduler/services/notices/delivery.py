"""Messages are sent: claimed by a conditional update, sent at least once, and every try is noted.

Whoever dies after sending and before noting leaves a claim that runs out. Then the message is sent
again under the same id, by which its receiver knows it.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from scheduler.conf import conf
from scheduler.models import Notice, NoticeAttempt, NoticeChannel, NoticeDelivery
from scheduler.selectors.accounts.access import access_of
from scheduler.selectors.notices.inbox import readable_notices
from scheduler.services.notices.chat import send_chat
from scheduler.services.notices.messages import body_of, link_to, subject_of, text_of
from scheduler.services.notices.webhooks import Result, post

logger = logging.getLogger(__name__)

AT_ONCE: Final = 10
THREADS: Final = 5
SECONDS: Final = 10.0
"""For one try."""
ABANDONED: Final = timedelta(seconds=60)
"""A claim that is older is of somebody who died."""
PAUSES: Final = (10, 60, 300, 1800, 7200, 6 * 3600, 12 * 3600)
"""Seconds after each try that failed. After the last of them comes one more try."""
JITTER: Final = 0.2


@dataclass(frozen=True, slots=True)
class Parcel:
    """All that is needed to send one message, without the database."""

    kind: str
    target: str
    message_id: str
    subject: str
    text: str
    body: bytes
    secrets: tuple[str, ...] = ()


def has_due_deliveries() -> bool:
    return _due(timezone.now()).exists()


def deliver_notices() -> int:
    """Send what is due. How many tries were made."""
    tries = 0
    while claimed := _claim():
        tries += len(claimed)
        _send_claimed(claimed)
    return tries


def _due(now: datetime) -> QuerySet[NoticeDelivery]:
    # A claim of the future was made before the clock was put back.
    abandoned = Q(claimed_at__lt=now - ABANDONED) | Q(claimed_at__gt=now + ABANDONED)
    waiting = NoticeDelivery.objects.filter(state=NoticeDelivery.WAITING, due_at__lte=now)
    return waiting.filter(Q(claimed_at=None) | abandoned)


def _claim() -> list[NoticeDelivery]:
    now = timezone.now()
    mine = []
    for pk in _due(now).order_by("due_at").values_list("pk", flat=True)[:AT_ONCE]:
        if _due(now).filter(pk=pk).update(claimed_at=now, attempts=F("attempts") + 1):
            mine.append(pk)
    rows = NoticeDelivery.objects.filter(pk__in=mine).select_related("channel__user")
    return list(rows.order_by("pk"))


def _send_claimed(claimed: Sequence[NoticeDelivery]) -> None:
    parcels = []
    for delivery in claimed:
        parcel = _parcel(delivery)
        if parcel is None:
            _end(delivery, NoticeDelivery.DROPPED)
        else:
            parcels.append((delivery, parcel))
    # Other threads know nothing of the database.
    with ThreadPoolExecutor(THREADS) as pool:
        sent = pool.map(lambda pair: _timed(pair[1]), parcels)
        for (delivery, _), (result, seconds) in zip(parcels, sent, strict=True):
            note_result(delivery, result, seconds)


def _timed(parcel: Parcel) -> tuple[Result, float]:
    began = time.monotonic()
    try:
        result = send(parcel)
    except Exception:  # a message that nobody can send must not keep the others from being sent
        logger.exception("a message to a channel (%s) could not be sent", parcel.kind)
        result = Result(False, "It could not be sent. The log of the worker says why.")
    return result, time.monotonic() - began


def _parcel(delivery: NoticeDelivery) -> Parcel | None:
    """None where there is nothing to tell any more: the rights are those of this moment."""
    channel = delivery.channel
    if channel.stopped or not channel.user.is_active:
        return None
    notices = notices_of(delivery)
    if not notices:
        return None
    return parcel_of(delivery, notices)


def notices_of(delivery: NoticeDelivery) -> list[Notice]:
    """Those that the owner may see now."""
    user = delivery.channel.user
    rows = readable_notices(user, access_of(user)).filter(deliveries=delivery)
    return list(rows.select_related("queue").order_by("pk"))


def parcel_of(delivery: NoticeDelivery, notices: Sequence[Notice]) -> Parcel:
    channel = delivery.channel
    return Parcel(
        channel.kind,
        channel.target,
        f"msg_{delivery.uid.hex}",
        subject_of(notices),
        text_of(notices),
        body_of(notices, delivery.created_at, is_test=delivery.is_test),
        secrets_of(channel),
    )


def secrets_of(channel: NoticeChannel) -> tuple[str, ...]:
    """The one before it counts until its receiver had time to learn the new one."""
    until = channel.old_secret_until
    if channel.old_secret and until is not None and until > timezone.now():
        return channel.secret, channel.old_secret
    return (channel.secret,)


def send(parcel: Parcel, seconds: float = SECONDS) -> Result:
    allowed = conf().notices.allowed_networks
    if parcel.kind == NoticeChannel.EMAIL:
        return _send_email(parcel)
    if parcel.kind == NoticeChannel.CHAT:
        return send_chat(parcel.target, parcel.subject, parcel.text, allowed)
    return post(
        parcel.target,
        parcel.body,
        parcel.message_id,
        parcel.secrets,
        allowed=allowed,
        seconds=seconds,
    )


def has_email() -> bool:
    """Whether an admin has named a mail server."""
    return "dummy" not in settings.EMAIL_BACKEND


def _send_email(parcel: Parcel) -> Result:
    if not has_email():
        return Result(False, "No mail server is set here. An admin sets it with EMAIL_URL.")
    place = link_to("").partition("://")[2].partition("/")[0].partition(":")[0]
    message = EmailMessage(
        subject=f"[Fumarole] {parcel.subject}",
        body=parcel.text,
        to=[parcel.target],
        headers={
            "Message-ID": f"<{parcel.message_id}@{place or 'fumarole'}>",
            "Auto-Submitted": "auto-generated",
        },
    )
    try:
        message.send()
    except OSError as problem:  # those of SMTP are such, too
        return Result(False, f"The mail server did not take it: {problem}"[:500])
    return Result(True, "The mail server took it.")


def note_result(delivery: NoticeDelivery, result: Result, seconds: float) -> None:
    """Nothing is noted for somebody who slept past their claim: another has sent it again."""
    now = timezone.now()
    with transaction.atomic():
        mine = NoticeDelivery.objects.filter(pk=delivery.pk, claimed_at=delivery.claimed_at)
        if not mine.update(**_standing_after(delivery, result, now)):
            return
        NoticeAttempt.objects.create(
            delivery=delivery,
            number=delivery.attempts,
            at=now,
            seconds=round(seconds, 3),
            worked=result.worked,
            status=result.status,
            message=result.message[:500],
        )
        if result.gone:
            words = "The receiver answered 410: it wants no more messages."
            NoticeChannel.objects.filter(pk=delivery.channel_id).update(stopped=words)


def _standing_after(
    delivery: NoticeDelivery, result: Result, now: datetime
) -> dict[str, str | datetime | None]:
    if result.worked:
        return {"state": NoticeDelivery.SENT, "ended_at": now, "claimed_at": None}
    is_over = result.gone or delivery.is_test or delivery.attempts > len(PAUSES)
    if is_over:
        return {"state": NoticeDelivery.FAILED, "ended_at": now, "claimed_at": None}
    return {"due_at": now + pause_after(delivery.attempts), "claimed_at": None}


def pause_after(attempts: int) -> timedelta:
    """Not the same for all: receivers that failed together are not asked together again."""
    usual = PAUSES[min(attempts, len(PAUSES)) - 1]
    spread = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - no secret
    return timedelta(seconds=usual * spread)


def _end(delivery: NoticeDelivery, state: str) -> None:
    NoticeDelivery.objects.filter(pk=delivery.pk, claimed_at=delivery.claimed_at).update(
        state=state, ended_at=timezone.now(), claimed_at=None
    )
