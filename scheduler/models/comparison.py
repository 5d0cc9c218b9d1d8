"""What another scheduler did, beside what shadow sessions would have done."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Comparison(models.Model):
    """One question that both schedulers answer about a gang: is it started, or is it evicted?

    `ours_at` is when a session first would have done it, `theirs_at` when a session first saw it
    done. Both are moments of sessions, so they can be compared. The row outlives its podgroup.
    """

    START = "Start"
    EVICTION = "Eviction"

    about = models.CharField(max_length=8, choices=[(START, START), (EVICTION, EVICTION)])
    # no foreign key: the number of a podgroup that is gone stays, and is never given again
    podgroup_number = models.PositiveBigIntegerField()
    podgroup_name = models.CharField(max_length=320)  # namespace/name
    queue_name = models.CharField(max_length=253, db_index=True)
    min_member = models.PositiveIntegerField(default=1)
    # of a start: all pods that it needs are there; of an eviction: the first sign of it
    since = models.DateTimeField(db_index=True)
    ours_at = models.DateTimeField(null=True, blank=True)
    ours_session = models.PositiveBigIntegerField(null=True, blank=True)
    theirs_at = models.DateTimeField(null=True, blank=True)
    # some of its pods have places, too few for the gang
    half_since = models.DateTimeField(null=True, blank=True)
    half_seconds = models.FloatField(default=0.0)  # how long that lasted, at the longest
    ended_at = models.DateTimeField(null=True, blank=True)  # started, evicted, or gone
    # False: it happened between two looks, so nobody knows what a session would have said
    was_seen = models.BooleanField(default=True)
    # of a start: why it would have waited here
    reason_code = models.CharField(max_length=32, blank=True, default="")
    # that reason in words; of an eviction what the cluster says of it
    message = models.TextField(blank=True, default="")
    # of an eviction here: for whom
    beneficiary = models.CharField(max_length=320, blank=True, default="")
    beneficiary_queue = models.CharField(max_length=253, blank=True, default="")

    class Meta:
        ordering = ("-id",)
        indexes = [
            models.Index(fields=["id"], condition=Q(ended_at=None), name="comparison_open"),
        ]

    def __str__(self) -> str:
        return f"{self.about} of {self.podgroup_name}"
