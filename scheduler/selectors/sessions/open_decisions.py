"""What sessions decided and nobody has carried out yet."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Min

from scheduler.domain.durations import seconds_between
from scheduler.models import Decision
from scheduler.models.clock import database_now


@dataclass(frozen=True, slots=True)
class OpenDecisions:
    count: int
    oldest_seconds: float
    """0 if there is none."""


def open_decisions() -> OpenDecisions:
    found = Decision.objects.filter(done_at=None).aggregate(
        count=Count("id"), oldest=Min("created_at")
    )
    if found["oldest"] is None:
        return OpenDecisions(0, 0.0)
    return OpenDecisions(found["count"], seconds_between(found["oldest"], database_now()))
