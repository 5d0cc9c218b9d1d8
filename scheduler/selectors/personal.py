"""What somebody set for himself, and the actions on many jobs that he began."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import Count, Q

from scheduler.models import BulkRun, Preference, SavedView


def preference_of(user: Any) -> Preference:
    """One not saved yet where nothing was set."""
    return Preference.objects.filter(pk=user.pk).first() or Preference(user=user)


def views_for(user: Any, page: str) -> list[SavedView]:
    """One's own and those that others share, by name."""
    return list(SavedView.objects.filter(Q(owner=user) | Q(shared=True), page=page).select_related("owner"))


def bulk_run(uid: uuid.UUID, user: Any) -> BulkRun | None:
    """One's own; a superuser sees everybody's."""
    runs = BulkRun.objects.select_related("owner").filter(uid=uid)
    return (runs if user.is_superuser else runs.filter(owner=user)).first()


def bulk_counts(run: BulkRun) -> dict[str, int]:
    """How many jobs of it have each result; "" are those whose turn has not come."""
    return dict(run.items.order_by().values_list("result").annotate(number=Count("pk")))


def unfinished_runs(user: Any) -> list[BulkRun]:
    return list(BulkRun.objects.filter(owner=user).exclude(state=BulkRun.DONE)[:5])
