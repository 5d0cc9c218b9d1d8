"""Notices: the inbox, rules, channels and what was sent."""

from __future__ import annotations

from rest_framework import serializers as s

from dashboard.api.schema.cluster import Empty
from dashboard.api.schema.parts import choice, maybe_moment, object_shape, shape, text
from scheduler.domain.notices import NoticeKind
from scheduler.models import NoticeChannel as ChannelRow
from scheduler.models import NoticeDelivery as DeliveryRow

InboxNotice = object_shape(
    "InboxNotice",
    shape("InboxNoticeSpec", read=s.BooleanField())(),
    shape(
        "InboxNoticeStatus",
        kind=choice(NoticeKind),
        title=s.CharField(),
        message=text(),
        queue=text(),
        namespace=text(),
        name=text(),
        address=s.CharField(help_text="the page about it"),
        at=s.DateTimeField(),
        readAt=maybe_moment(),
    )(),
)
GivenRead = shape("GivenRead", read=s.BooleanField(required=False))
Inbox = object_shape(
    "Inbox",
    Empty(),
    shape("InboxStatus", unread=s.IntegerField(help_text="more than 100 are not counted"))(),
)
InboxRead = shape(
    "InboxRead", changed=s.IntegerField(), message=s.CharField(), dryRun=s.BooleanField()
)
NoticeRule = object_shape(
    "NoticeRule",
    shape(
        "NoticeRuleSpec",
        kind=choice(NoticeKind),
        queue=text(),
        timesUsual=s.FloatField(),
        channels=s.ListField(child=s.CharField()),
    )(),
    shape("NoticeRuleStatus", about=s.CharField())(),
)
GivenNoticeRule = shape(
    "GivenNoticeRule",
    kind=choice(NoticeKind),
    queue=text(
        required=False,
        help_text="this queue and those below it; empty: your own jobs, or every queue you see",
    ),
    timesUsual=s.FloatField(
        required=False,
        min_value=1,
        max_value=1000,
        help_text="of JobWaitsLong: how many times the usual wait is too long",
    ),
    channels=s.ListField(
        child=s.CharField(), required=False, help_text="names of channels, besides the inbox"
    ),
)
_CHANNEL = shape(
    "NoticeChannelSpec",
    kind=choice(ChannelRow.KINDS),
    name=s.CharField(),
    target=s.CharField(help_text="of chat without what is secret"),
)
_CHANNEL_STATUS = shape(
    "NoticeChannelStatus",
    stopped=text(help_text="why nothing is sent any more"),
    testedAt=maybe_moment(),
    oldSecretUntil=maybe_moment(),
)
NoticeChannel = object_shape("NoticeChannel", _CHANNEL(), _CHANNEL_STATUS())
NoticeChannelWithSecret = object_shape(
    "NoticeChannelWithSecret",
    _CHANNEL(),
    _CHANNEL_STATUS(),
    secret=text(help_text="what a webhook is signed with; shown only this once"),
)
GivenNoticeChannel = shape(
    "GivenNoticeChannel",
    kind=choice(ChannelRow.KINDS),
    name=s.CharField(max_length=80),
    target=s.CharField(
        max_length=1024, help_text="an address of e-mail, a URL, or an address as apprise has it"
    ),
)
NoticeTestAnswer = shape(
    "NoticeTestAnswer",
    worked=s.BooleanField(),
    status=s.IntegerField(allow_null=True, help_text="of HTTP"),
    message=s.CharField(),
    dryRun=s.BooleanField(),
)
_TRY = shape(
    "NoticeTry",
    number=s.IntegerField(),
    at=s.DateTimeField(),
    seconds=s.FloatField(),
    worked=s.BooleanField(),
    status=s.IntegerField(allow_null=True),
    message=text(),
)
NoticeDelivery = object_shape(
    "NoticeDelivery",
    shape("NoticeDeliverySpec", channel=s.CharField(), test=s.BooleanField())(),
    shape(
        "NoticeDeliveryStatus",
        id=s.CharField(help_text="the webhook-id, and in the Message-ID of an e-mail"),
        state=choice(DeliveryRow.STATES),
        notices=s.IntegerField(),
        dueAt=s.DateTimeField(),
        endedAt=maybe_moment(),
        tries=_TRY(many=True),
    )(),
)
