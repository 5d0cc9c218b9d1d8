"""When waiting gangs are expected to start: what is shown, its grounds, and what came of it."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class ExpectedStart(models.Model):
    """Of each gang that waits, as of the last look ahead. All rows are written anew each time."""

    # no foreign key: it is written beside sessions and never holds up whoever deletes a podgroup
    podgroup_number = models.PositiveBigIntegerField(primary_key=True)
    made_at = models.DateTimeField()
    # both unset where there is no estimate
    earliest_at = models.DateTimeField(null=True, blank=True)
    latest_at = models.DateTimeField(null=True, blank=True)
    why = models.CharField(max_length=16, blank=True, default="")  # why there is none
    # how many past forecasts the range rests on
    cases = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.podgroup_number} {self.earliest_at} to {self.latest_at}"


class StartForecast(models.Model):
    """A forecast that is kept, to be compared with what happens. It outlives its podgroup.

    Times are seconds from `made_at` on. `low`, `median` and `high` are those of the runs ahead;
    `earliest` and `latest` the range that was shown, if there was one.
    """

    podgroup_number = models.PositiveBigIntegerField()
    podgroup_name = models.CharField(max_length=320)  # namespace/name
    queue_name = models.CharField(max_length=253)
    size = models.CharField(max_length=16, blank=True, default="")  # see domain/gang_sizes.py
    made_at = models.DateTimeField(db_index=True)
    low = models.FloatField()
    median = models.FloatField()
    high = models.FloatField()
    earliest = models.FloatField(null=True, blank=True)
    latest = models.FloatField(null=True, blank=True)
    actual = models.FloatField(null=True, blank=True)
    # when it started; or when it was seen to be gone without having started
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = [
            models.Index(fields=["id"], condition=Q(ended_at=None), name="start_forecast_open"),
        ]

    def __str__(self) -> str:
        return f"{self.podgroup_name} at {self.made_at}"


class LearntRunTime(models.Model):
    """How long jobs of one circle ran: see domain/run_times.py. `*` stands for any."""

    user = models.CharField(max_length=150)
    queue = models.CharField(max_length=253)
    size = models.CharField(max_length=16)
    count = models.PositiveIntegerField()
    quantiles = models.JSONField()

    class Meta:
        ordering = ("user", "queue", "size")
        constraints = [
            models.UniqueConstraint(fields=["user", "queue", "size"], name="run_time_once_a_circle")
        ]

    def __str__(self) -> str:
        return f"{self.user} {self.queue} {self.size}"


class LookAhead(models.Model):
    """The one row about looking ahead: when it was done last, what it cost, and when it is next."""

    next_at = models.DateTimeField(null=True, blank=True)
    made_at = models.DateTimeField(null=True, blank=True)
    learnt_at = models.DateTimeField(null=True, blank=True)
    processor_seconds = models.FloatField(default=0.0)
    sessions = models.PositiveIntegerField(default=0)
    waiting = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"looked ahead at {self.made_at}"
