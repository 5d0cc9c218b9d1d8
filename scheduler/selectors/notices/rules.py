"""Who asked to be told of what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from scheduler.domain.notices import JOB_KINDS, Note, NoticeKind
from scheduler.models import NoticeRule
from scheduler.selectors.accounts.access import queue_parents


@dataclass(slots=True)
class Watch:
    """What anybody wants to know of one kind: the jobs of `owners`, what happens in `queues` and
    below them, or `all` of it.
    """

    all: bool = False
    owners: set[str] = field(default_factory=set)
    queues: set[str] = field(default_factory=set)


def active_rules(kinds: Collection[str]) -> QuerySet[NoticeRule]:
    """Of people whose accounts are not switched off."""
    return NoticeRule.objects.filter(kind__in=kinds, user__is_active=True).order_by()


def default_recipients(names: Collection[str]) -> Mapping[str, Any]:
    """By name: those of them who have an account in use and did not turn such notices off."""
    if not names:
        return {}
    users = get_user_model().objects.filter(username__in=names, is_active=True)
    wanted = users.exclude(preference__calendar_notices=False)
    return {user.get_username(): user for user in wanted}


def watches_of(kinds: Collection[NoticeKind]) -> Mapping[str, Watch]:
    """By kind; those that nobody asked for are missing. One query, which is usually empty."""
    found: dict[str, Watch] = {}
    columns = ("kind", "queue__name", "user__username")
    for kind, queue, owner in active_rules(kinds).values_list(*columns).distinct():
        watch = found.setdefault(kind, Watch())
        if queue:
            watch.queues.add(queue)
        elif kind in JOB_KINDS:
            watch.owners.add(owner)
        else:
            watch.all = True
    return found


def wanted_notes(notes: Iterable[Note], watches: Mapping[str, Watch]) -> Iterator[Note]:
    """Those that anybody may have to be told of."""
    parents: dict[str, str] = {}
    if any(watch.queues for watch in watches.values()):
        parents = queue_parents()
    for note in notes:
        if note.by_default:
            yield note
            continue
        watch = watches.get(note.kind)
        if watch is None:
            continue
        if watch.all or note.owner in watch.owners or _is_below(note.queue, watch.queues, parents):
            yield note


def _is_below(queue: str, queues: Collection[str], parents: Mapping[str, str]) -> bool:
    """Whether it is one of them or below one."""
    seen: set[str] = set()
    while queue and queue not in seen:
        if queue in queues:
            return True
        seen.add(queue)
        queue = parents.get(queue, "")
    return False
