"""Who used what: resource-seconds by hour and day, and what the booking of them rests on."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from scheduler.models.fields import ResourcesField


class UsageRow(models.Model):
    """Sums of one hour or day (UTC) of one resource, in units × seconds (see domain/usage.py).

    The same seconds are in a row of each grain: by job, by user, by queue, and of the cluster.
    Names that a grain does not tell apart are empty. What queues deserve, borrow, lend and are owed
    is in the rows of queues. The cluster deserves what its nodes have.
    """

    HOUR = 3600
    DAY = 86400
    JOB = "job"
    USER = "user"
    QUEUE = "queue"
    CLUSTER = "cluster"
    KEY = ("grain", "seconds", "resource", "at", "queue_name", "namespace", "owner", "job")
    FIGURES_OF_PODS = ("used", "waited", "lost")
    FIGURES = (*FIGURES_OF_PODS, "deserved", "borrowed", "lent", "owed")

    grain = models.CharField(max_length=8)
    seconds = models.PositiveIntegerField()
    resource = models.CharField(max_length=317)
    at = models.DateTimeField()
    queue_name = models.CharField(max_length=253, blank=True, default="")
    namespace = models.CharField(max_length=63, blank=True, default="")
    owner = models.CharField(max_length=150, blank=True, default="")
    job = models.CharField(max_length=253, blank=True, default="")

    used = models.BigIntegerField(default=0)
    waited = models.BigIntegerField(default=0)
    lost = models.BigIntegerField(default=0)
    deserved = models.BigIntegerField(default=0)
    borrowed = models.BigIntegerField(default=0)
    lent = models.BigIntegerField(default=0)
    # below its deserved, while it asked for more
    owed = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "grain",
                    "seconds",
                    "resource",
                    "at",
                    "queue_name",
                    "namespace",
                    "owner",
                    "job",
                ],
                name="one_usage_row_a_bucket",
            )
        ]
        # for pruning
        indexes = [models.Index(fields=["grain", "seconds", "at"], name="usage_by_age")]

    def __str__(self) -> str:
        return f"{self.grain} {self.queue_name} {self.resource} {self.at:%Y-%m-%d %H:%M}"


class PodStretch(models.Model):
    """The life of one pod that is over. Triggers write it (models/usage_triggers.py), whoever
    moved or deleted the pod, so that nothing is forgotten before it is booked.

    It stays for a while after it was booked: a pod that is read anew is then known.
    """

    pod_uid = models.UUIDField(db_index=True)
    pod_name = models.CharField(max_length=320)  # namespace/name
    queue_name = models.CharField(max_length=253)
    namespace = models.CharField(max_length=63)
    job = models.CharField(max_length=253)  # name of the podgroup
    owner = models.CharField(max_length=150, blank=True, default="")
    requests = ResourcesField()
    created_at = models.DateTimeField()
    began_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(db_index=True)
    booked = models.BooleanField(default=False, db_default=False)

    class Meta:
        indexes = [
            models.Index(fields=["id"], condition=Q(booked=False), name="pod_stretch_unbooked")
        ]

    def __str__(self) -> str:
        return f"{self.pod_name} until {self.ended_at}"


class CountedPod(models.Model):
    """What has been booked of a pod that is not over. Seconds since 1970."""

    pod_uid = models.UUIDField(primary_key=True)
    queue_name = models.CharField(max_length=253)
    namespace = models.CharField(max_length=63)
    job = models.CharField(max_length=253)
    owner = models.CharField(max_length=150, blank=True, default="")
    requests = ResourcesField()
    created = models.BigIntegerField()
    began = models.BigIntegerField(null=True, blank=True)
    since = models.BigIntegerField()
    until = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.pod_uid} until {self.until}"


class UsageBook(models.Model):
    """One row: how far usage has been booked. Whoever books holds it."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    # seconds since 1970; unset before the first time
    complete_until = models.BigIntegerField(null=True, blank=True)
    # when somebody last looked where the cluster's room goes
    looked_at = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_usage_book")]

    def __str__(self) -> str:
        return f"booked until {self.complete_until}"
