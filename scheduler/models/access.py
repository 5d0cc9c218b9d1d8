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


class GroupMapping(models.Model):
    """Whoever is in this group of the sign-on provider has this role on a queue and below."""

    provider_group = models.CharField(max_length=255)
    role = models.CharField(max_length=16, choices=one_of(Role))
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="group_mappings")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ("id",)
        constraints = [
            models.UniqueConstraint(
                fields=["provider_group", "queue", "role"], name="group_mapped_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider_group}: {self.role} on {self.queue_id}"


class Grant(models.Model):
    """A role for a user or for a group, on a queue and everything below it.

    On root it counts for the whole cluster. One with a mapping was given by a sign-on, and goes
    with the mapping, with the group at the provider, or some time after the last sign-on.
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
    mapping = models.ForeignKey(
        GroupMapping, null=True, blank=True, on_delete=models.CASCADE, related_name="grants"
    )

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
                condition=Q(group=None, mapping=None),
                name="grant_to_user_once",
            ),
            models.UniqueConstraint(
                fields=["user", "mapping"],
                condition=Q(mapping__isnull=False),
                name="grant_by_mapping_once",
            ),
            models.UniqueConstraint(
                fields=["group", "queue", "role"],
                condition=Q(user=None),
                name="grant_to_group_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} on {self.queue_id}"


class Identity(models.Model):
    """Who somebody is at the sign-on provider. Linked by a sign-on or by its owner, never by name.

    `groups` are those of the last sign-on.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identities"
    )
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    groups = models.JSONField(default=list)
    linked_at = models.DateTimeField(auto_now_add=True)
    signed_on_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "identities"
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="identity_once"),
            models.UniqueConstraint(fields=["issuer", "user"], name="identity_once_a_user"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class SecondFactor(models.Model):
    """This account needs a code besides its password. The secrets are in the tables of the extra.

    It is here so that sign-in asks for the code, or refuses, even where the extra is missing.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="second_factor",
    )
    since = models.DateTimeField(auto_now_add=True)
    # of the last code of the app: one that is as old or older has been used, or could have been
    last_counter = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"second factor of {self.user_id}"


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

    database_state: str = ""
    """Which transactions had written when this was read (`token_with_user`). Two readings with the
    same text saw the same rows everywhere; "" where that cannot be told.
    """

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
