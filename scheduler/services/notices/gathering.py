"""Notices into messages: what comes to a channel within a short time is one message.

A message waits until nothing has been added to it for a while. A storm that goes on is cut into
messages of some minutes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from scheduler.conf import conf
from scheduler.models import Notice, NoticeChannel, NoticeDelivery

LONGEST_IN_QUIETS: Final = 8
"""A message waits at most so many times as long as it must be quiet."""


def gather(channels: Mapping[Any, Collection[int]]) -> None:
    """To the channels of each notice, which is known by its uid.

    Those whose owner had been told already have no row, and are left out, as is a channel whose
    receiver wants no more. To be called in the transaction that wrote them.
    """
    wanted: dict[int, list[int]] = {}
    written = Notice.objects.filter(uid__in=[uid for uid, pks in channels.items() if pks])
    for pk, uid in written.order_by("pk").values_list("pk", "uid"):
        for channel in channels[uid]:
            wanted.setdefault(channel, []).append(pk)
    for stopped in _stopped(wanted):
        del wanted[stopped]
    if not wanted:
        return
    now = timezone.now()
    open_messages = {}
    for row in _still_open(wanted):
        open_messages[row.channel_id] = row
    for channel, notices in wanted.items():
        message = open_messages.get(channel) or NoticeDelivery(channel_id=channel)
        message.due_at = _due(message.created_at, now)
        message.save()
        message.notices.add(*notices)


def _stopped(channels: Collection[int]) -> list[int]:
    if not channels:
        return []
    rows = NoticeChannel.objects.filter(pk__in=channels).exclude(stopped="")
    return list(rows.values_list("pk", flat=True))


def _still_open(channels: Collection[int]) -> list[NoticeDelivery]:
    """Messages that nobody has begun to send: what is sent again must be the same."""
    rows = NoticeDelivery.objects.select_for_update(of=("self",)).filter(
        channel__in=channels,
        state=NoticeDelivery.WAITING,
        attempts=0,
        is_test=False,
    )
    return list(rows.order_by("pk"))


def _due(begun: datetime | None, now: datetime) -> datetime:
    quiet = timedelta(seconds=conf().notices.gather_seconds)
    return min(now + quiet, (begun or now) + LONGEST_IN_QUIETS * quiet)
