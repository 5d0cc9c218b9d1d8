"""Fairness over time: who was starved by whom, where room went, and how long gangs waited."""

from __future__ import annotations

from django.db import models


class StarvedRow(models.Model):
    """Units × seconds of one day that `lender` lacked of its deserved and asked for, while
    `borrower` had them. The borrower "" is whoever is too small to be kept by name.
    """

    resource = models.CharField(max_length=317)
    at = models.DateTimeField()
    lender = models.CharField(max_length=253)
    borrower = models.CharField(max_length=253, blank=True, default="")
    amount = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["resource", "at", "lender", "borrower"], name="one_starved_row_a_day"
            )
        ]

    def __str__(self) -> str:
        return f"{self.lender} by {self.borrower} {self.at:%Y-%m-%d}"


class LossRow(models.Model):
    """Units × seconds of the cluster's room in one hour or day, by what became of it (see
    domain/losses.py). The parts of a bucket add up to all that there was.
    """

    seconds = models.PositiveIntegerField()
    resource = models.CharField(max_length=317)
    at = models.DateTimeField()
    part = models.CharField(max_length=16)
    amount = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["seconds", "resource", "at", "part"], name="one_loss_row_a_bucket"
            )
        ]

    def __str__(self) -> str:
        return f"{self.part} {self.at:%Y-%m-%d %H:%M}"


class WaitRow(models.Model):
    """How many gangs that started on this day had waited for so long (see
    domain/wait_buckets.py).
    """

    at = models.DateTimeField()
    queue_name = models.CharField(max_length=253)
    owner = models.CharField(max_length=150, blank=True, default="")
    size = models.CharField(max_length=16, blank=True, default="")
    bucket = models.PositiveSmallIntegerField()
    count = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["at", "queue_name", "owner", "size", "bucket"], name="one_wait_row_a_day"
            )
        ]

    def __str__(self) -> str:
        return f"{self.queue_name} {self.at:%Y-%m-%d} {self.bucket}"
