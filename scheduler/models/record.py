"""What happened: commands given, events seen."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q


class Command(models.Model):
    """An order to a queue or a job, kept as history: who, through which door, why, and what came of
    it.
    """

    DONE = "Done"
    NO_OP = "NoOp"
    REFUSED = "Refused"
    FAILED = "Failed"
    RESULTS = (DONE, NO_OP, REFUSED, FAILED)

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    action = models.CharField(max_length=32)
    target_kind = models.CharField(max_length=16)
    target_namespace = models.CharField(max_length=63, blank=True, default="")
    target_name = models.CharField(max_length=253)
    target_uid = models.CharField(max_length=64, blank=True, default="")
    actor = models.CharField(max_length=150, blank=True, default="")
    door = models.CharField(max_length=16, default="API")
    reason = models.CharField(max_length=1024, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    address = models.CharField(max_length=64, blank=True, default="")
    result = models.CharField(max_length=8, choices=[(result, result) for result in RESULTS])
    message = models.TextField(blank=True, default="")
    effect = models.JSONField(default=dict, blank=True)  # the queues that changed, from and to
    created_at = models.DateTimeField(auto_now_add=True)
    executed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = [
            models.CheckConstraint(
                condition=Q(result__in=("Done", "NoOp", "Refused", "Failed")),
                name="command_result_is_known",
            )
        ]
        indexes = [
            models.Index(fields=["target_kind", "target_name", "id"]),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target_name}"


class Event(models.Model):
    """Something worth telling about an object; the same thing again is counted, not repeated."""

    NORMAL = "Normal"
    WARNING = "Warning"

    type = models.CharField(
        max_length=8,
        choices=[(NORMAL, NORMAL), (WARNING, WARNING)],
        default=NORMAL,
    )
    kind = models.CharField(max_length=16)  # Queue, PodGroup, Job, Pod, Node, Cluster
    namespace = models.CharField(max_length=63, blank=True, default="")
    name = models.CharField(max_length=253)
    queue_name = models.CharField(max_length=253, blank=True, default="", db_index=True)
    reason = models.CharField(max_length=64)
    # the reason code of a gang that waits
    code = models.CharField(max_length=32, blank=True, default="")
    message = models.TextField(blank=True, default="")
    message_digest = models.CharField(max_length=32, default="")
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ("-last_at", "-id")
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "namespace", "name", "reason", "message_digest"],
                name="event_is_folded",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reason} {self.kind} {self.name}"
