"""What people are told: their rules and channels, what happened, their inbox, and what was sent."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from scheduler.domain.notices import LONGEST_MESSAGE, LONGEST_TITLE, NoticeKind
from scheduler.models.fields import one_of
from scheduler.models.queue import Queue


class NoticeChannel(models.Model):
    """Where somebody wants notices to be sent, besides the inbox."""

    EMAIL = "Email"
    WEBHOOK = "Webhook"
    CHAT = "Chat"
    KINDS = (EMAIL, WEBHOOK, CHAT)

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notice_channels"
    )
    kind = models.CharField(max_length=8, choices=[(kind, kind) for kind in KINDS])
    name = models.CharField(max_length=80)
    # an address of e-mail, of a web server, or as apprise writes it
    target = models.CharField(max_length=1024)
    # what a webhook is signed with; the one before it counts for a while too
    secret = models.CharField(max_length=100, blank=True, default="")
    old_secret = models.CharField(max_length=100, blank=True, default="")
    old_secret_until = models.DateTimeField(null=True, blank=True)
    # why nothing is sent any more; empty while it is in use
    stopped = models.CharField(max_length=200, blank=True, default="")
    tested_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name", "id")
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="notice_channel_name_once_a_user")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class NoticeRule(models.Model):
    """What somebody wants to be told of.

    Without a queue: of their own jobs, or of every queue that they see. With one: of it and of
    everything below it.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notice_rules"
    )
    kind = models.CharField(max_length=24, choices=one_of(NoticeKind), db_index=True)
    queue = models.ForeignKey(
        Queue, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    # of JobWaitsLong: how many times the usual wait is too long
    times_usual = models.FloatField(default=2.0)
    channels = models.ManyToManyField(NoticeChannel, blank=True, related_name="rules")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)
        constraints = [
            models.UniqueConstraint(
                fields=["user", "kind"], condition=Q(queue=None), name="notice_rule_once_a_user"
            ),
            models.UniqueConstraint(
                fields=["user", "kind", "queue"], name="notice_rule_once_a_queue"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} for {self.user_id}"


class Told(models.Model):
    """The columns that say what happened."""

    kind = models.CharField(max_length=24, choices=one_of(NoticeKind))
    title = models.CharField(max_length=LONGEST_TITLE)
    message = models.CharField(max_length=LONGEST_MESSAGE, blank=True, default="")
    # who may see it may see the notice; unset where it is about the whole cluster
    # no constraint: a session that writes it must not wait for whoever locks the queue
    queue = models.ForeignKey(
        Queue,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        db_constraint=False,
    )
    namespace = models.CharField(max_length=63, blank=True, default="")
    name = models.CharField(max_length=253, blank=True, default="")
    path = models.CharField(max_length=700)
    at = models.DateTimeField()

    class Meta:
        abstract = True


class Happening(Told):
    """What happened and nobody has been told of yet.

    It is written in the transaction of what happened, and removed when the notices are written.
    """

    key = models.CharField(max_length=200, unique=True)
    owner = models.CharField(max_length=150, blank=True, default="")
    # nobody else is told; empty: whoever has a rule
    users = models.JSONField(default=list, blank=True)
    # by user name: told without a rule
    by_default = models.JSONField(default=list, blank=True, db_default=[])

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.key


class Notice(Told):
    """One happening in one person's inbox."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices"
    )
    key = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="notice_once_a_user")]
        indexes = [
            models.Index(fields=["user"], condition=Q(read_at=None), name="notice_unread"),
        ]

    def __str__(self) -> str:
        return self.title


class NoticeDelivery(models.Model):
    """One message to one channel, about one or many notices.

    `uid` is what a receiver knows it by: it is the same however often it is sent.
    """

    WAITING = "Waiting"
    SENT = "Sent"
    FAILED = "Failed"
    DROPPED = "Dropped"
    STATES = (WAITING, SENT, FAILED, DROPPED)

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    channel = models.ForeignKey(NoticeChannel, on_delete=models.CASCADE, related_name="deliveries")
    notices = models.ManyToManyField(Notice, related_name="deliveries")
    is_test = models.BooleanField(default=False)
    state = models.CharField(
        max_length=8, choices=[(state, state) for state in STATES], default=WAITING
    )
    due_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "notice deliveries"
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(state="Waiting"), name="notice_delivery_waiting"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.uid} {self.state}"


class NoticeAttempt(models.Model):
    """One try to send a message, and what came of it."""

    delivery = models.ForeignKey(NoticeDelivery, on_delete=models.CASCADE, related_name="log")
    number = models.PositiveSmallIntegerField()
    at = models.DateTimeField()
    seconds = models.FloatField(default=0.0)
    worked = models.BooleanField()
    # of HTTP; unset for others, and where there was no answer
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    message = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"attempt {self.number}: {self.message}"
