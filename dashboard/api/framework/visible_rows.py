"""Rows of queues that the caller may see; all others are left out of every answer."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from scheduler.domain.access import Access


def visible(query: QuerySet[Any], access: Access, column: str = "queue") -> QuerySet[Any]:
    """Rows that refer to a queue that the caller may see.

    A deleted queue is judged by its own row, not by its name, which another queue may have now.
    """
    if access.readable is None:
        return query
    return query.filter(**{f"{column}__in": sorted(access.readable)})


def visible_by_name(
    query: QuerySet[Any],
    access: Access,
    column: str = "queue_name",
) -> QuerySet[Any]:
    """Rows that name a queue that the caller may see."""
    if access.visible is None:
        return query
    return query.filter(**{f"{column}__in": sorted(access.visible)})
