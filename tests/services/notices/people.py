"""People with rules, for tests of notices."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model

from scheduler.domain.notices import Note, NoticeKind
from scheduler.models import Grant, NoticeChannel, NoticeRule, Queue


def person(name: str, *, sees: str = "", admin: bool = False) -> Any:
    """With the role of a viewer on the queue that they see."""
    user = get_user_model().objects.create(username=name, is_superuser=admin)
    if sees:
        Grant.objects.create(user=user, queue=Queue.objects.get(name=sees), role="viewer")
    return user


def rule(
    user: Any, kind: NoticeKind, queue: str = "", *channels: NoticeChannel, times: float = 2.0
) -> NoticeRule:
    place = Queue.objects.get(name=queue) if queue else None
    made = NoticeRule.objects.create(user=user, kind=kind, queue=place, times_usual=times)
    made.channels.set(channels)
    return made


def started(number: int = 1, *, queue: str = "default", owner: str = "ada", **more: Any) -> Note:
    return Note(
        NoticeKind.JOB_STARTED,
        f"started:{number}",
        f"Job default/train-{number} has started",
        queue=queue,
        namespace="default",
        name=f"train-{number}",
        owner=owner,
        **more,
    )
