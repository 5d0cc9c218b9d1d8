"""/api/v1/notices/, inbox/, noticerules/, noticechannels/ and noticedeliveries/: what one is told.

All of it is one's own: nobody reads another's inbox.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import NoticeFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.body_fields import (
    given_fields,
    given_text,
    given_texts,
    refuse_unknown,
)
from dashboard.api.framework.collection import Objects, Orderings, Rows, Verbs
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.objects import iso_time, record_object
from dashboard.api.records import Records
from dashboard.api.schema.openapi import Operation, Operations
from scheduler.models import Notice, NoticeChannel, NoticeDelivery, NoticeRule
from scheduler.selectors.notices.inbox import (
    channels_of,
    count_unread,
    deliveries_to,
    readable_notices,
    rules_of,
)
from scheduler.services.notices import choices
from scheduler.services.notices.webhooks import Result

_OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata", "spec", "status")
_RULE_FIELDS = ("kind", "queue", "timesUsual", "channels")
_CHANNEL_FIELDS = ("kind", "name", "target")
_OWN: permissions.Rules = {"list": permissions.signed_in, "retrieve": permissions.signed_in}


class Notices(Records):
    noun = "notice"
    filter_class = NoticeFilters
    search_fields = ("title", "message", "name")
    rules: ClassVar[permissions.Rules] = {**_OWN, "partial_update": permissions.may_write_own}
    operations: ClassVar[Operations] = {
        "list": Operation(schema.InboxNotice, many=True, summary="Your inbox, newest first"),
        "retrieve": Operation(schema.InboxNotice),
        "partial_update": Operation(
            schema.InboxNotice, schema.GivenRead, summary="Mark a notice as read, or as unread"
        ),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return readable_notices(self.request.user, self.access).select_related("queue")

    def as_objects(self, rows: Rows) -> Objects:
        return [notice_object(row) for row in rows]

    def partial_update(self, request: Request, name: str) -> Response:
        notice = self.row_or_404()
        read = _given_read(request.data)
        with self.undone_in_dry_run():
            choices.mark_read(request.user, [notice.pk], read=read)
            notice.refresh_from_db()
            body = notice_object(notice)
        return self.response_with(body)


def _given_read(body: Any) -> bool:
    given = given_fields(body)
    refuse_unknown(given, ("read", *_OF_EVERY_OBJECT), "{} cannot be changed here.", "write read")
    read = given.get("read")
    if not isinstance(read, bool):
        raise bad_parameter("spec.read", "read must be true or false.")
    return read


def notice_object(notice: Notice) -> dict[str, Any]:
    status = {
        "kind": notice.kind,
        "title": notice.title,
        "message": notice.message,
        "queue": notice.queue.name if notice.queue else "",
        "namespace": notice.namespace,
        "name": notice.name,
        "address": notice.path,
        "at": iso_time(notice.at),
        "readAt": iso_time(notice.read_at),
    }
    spec = {"read": notice.read_at is not None}
    return record_object("InboxNotice", str(notice.pk), notice.created_at, spec, status)


class Inbox(Endpoint):
    basename = "inbox"
    rules: ClassVar[permissions.Rules] = {
        "get": permissions.signed_in,
        "patch": permissions.may_write_own,
    }
    operations: ClassVar[Operations] = {
        "get": Operation(schema.Inbox, summary="How many of your notices are unread"),
        "patch": Operation(
            schema.InboxRead, schema.GivenRead, summary="Mark all of your notices as read"
        ),
    }

    def get(self, request: Request) -> Response:
        unread = count_unread(request.user, self.access)
        return self.response_with(record_object("Inbox", "inbox", None, {}, {"unread": unread}))

    def patch(self, request: Request) -> Response:
        if "read" not in given_fields(request.data):
            message = "No notice was marked: “read” says as what, true or false."
            return self.response_with({"changed": 0, "message": message, "dryRun": self.dry_run})
        read = _given_read(request.data)
        with self.undone_in_dry_run():
            changed = choices.mark_read(request.user, read=read)
        words = "read" if read else "unread"
        message = f"{changed} notices were marked as {words}."
        return self.response_with({"changed": changed, "message": message, "dryRun": self.dry_run})


class NoticeRules(Records):
    noun = "rule of notices"
    rules: ClassVar[permissions.Rules] = {
        **_OWN,
        "create": permissions.may_write_own,
        "destroy": permissions.may_write_own,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(schema.NoticeRule, many=True, summary="What you are told of"),
        "retrieve": Operation(schema.NoticeRule),
        "create": Operation(
            schema.NoticeRule,
            schema.GivenNoticeRule,
            201,
            summary="Be told of something; a rule for the same kind and queue is replaced",
        ),
        "destroy": Operation(schema.Gone, summary="Be told of it no more"),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return rules_of(self.request.user)

    def as_objects(self, rows: Rows) -> Objects:
        return [rule_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        given = given_fields(request.data)
        refuse_unknown(
            given,
            (*_RULE_FIELDS, *_OF_EVERY_OBJECT),
            "A rule has no {}.",
            f"one of {', '.join(_RULE_FIELDS)}",
        )
        with self.undone_in_dry_run():
            rule = choices.save_rule(
                request.user,
                given_text(request.data, "kind", required=True),
                queue=given_text(request.data, "queue"),
                channels=_given_channels(given.get("channels", [])),
                times_usual=_given_times(given.get("timesUsual", 2.0)),
                by=self.actor,
            )
            body = rule_object(rule)
        return self.created_response(body, location=f"/api/v1/noticerules/{rule.pk}/")

    def destroy(self, request: Request, name: str) -> Response:
        rule: NoticeRule = self.row_or_404()
        with self.undone_in_dry_run():
            choices.delete_rule(rule, by=self.actor)
        message = f"You are not told any more when {rule.kind} {choices.about(rule)}."
        return self.response_with({"message": message, "dryRun": self.dry_run})


def _given_channels(value: Any) -> list[str]:
    names = given_texts(value, choices.MOST_CHANNELS)
    if names is None:
        raise bad_parameter("spec.channels", 'channels must be a list such as ["my webhook"].')
    return names


def _given_times(value: Any) -> float:
    """A number with a fraction comes as it was written (scheduler/documents.py)."""
    problem = bad_parameter("spec.timesUsual", "timesUsual must be a number.")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise problem
    try:
        times = float(value)
    except ValueError:
        raise problem from None
    if not math.isfinite(times):
        raise problem
    return times


def rule_object(rule: NoticeRule) -> dict[str, Any]:
    status = {"about": choices.about(rule)}
    spec = choices.describe_rule(rule)
    return record_object("NoticeRule", str(rule.pk), rule.created_at, spec, status)


class NoticeChannels(Records):
    noun = "channel"
    secrets = ("secret",)
    verbs: ClassVar[Verbs] = {"test": {"post": "test"}, "rotate": {"post": "rotate"}}
    rules: ClassVar[permissions.Rules] = {
        **_OWN,
        **dict.fromkeys(("create", "destroy", "test", "rotate"), permissions.may_write_own),
    }
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.NoticeChannel, many=True, summary="Where notices are sent, besides the inbox"
        ),
        "retrieve": Operation(schema.NoticeChannel),
        "create": Operation(
            schema.NoticeChannelWithSecret,
            schema.GivenNoticeChannel,
            201,
            summary="Add a channel. The secret of a webhook is in this answer only",
        ),
        "destroy": Operation(schema.Gone),
        "test": Operation(
            schema.NoticeTestAnswer,
            schema.Reason,
            optional_body=True,
            summary="Send a test now, and say what came of it",
        ),
        "rotate": Operation(
            schema.NoticeChannelWithSecret,
            schema.Reason,
            optional_body=True,
            summary="A new secret; for a day messages are signed with the old one, too",
        ),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return channels_of(self.request.user)

    def as_objects(self, rows: Rows) -> Objects:
        return [channel_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        refuse_unknown(
            given_fields(request.data),
            (*_CHANNEL_FIELDS, *_OF_EVERY_OBJECT),
            "A channel has no {}.",
            f"one of {', '.join(_CHANNEL_FIELDS)}",
        )
        with self.undone_in_dry_run():
            channel = choices.add_channel(
                request.user,
                given_text(request.data, "kind", required=True),
                given_text(request.data, "name", required=True),
                given_text(request.data, "target", required=True, longest=2000),
                by=self.actor,
            )
            body = self._with_secret(channel)
        return self.created_response(body, location=f"/api/v1/noticechannels/{channel.pk}/")

    def _with_secret(self, channel: NoticeChannel) -> dict[str, Any]:
        secret = "" if self.dry_run else channel.secret
        return {**channel_object(channel), "secret": secret}

    def destroy(self, request: Request, name: str) -> Response:
        channel: NoticeChannel = self.row_or_404()
        with self.undone_in_dry_run():
            choices.delete_channel(channel, by=self.actor)
        message = f"The channel {channel.name} was deleted."
        return self.response_with({"message": message, "dryRun": self.dry_run})

    def test(self, request: Request, name: str) -> Response:
        channel: NoticeChannel = self.row_or_404()
        by = self.commander
        result = Result(False, "Nothing was sent.")
        if not self.dry_run:
            result = choices.send_test(channel, by=by)
        answer = {"worked": result.worked, "status": result.status, "message": result.message}
        return self.response_with({**answer, "dryRun": self.dry_run})

    def rotate(self, request: Request, name: str) -> Response:
        channel: NoticeChannel = self.row_or_404()
        with self.undone_in_dry_run():
            body = self._with_secret(choices.rotate_secret(channel, by=self.commander))
        return self.response_with(body)


def channel_object(channel: NoticeChannel) -> dict[str, Any]:
    spec = {"kind": channel.kind, "name": channel.name, "target": choices.shown(channel)}
    status = {
        "stopped": channel.stopped,
        "testedAt": iso_time(channel.tested_at),
        "oldSecretUntil": iso_time(channel.old_secret_until),
    }
    return record_object("NoticeChannel", str(channel.pk), channel.created_at, spec, status)


class NoticeDeliveries(Records):
    noun = "delivery"
    rules: ClassVar[permissions.Rules] = _OWN
    orderings: ClassVar[Orderings] = {"created": "id"}
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.NoticeDelivery, many=True, summary="What was sent to your channels, every try"
        ),
        "retrieve": Operation(schema.NoticeDelivery),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return deliveries_to(self.request.user)

    def as_objects(self, rows: Rows) -> Objects:
        return [delivery_object(row) for row in rows]


def delivery_object(row: NoticeDelivery) -> dict[str, Any]:
    tries = []
    for attempt in row.log.all():
        tries.append(
            {
                "number": attempt.number,
                "at": iso_time(attempt.at),
                "seconds": attempt.seconds,
                "worked": attempt.worked,
                "status": attempt.status,
                "message": attempt.message,
            }
        )
    status = {
        "id": f"msg_{row.uid.hex}",
        "state": row.state,
        "notices": getattr(row, "number", 0),
        "dueAt": iso_time(row.due_at),
        "endedAt": iso_time(row.ended_at),
        "tries": tries,
    }
    spec = {"channel": row.channel.name, "test": row.is_test}
    return record_object("NoticeDelivery", str(row.pk), row.created_at, spec, status)
