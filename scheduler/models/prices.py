"""What usage costs, and which months' statements were sent."""

from __future__ import annotations

from django.db import models


class PriceList(models.Model):
    """Prices per resource and hour from a day on (see domain/prices.py), as texts."""

    valid_from = models.DateField(unique=True)
    currency = models.CharField(max_length=16)
    prices = models.JSONField(default=dict)

    class Meta:
        ordering = ("valid_from",)

    def __str__(self) -> str:
        return f"prices from {self.valid_from}"


class SentStatements(models.Model):
    """The statements of this month, such as "2026-10", went out by themselves."""

    month = models.CharField(max_length=7, primary_key=True)
    sent_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.month}, sent at {self.sent_at}"
