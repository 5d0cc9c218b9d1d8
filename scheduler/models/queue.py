"""The queue tree, and what the last session found for each queue."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from scheduler.domain.access import place_of_deleted
from scheduler.domain.queues import ROOT, DequeueStrategy, QueueState
from scheduler.models.fields import Named, ResourcesField, one_of

_WISHES = (QueueState.OPEN, QueueState.CLOSED, QueueState.SUSPENDED)


class ExistingQueues(models.Manager["Queue"]):
    """Queues that were not deleted: all that the tree, the rules and the sessions know of."""

    def get_queryset(self) -> models.QuerySet[Queue]:
        return super().get_queryset().filter(deleted_at=None)


class Queue(Named):
    """`wish` is what its owner asked for.

    `state`, `closed_by` and `suspended_by` follow from the tree (domain.lifecycle) and are stored
    in the same transaction for filters and for others to read.

    The row of a deleted queue stays, without its roles and figures: the records of its jobs refer
    to it, and its place in the tree says who may read them. Its name is free for another queue.
    """

    name = models.CharField(max_length=253)
    parent = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="children",
    )
    weight = models.PositiveIntegerField(default=1)
    capability = ResourcesField()
    deserved = ResourcesField()
    guarantee = ResourcesField()
    reclaimable = models.BooleanField(default=True)
    priority = models.PositiveIntegerField(default=0)
    dequeue_strategy = models.CharField(
        max_length=16, choices=one_of(DequeueStrategy), default=DequeueStrategy.TRAVERSE.value
    )
    min_run_seconds = models.PositiveIntegerField(null=True, blank=True, default=None)
    max_waiting_jobs = models.PositiveIntegerField(null=True, blank=True, default=None)
    max_waiting_pods = models.PositiveIntegerField(null=True, blank=True, default=None)
    max_waiting_jobs_per_user = models.PositiveIntegerField(null=True, blank=True, default=None)
    max_waiting_pods_per_user = models.PositiveIntegerField(null=True, blank=True, default=None)
    max_pods_per_job = models.PositiveIntegerField(null=True, blank=True, default=None)
    max_run_seconds = models.PositiveIntegerField(null=True, blank=True, default=None)
    type = models.CharField(max_length=253, blank=True, default="")
    owner = models.CharField(max_length=253, blank=True, default="")
    description = models.CharField(max_length=2000, blank=True, default="")
    # with commas between them
    namespaces = models.CharField(max_length=4000, blank=True, default="", db_default="")

    wish = models.CharField(max_length=16, choices=one_of(_WISHES), default=QueueState.OPEN.value)
    state = models.CharField(
        max_length=16,
        choices=one_of(QueueState),
        default=QueueState.OPEN.value,
        db_index=True,
    )
    closed_by = models.CharField(max_length=253, blank=True, default="")
    suspended_by = models.CharField(max_length=253, blank=True, default="")
    # the queue whose wish to be suspended holds scheduling here
    held_by = models.CharField(max_length=253, blank=True, default="")
    # came from outside as Unknown; shows whenever the queue is not wanted closed
    is_unknown = models.BooleanField(default=False)
    state_since = models.DateTimeField(null=True, blank=True)
    conditions = models.JSONField(default=list, blank=True)
    warnings = models.JSONField(default=list, blank=True)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.CharField(max_length=150, blank=True, default="")
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ExistingQueues()
    with_deleted = models.Manager["Queue"]()

    class Meta:
        ordering = ("name",)
        indexes = [models.Index(fields=["name"])]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=Q(deleted_at=None), name="queue_name_is_unique"
            ),
            models.CheckConstraint(
                condition=Q(name=ROOT, parent__isnull=True)
                | (~Q(name=ROOT) & Q(parent__isnull=False)),
                name="queue_only_root_has_no_parent",
            ),
            models.CheckConstraint(
                condition=Q(parent__isnull=True) | ~Q(parent=F("id")),
                name="queue_is_not_its_own_parent",
            ),
            models.CheckConstraint(
                condition=Q(weight__gte=1, weight__lte=65535), name="queue_weight_in_range"
            ),
            models.CheckConstraint(
                condition=Q(wish__in=[wish.value for wish in _WISHES]), name="queue_wish_is_known"
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in QueueState]),
                name="queue_state_is_known",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def parent_name(self) -> str:
        """Of the queue above it; "" for the root."""
        if self.parent is None:
            return ""
        return self.parent.name

    @property
    def place(self) -> str:
        """What `Access` knows it by. The name alone may be another queue's by now."""
        if self.deleted_at is None:
            return self.name
        return place_of_deleted(self.name, self.pk)


class PlannedDeletion(models.Model):
    """Somebody wants the queue, and exactly these queues below it, deleted as soon as they have
    drained; dropped when it opens again.

    `user` is whose rights count when the time comes, the rest says in the record who it was.
    """

    queue = models.OneToOneField(
        Queue,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="planned_deletion",
    )
    queues = models.JSONField()  # the names as they were shown, the queue itself last
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    actor = models.CharField(max_length=150)
    door = models.CharField(max_length=16)
    address = models.CharField(max_length=64, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    reason = models.CharField(max_length=1024, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"deletion of {self.queue_id}"


class QueueFigures(models.Model):
    """One row a queue, written by the session when something in it changed.

    Pages never sum pods.
    """

    queue = models.OneToOneField(
        Queue,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="figures",
    )
    allocated = ResourcesField()  # what pods hold on nodes: bound, running or leaving
    # the part of it that is on its way out, or on a node that does not answer
    leaving = ResourcesField()
    promised = ResourcesField()  # room that is kept for pods that wait
    asked = ResourcesField()  # what pods wait for, without jobs that can never run
    lacking = ResourcesField()  # how much of the resource that they wait for its jobs need
    deserved = ResourcesField()
    nominal_share = ResourcesField()
    request = ResourcesField()
    inqueue = ResourcesField()
    elastic = ResourcesField()
    held = ResourcesField()  # what waits in suspended queues: no part of request
    real_capability = ResourcesField(null=True, default=None)
    share = models.FloatField(default=0.0)
    overused = models.BooleanField(default=False)
    warnings = models.JSONField(default=list, blank=True)
    session = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"figures of {self.queue_id}"
