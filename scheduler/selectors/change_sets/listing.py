"""Which change sets a reader may see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet

from scheduler.domain.access import Access, Permission
from scheduler.domain.change_sets import QUEUE, ChangeItem, SetState
from scheduler.domain.queues import ROOT
from scheduler.models import AuditEntry, ChangeSet, Queue, SafeWindow


def visible_sets(access: Access, reader: str) -> QuerySet[ChangeSet]:
    """Those whose queues the reader may all see, and that of its safe window.

    Its author sees it too when a queue of it was deleted since. The policy and nodes can be seen
    by everybody who sees any queue. A set without queues is another tenant's business, though, if
    its author has no role on the whole cluster: its name and author are not told.
    """
    sets = ChangeSet.objects.all()
    if access.sees_everything:
        return sets
    if not access.may_anywhere(Permission.VIEW):
        return sets.none()
    known = frozenset(Queue.objects.values_list("name", flat=True))
    held = dict(SafeWindow.objects.values_list("change_set_id", "queue"))
    tenants = _authors_below_root()
    seen = []
    for number, author, queues in sets.values_list("pk", "author", "queues"):
        if number in held:
            queues = [*queues, held[number]]
        if author == reader:
            queues = [name for name in queues if name in known]
        elif not queues and author in tenants:
            continue
        if all(access.may(Permission.VIEW, name) for name in queues):
            seen.append(number)
    return sets.filter(pk__in=seen)


def _authors_below_root() -> frozenset[str]:
    """Accounts without a role on the whole cluster."""
    on_root = Q(grants__queue__name=ROOT) | Q(groups__grants__queue__name=ROOT)
    users = get_user_model().objects.exclude(is_superuser=True)
    of_cluster = users.filter(on_root).values("pk")
    return frozenset(users.exclude(pk__in=of_cluster).values_list("username", flat=True))


def set_of_entry(entry: AuditEntry, access: Access, reader: str) -> ChangeSet | None:
    """The change set that a deed was done to, or that it was part of."""
    number = entry.name
    if entry.kind != "ChangeSet":
        named = _NAMED.search(entry.reason)
        if named is None:
            return None
        number = named[1]
    if not number.isdigit():
        return None
    return visible_sets(access, reader).filter(pk=int(number)).first()


_NAMED = re.compile(r"\bchange set (\d{1,18}): ")


def drafts_of(access: Access, reader: str) -> list[ChangeSet]:
    """The drafts that the reader may add to, newest first."""
    drafts = visible_sets(access, reader).filter(state=SetState.DRAFT.value)
    if not access.is_cluster_admin:
        drafts = drafts.filter(author=reader)
    return list(drafts.order_by("-updated_at", "-pk")[:_MOST_OFFERED])


_MOST_OFFERED = 20


def queues_of(items: Iterable[ChangeItem]) -> list[str]:
    """The queues that a reader of these items learns of: themselves, and those they move below.

    For a queue that is new in the set it is the one above it that exists.
    """
    chosen = [item for item in items if item.kind == QUEUE]
    made = {}
    for item in chosen:
        if item.base is None and item.wanted is not None:
            made[item.name] = _parent_in(item.wanted)
    names = set()
    for item in chosen:
        if item.base is None:
            names.add(_existing_above(item.name, made))
        else:
            names.add(item.name)
            names.update(_new_parent(item, made))
    return sorted(names)


def _new_parent(item: ChangeItem, made: Mapping[str, str]) -> set[str]:
    """Everybody knows of root."""
    if item.base is None or item.wanted is None:
        return set()
    parent = _parent_in(item.wanted)
    if parent in (ROOT, _parent_in(item.base)):
        return set()
    return {_existing_above(parent, made)}


def _parent_in(manifest: Mapping[str, object]) -> str:
    spec = manifest.get("spec")
    if isinstance(spec, Mapping):
        return str(spec.get("parent") or ROOT)
    return ROOT


def _existing_above(name: str, made: Mapping[str, str]) -> str:
    seen = set()
    while name in made and name not in seen:
        seen.add(name)
        name = made[name]
    return name
