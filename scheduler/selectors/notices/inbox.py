"""What is in somebody's inbox, and what was sent to their channels."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Count, Q, QuerySet

from scheduler.domain.access import Access
from scheduler.models import Notice, NoticeChannel, NoticeDelivery, NoticeRule

MOST_COUNTED: Final = 100
"""More unread notices are not counted."""


def readable_notices(user: Any, access: Access) -> QuerySet[Notice]:
    """Their own, of queues that they may still see."""
    own = Notice.objects.filter(user=user.pk)
    readable = access.readable
    if readable is None:
        return own
    return own.filter(queue_id__in=readable)


def count_unread(user: Any, access: Access) -> int:
    """At most `MOST_COUNTED`."""
    unread = readable_notices(user, access).filter(read_at=None)
    return unread.order_by()[:MOST_COUNTED].count()


def rules_of(user: Any) -> QuerySet[NoticeRule]:
    return (
        NoticeRule.objects.filter(user=user.pk)
        .select_related("queue")
        .prefetch_related("channels")
        .order_by("kind", "queue__name", "pk")
    )


def channels_of(user: Any) -> QuerySet[NoticeChannel]:
    return NoticeChannel.objects.filter(user=user.pk)


def deliveries_to(user: Any) -> QuerySet[NoticeDelivery]:
    """Newest first, with how many notices each has and every try."""
    rows = NoticeDelivery.objects.filter(channel__user=user.pk).select_related("channel")
    counted = rows.annotate(number=Count("notices", filter=Q(is_test=False)))
    return counted.prefetch_related("log").order_by("-pk")
