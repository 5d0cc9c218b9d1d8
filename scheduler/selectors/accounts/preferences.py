"""What people set for themselves, and the actions on many jobs that they began."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import timedelta
from typing import Any
from urllib.parse import unquote_plus

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from scheduler.domain.access import Access
from scheduler.models import BulkItem, BulkRun, Preference, SavedView
from scheduler.selectors.accounts.hidden_names import HiddenNames
from scheduler.selectors.accounts.people import people_in_sight

_RECENT = timedelta(minutes=10)


def preference_of(user: Any) -> Preference:
    """One not saved yet where nothing was set."""
    return Preference.objects.filter(pk=user.pk).first() or Preference(user=user)


def views_for(user: Any, access: Access) -> QuerySet[SavedView]:
    """One's own, and those that others share.

    What people of other tenants share is theirs, and so is a view that names a queue of theirs.
    """
    views = SavedView.objects.select_related("owner")
    own_or_shared = Q(owner=user.pk) | Q(shared=True)
    if access.visible is None:
        return views.filter(own_or_shared)
    shared = views.filter(shared=True, owner__in=people_in_sight(access)).exclude(owner=user.pk)
    hidden = HiddenNames(access, user.get_username())
    told = []
    for number, name, query in shared.values_list("pk", "name", "query"):
        if not hidden.occur_in(f"{name} {unquote_plus(query)}"):
            told.append(number)
    return views.filter(Q(owner=user.pk) | Q(pk__in=told))


def bulk_run(uid: uuid.UUID, user: Any) -> BulkRun | None:
    """One's own; a superuser sees everybody's."""
    return visible_runs(user, everybody=user.is_superuser).filter(uid=uid).first()


def visible_runs(user: Any, *, everybody: bool) -> QuerySet[BulkRun]:
    runs = BulkRun.objects.select_related("owner")
    if everybody:
        return runs
    return runs.filter(owner=user)


def counts_of_runs(ids: Collection[int]) -> dict[int, dict[str, int]]:
    """`bulk_counts` of several."""
    found: dict[int, dict[str, int]] = {}
    for run, result, number in (
        BulkItem.objects.filter(run__in=ids)
        .order_by()
        .values_list("run", "result")
        .annotate(number=Count("pk"))
    ):
        found.setdefault(run, {})[result] = number
    return found


def bulk_counts(run: BulkRun) -> dict[str, int]:
    """How many jobs of it have each result; "" are those whose turn has not come."""
    return counts_of_runs([run.pk]).get(run.pk, {})


def recent_runs(user: Any) -> list[BulkRun]:
    """The runs under way, and the last one if it ended a short while ago.

    Whoever left the page of a run finds it again.
    """
    mine = BulkRun.objects.filter(owner=user)
    ended = mine.filter(state=BulkRun.DONE, finished_at__gt=timezone.now() - _RECENT)[:1]
    return [*mine.exclude(state=BulkRun.DONE)[:5], *ended]
