"""What people choose for themselves: rules, channels, and what they have read."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone

from scheduler.admission.violations import Rejected, Violation
from scheduler.conf import conf
from scheduler.domain.access import OutOfSight, Permission
from scheduler.domain.notices import JOB_KINDS, NoticeKind
from scheduler.models import Notice, NoticeChannel, NoticeDelivery, NoticeRule, Queue
from scheduler.selectors.accounts.access import access_of
from scheduler.selectors.notices.inbox import readable_notices
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import Actor
from scheduler.services.notices.addresses import NotSendable
from scheduler.services.notices.chat import check_chat
from scheduler.services.notices.delivery import has_email, note_result, parcel_of, send
from scheduler.services.notices.webhooks import Result, new_secret, split_url
from scheduler.services.records import audit

MOST_RULES: Final = 100
MOST_CHANNELS: Final = 20
MOST_TIMES: Final = 1000.0
OLD_SECRET_COUNTS: Final = timedelta(hours=24)
BETWEEN_TESTS: Final = timedelta(seconds=10)
TEST_SECONDS: Final = 5.0


def _refuse(field: str, message: str, fix: str = "") -> Rejected:
    return Rejected([Violation("invalid_value", "", field, message, fix)])


# Rules


def save_rule(
    user: Any,
    kind: str,
    *,
    queue: str = "",
    channels: Iterable[str] = (),
    times_usual: float = 2.0,
    by: Actor,
) -> NoticeRule:
    """One for each kind and queue: an earlier one is replaced. `channels` are names.

    Raises `Rejected` and `OutOfSight`.
    """
    known = _known_kind(kind)
    if not math.isfinite(times_usual) or not 1.0 <= times_usual <= MOST_TIMES:
        words = f"timesUsual must be a number from 1 to {MOST_TIMES:g}."
        raise _refuse("timesUsual", words, "2 is twice as long as usual")
    with transaction.atomic():
        place = _seen_queue(queue, by)
        mine = NoticeRule.objects.select_for_update().filter(user=user)
        rule = mine.filter(kind=known, queue=place).first()
        if rule is None and mine.count() >= MOST_RULES:
            raise _refuse("kind", f"You have {MOST_RULES} rules already.", "delete one first")
        before = describe_rule(rule) if rule else None
        rule = rule or NoticeRule(user=user, kind=known.value, queue=place)
        rule.times_usual = times_usual
        wanted = _own_channels(user, channels)
        rule.save()
        rule.channels.set(wanted)
        after = describe_rule(rule)
        if after != before:
            audit.record(
                by, "SaveNoticeRule", "NoticeRule", str(rule.pk), before=before, after=after
            )
    return rule


def _known_kind(kind: str) -> NoticeKind:
    try:
        return NoticeKind(kind)
    except ValueError:
        words = f"There are no notices of the kind “{kind[:40]}”."
        raise _refuse("kind", words, f"one of {', '.join(NoticeKind)}") from None


def _seen_queue(name: str, by: Actor) -> Queue | None:
    if not name:
        return None
    access.access_for(by).require(Permission.VIEW, name)
    queue = Queue.objects.filter(name=name).first()
    if queue is None:
        raise OutOfSight(name)
    return queue


def _own_channels(user: Any, names: Iterable[str]) -> list[NoticeChannel]:
    wanted = list(dict.fromkeys(names))
    found = {row.name: row for row in NoticeChannel.objects.filter(user=user, name__in=wanted)}
    for name in wanted:
        if name not in found:
            raise _refuse("channels", f"You have no channel “{name[:80]}”.", "add it first")
    return list(found.values())


def describe_rule(rule: NoticeRule) -> dict[str, Any]:
    return {
        "kind": rule.kind,
        "queue": rule.queue.name if rule.queue else "",
        "timesUsual": rule.times_usual,
        "channels": sorted(channel.name for channel in rule.channels.all()),
    }


@transaction.atomic
def delete_rule(rule: NoticeRule, *, by: Actor) -> None:
    audit.record(by, "DeleteNoticeRule", "NoticeRule", str(rule.pk), before=describe_rule(rule))
    rule.delete()


def about(rule: NoticeRule) -> str:
    """What a rule is about, in words."""
    if rule.queue:
        return f"in {rule.queue.name} and below"
    if rule.kind in JOB_KINDS:
        return "of my own jobs"
    return "of every queue that I see"


# Channels


def add_channel(user: Any, kind: str, name: str, target: str, *, by: Actor) -> NoticeChannel:
    """A webhook's secret is in what this returns, and shown nowhere else. Raises `Rejected`."""
    name = " ".join(name.split())
    if not name or len(name) > 80 or not name.isprintable():
        raise _refuse("name", "A channel needs a name of at most 80 characters.")
    target = target.strip()
    _check_target(kind, target)
    with transaction.atomic():
        mine = NoticeChannel.objects.select_for_update().filter(user=user)
        names = set(mine.values_list("name", flat=True))
        if name in names:
            raise _refuse("name", f"You have a channel “{name}” already.", "choose another name")
        if len(names) >= MOST_CHANNELS:
            raise _refuse("name", f"You have {MOST_CHANNELS} channels already.", "delete one first")
        secret = new_secret() if kind == NoticeChannel.WEBHOOK else ""
        channel = NoticeChannel.objects.create(
            user=user, kind=kind, name=name, target=target, secret=secret
        )
        audit.record(
            by, "AddChannel", "NoticeChannel", name, after={"kind": kind, "to": shown(channel)}
        )
    return channel


