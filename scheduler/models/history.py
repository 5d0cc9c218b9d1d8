"""What queues had over time, and sessions kept for replay."""

from __future__ import annotations

from django.db import models


class QueueSample(models.Model):
    """One packed row a queue and bucket: amounts by resource in base units, podgroup counts and
    state.

    A raw sample is written when something changed and holds until the next one; minutes and hours
    are averages over their bucket.
    """

    RAW = 0
    MINUTE = 60
    HOUR = 3600

    queue_name = models.CharField(max_length=253)
    seconds = models.PositiveSmallIntegerField()  # length of the bucket; 0 for a raw sample
    at = models.DateTimeField()
    data = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["queue_name", "seconds", "at"], name="one_sample_a_bucket"
            )
        ]
        indexes = [models.Index(fields=["seconds", "at"])]

    def __str__(self) -> str:
        return f"{self.queue_name} {self.at:%H:%M:%S}"


class LoanSample(models.Model):
    """What a queue borrowed and lent at a minute, by resource and by the other queue; and its
    average in an hour. Written when it changed, and holds until the next one.

    The row of the queue "" is the sum of all loans. It is written every minute.
    """

    queue_name = models.CharField(max_length=253, blank=True)
    seconds = models.PositiveSmallIntegerField()
    at = models.DateTimeField()
    data = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["queue_name", "seconds", "at"], name="one_loan_sample_a_bucket"
            )
        ]
        indexes = [models.Index(fields=["seconds", "at"])]

    def __str__(self) -> str:
        return f"loans of {self.queue_name or 'all'} {self.at:%H:%M}"


class SavedScenario(models.Model):
    """A session's snapshot and policy, compressed, as a scenario file: replaying it gives the same
    outcome. One that `stays` evicted something, or was asked for: it is not thinned out.
    """

    session_number = models.PositiveBigIntegerField(primary_key=True)
    created_at = models.DateTimeField()
    content = models.BinaryField()
    outcome_digest = models.CharField(max_length=64, blank=True, default="")
    stays = models.BooleanField(default=False, db_default=False)

    def __str__(self) -> str:
        return f"session {self.session_number}"
