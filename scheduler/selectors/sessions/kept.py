"""Sessions that are kept so that they can be run again."""

from __future__ import annotations

from django.db.models import QuerySet

from scheduler.models import SavedScenario


def kept_sessions() -> QuerySet[SavedScenario]:
    """Newest first, without what is stored of them."""
    return SavedScenario.objects.order_by("-session_number").defer("content")


def nearest_kept(number: int) -> list[SavedScenario]:
    """The last that is kept from before a session, and the first from after it."""
    before = kept_sessions().filter(session_number__lt=number).first()
    after = kept_sessions().filter(session_number__gt=number).order_by("session_number").first()
    return [row for row in (before, after) if row is not None]