def _check_target(kind: str, target: str) -> None:
    if len(target) > 1024:
        raise _refuse("target", "The address is too long.", "1024 characters are the most")
    allowed = conf().notices.allowed_networks
    try:
        if kind == NoticeChannel.EMAIL:
            _check_email(target)
        elif kind == NoticeChannel.WEBHOOK:
            split_url(target)
        elif kind == NoticeChannel.CHAT:
            check_chat(target, allowed)
        else:
            kinds = ", ".join(NoticeChannel.KINDS)
            raise _refuse("kind", f"There is no channel “{kind[:20]}”.", f"one of {kinds}")
    except NotSendable as problem:
        raise _refuse("target", str(problem)) from None


def _check_email(target: str) -> None:
    if not has_email():
        raise NotSendable("No mail server is set here. An admin sets it with EMAIL_URL.")
    try:
        validate_email(target)
    except ValidationError:
        raise NotSendable("This is not an address of e-mail.") from None


def shown(channel: NoticeChannel) -> str:
    """The target without what is secret: an address of chat holds keys."""
    if channel.kind == NoticeChannel.CHAT:
        return f"{channel.target.partition('://')[0]}://…"
    return channel.target


@transaction.atomic
def delete_channel(channel: NoticeChannel, *, by: Actor) -> None:
    before = {"kind": channel.kind, "to": shown(channel)}
    audit.record(by, "DeleteChannel", "NoticeChannel", channel.name, before=before)
    channel.delete()


@transaction.atomic
def rotate_secret(channel: NoticeChannel, *, by: Actor) -> NoticeChannel:
    """A new secret. Messages are signed with the old one too, for a day. Raises `Rejected`."""
    channel = NoticeChannel.objects.select_for_update().get(pk=channel.pk)
    if channel.kind != NoticeChannel.WEBHOOK:
        raise _refuse("kind", "Only a webhook has a secret.")
    channel.old_secret = channel.secret
    channel.old_secret_until = timezone.now() + OLD_SECRET_COUNTS
    channel.secret = new_secret()
    channel.stopped = ""
    channel.save()
    audit.record(by, "RotateSecret", "NoticeChannel", channel.name)
    return channel


def send_test(channel: NoticeChannel, *, by: Actor) -> Result:
    """One message now. What came of it is on record too. Raises `Rejected` right after another."""
    now = timezone.now()
    free = NoticeChannel.objects.filter(pk=channel.pk)
    recent = free.filter(tested_at__gt=now - BETWEEN_TESTS, tested_at__lte=now)
    with transaction.atomic():
        if recent.exists():
            seconds = round(BETWEEN_TESTS.total_seconds())
            message = f"A test was sent to {channel.name} a moment ago."
            fix = f"wait {seconds} seconds"
            violation = Violation("too_soon", "", "name", message, fix)
            raise Rejected([violation], by_state=True)
        free.update(tested_at=now, stopped="")
        delivery = NoticeDelivery.objects.create(
            channel=channel, is_test=True, due_at=now, claimed_at=now, attempts=1
        )
        audit.record(by, "TestChannel", "NoticeChannel", channel.name)
    began = time.monotonic()
    result = send(parcel_of(delivery, [_test_notice(by)]), TEST_SECONDS)
    note_result(delivery, result, time.monotonic() - began)
    return result


def _test_notice(by: Actor) -> Notice:
    return Notice(
        kind=NoticeKind.JOB_STARTED.value,
        title="This is a test",
        message=f"{by.name} asked for it. Nothing has happened.",
        path="/account/notices/",
        at=timezone.now(),
    )


# The inbox


def mark_read(user: Any, ids: Iterable[int] | None = None, *, read: bool = True) -> int:
    """These of their notices, or all that they may see. How many changed."""
    rows = readable_notices(user, access_of(user)).filter(read_at__isnull=read)
    if ids is not None:
        rows = rows.filter(pk__in=list(ids))
    return rows.update(read_at=timezone.now() if read else None)
