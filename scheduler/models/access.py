"""Who may do what: grants of roles on queues, tokens for programs, and the answers kept for
repeated requests.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from scheduler.domain.access import Role
from scheduler.models.fields import one_of
from scheduler.models.queue import Queue


class Grant(models.Model):
    """A role for a user or for a group, on a queue and everything below it.

    On root it counts for the whole cluster.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="grants",
    )
    group = models.ForeignKey(
        "auth.Group",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="grants",
    )
    role = models.CharField(max_length=16, choices=one_of(Role))
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="grants")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ("id",)
        constraints = [
            models.CheckConstraint(
                condition=Q(user__isnull=True, group__isnull=False)
                | Q(user__isnull=False, group__isnull=True),
                name="grant_is_for_a_user_or_a_group",
            ),
            models.UniqueConstraint(
                fields=["user", "queue", "role"],
                condition=Q(group=None),
                name="grant_to_user_once",
            ),
            models.UniqueConstraint(
                fields=["group", "queue", "role"],
                condition=Q(user=None),
                name="grant_to_group_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} on {self.queue_id}"


class ApiToken(models.Model):
    """A key for a program. Only its digest is kept; the prefix tells a person which one it is."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                fields=["user", "name"],
                condition=Q(revoked_at=None),
                name="token_name_once_a_user",
            )
        ]

    def __str__(self) -> str:
        return f"{self.prefix}…"


class KeptAnswer(models.Model):
    """What was answered to a request with an Idempotency-Key: the same request again gets the same
    answer and does nothing.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=128)
    digest = models.CharField(max_length=64)  # of method, address and body
    # None for a list, whose items have answers of their own
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    headers = models.JSONField(default=dict)
    body = models.JSONField(null=True, default=None)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_once_a_user")
        ]

    def __str__(self) -> str:
        return self.key
