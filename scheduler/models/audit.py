"""Every write through any door, append-only: triggers of the database refuse to change or delete a
row (models/triggers.py).
"""

from __future__ import annotations

from django.db import models

from scheduler.domain.audit_actions import AuditArea
from scheduler.models.fields import one_of


class AuditEntry(models.Model):
    """Who did what to which object, when, from where, through which door, and why.

    Names, not foreign keys: it outlives them all.
    """

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.CharField(max_length=150, blank=True, default="", db_index=True)
    door = models.CharField(max_length=16)
    address = models.CharField(max_length=64, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    action = models.CharField(max_length=32)
    kind = models.CharField(max_length=24)
    # a column: submits are many, deeds few
    deeds = models.CharField(max_length=8, choices=one_of(AuditArea), default=AuditArea.ADMIN.value)
    namespace = models.CharField(max_length=63, blank=True, default="")
    name = models.CharField(max_length=253)
    queue_name = models.CharField(max_length=253, blank=True, default="", db_index=True)
    before = models.JSONField(null=True, default=None)
    after = models.JSONField(null=True, default=None)
    reason = models.CharField(max_length=1024, blank=True, default="")
    # the queue to which it was done, where this one only followed
    follows = models.CharField(max_length=253, blank=True, default="")
    message = models.TextField(blank=True, default="")

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["kind", "name"]),
            models.Index(fields=["deeds", "id"]),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.name}"
