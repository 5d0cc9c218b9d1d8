"""Change sets as drafts: begun, added to, brought up to date, discarded, reverted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from django.db import transaction

from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import Forbidden, Permission
from scheduler.domain.change_sets import (
    QUEUE,
    ChangeItem,
    Manifest,
    SetState,
    merged_wish,
    with_item,
)
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.queues import ROOT
from scheduler.domain.safe_windows import after_the_window
from scheduler.models import AuditEntry, ChangeSet
from scheduler.selectors.change_sets.listing import queues_of
from scheduler.selectors.change_sets.objects import crossings_of, manifests_now
from scheduler.selectors.change_sets.reverts import inverse_of_entry
from scheduler.selectors.change_sets.windows import window_of_set
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.change_sets.apply import (
    check_set_version,
    counts_in_words,
    end_draft,
    require_draft,
    visible_set,
)
from scheduler.services.change_sets.wishes import items_from, written, written_queue
from scheduler.services.files.versions import Expected
from scheduler.services.queues.create_update import merged_edit
from scheduler.services.records import audit

LONGEST_NAME = 100


def create_change_set(
    name: str,
    documents: Iterable[object] = (),
    *,
    by: Actor = SYSTEM,
    description: str = "",
) -> ChangeSet:
    """A draft with what the documents ask for.

    Raises `Rejected` with every flaw of shape, `Forbidden` and `OutOfSight`.
    """
    items: tuple[ChangeItem, ...] = ()
    documents = list(documents)
    if documents:
        items = items_from(documents)
    return _new_set(name, items, by, description)


def _new_set(
    name: str,
    items: tuple[ChangeItem, ...],
    by: Actor,
    description: str = "",
    reverts: ChangeSet | None = None,
) -> ChangeSet:
    if not access.access_for(by).may_anywhere(Permission.OPERATE):
        raise access.access_for(by).refusal(Permission.OPERATE, ROOT, "collect changes")
    change_set = ChangeSet(
        name=_checked_name(name),
        description=description[:1024],
        author=by.name[:150],
        reverts=reverts,
    )
    return _kept(change_set, items, by)


def _checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME:
        message = f"A change set needs a name of at most {LONGEST_NAME} characters."
        raise Rejected([Violation("name_required", "", "name", message, "write a name")])
    return name


def _kept(change_set: ChangeSet, items: tuple[ChangeItem, ...], by: Actor) -> ChangeSet:
    """Whoever collects something must be able to see it."""
    change_set.queues = queues_of(items)
    mine = access.access_for(by)
    for queue in change_set.queues:
        mine.require(Permission.VIEW, queue)
    change_set.keep(items)
    change_set.save()
    return change_set


def add_documents(
    number: int,
    documents: Iterable[object],
    *,
    by: Actor = SYSTEM,
    expected_version: Expected = None,
) -> ChangeSet:
    with transaction.atomic():
        change_set = _own_draft(number, by, expected_version)
        items = items_from(documents, change_set.changes)
        return _changed(change_set, items, by, _now_holds(change_set, items))


def add_queue(
    number: int,
    name: str,
    manifest: object,
    *,
    by: Actor = SYSTEM,
    opened: Mapping[str, Any] | None = None,
) -> ChangeSet:
    """A queue as a form has it, whole. `name` is empty for a new one.

    What differs from `opened`, which the form began with, is written over what the set has of it,
    or over what is stored.
    """
    with transaction.atomic():
        change_set = _own_draft(number, by)
        items = with_queue(change_set.changes, name, manifest, opened)
        return _changed(change_set, items, by, _now_holds(change_set, items))


def begin_with_queue(
    title: str,
    name: str,
    manifest: object,
    *,
    by: Actor = SYSTEM,
    opened: Mapping[str, Any] | None = None,
) -> ChangeSet:
    """A new draft with a queue as a form has it. If that cannot be read, there is no draft."""
    with transaction.atomic():
        change_set = create_change_set(title, by=by)
        return add_queue(change_set.pk, name, manifest, by=by, opened=opened)


def with_queue(
    items: tuple[ChangeItem, ...],
    name: str,
    manifest: object,
    opened: Mapping[str, Any] | None,
) -> tuple[ChangeItem, ...]:
    if not name:
        return items_from([manifest], items)
    earlier = next((item for item in items if item.key == (QUEUE, name)), None)
    base = manifests_now([(QUEUE, name)]).get((QUEUE, name))
    present = base
    if earlier is not None:
        base = earlier.base
        present = earlier.wanted or base
    if present is None:
        return items_from([manifest], items)
    wanted = manifest
    if opened is not None:
        wanted = merged_edit(opened, manifest, present).value
    return with_item(items, ChangeItem(QUEUE, name, base, written_queue(wanted, present)))


def take_out(
    number: int,
    kind: str,
    name: str,
    *,
    by: Actor = SYSTEM,
    expected_version: Expected = None,
) -> ChangeSet:
    """Raises `NotPossible` where the set does not hold it."""
    with transaction.atomic():
        change_set = _own_draft(number, by, expected_version)
        left = tuple(item for item in change_set.changes if item.key != (kind, name))
        if len(left) == len(change_set.changes):
            raise NotPossible(f"{change_set.name} holds no {kind} {name}")
        return _changed(change_set, left, by, _now_holds(change_set, left))


def rename(
    number: int,
    name: str,
    description: str,
    *,
    by: Actor = SYSTEM,
    expected_version: Expected = None,
) -> ChangeSet:
    with transaction.atomic():
        change_set = _own_draft(number, by, expected_version)
        message = f"Renamed {change_set.name}, or described it anew."
        change_set.name = _checked_name(name)
        change_set.description = description[:1024]
        return _changed(change_set, change_set.changes, by, message)


def bring_up_to_date(number: int, *, by: Actor = SYSTEM) -> ChangeSet:
    """Begin with the objects as they are now; what the set wants of them stays.

    An object that is as wanted by now, or that is gone, is taken out.
    """
    with transaction.atomic():
        change_set = _own_draft(number, by)
        items = change_set.changes
        for crossing in crossings_of(items):
            items = with_item(items, renewed(crossing.item, crossing.now))
        return _changed(change_set, items, by, f"Brought {change_set.name} up to date.")


def renewed(item: ChangeItem, now: Manifest | None) -> ChangeItem:
    """One whose `wanted` is its `base` is left out by `with_item`."""
    if item.wanted is None or item.base is None:
        return replace(item, base=now)
    if now is None:
        return replace(item, base=None, wanted=None)
    merged = merged_wish(item, now)
    return replace(item, base=now, wanted=written(item.kind, item.name, merged, now))


def discard(number: int, *, by: Actor = SYSTEM, dry_run: bool = False) -> ChangeSet:
    """It stays on record, and can no longer be applied."""
    with transaction.atomic():
        change_set = _own_draft(number, by)
        end_draft(change_set, SetState.DISCARDED, by)
        audit.record(
            by,
            "DiscardChangeSet",
            "ChangeSet",
            str(number),
            before={"state": SetState.DRAFT.value},
            after={"state": SetState.DISCARDED.value},
            message=f"Discarded “{change_set.name}”.",
        )
        transaction.set_rollback(dry_run)
    return change_set


def revert(number: int, *, by: Actor = SYSTEM) -> ChangeSet:
    """A new draft that leads back from an applied set to what was before.

    Raises `NotPossible` for one that was not applied.
    """
    applied = visible_set(number, by)
    if applied.state != SetState.APPLIED.value:
        raise NotPossible(f"“{applied.name}” was not applied, so there is nothing to revert")
    items = tuple(item.reversed for item in _without_the_window(applied))
    name = f"Revert {applied.name}"[:LONGEST_NAME]
    return _new_set(name, items, by, f"Back to what was before change set {number}.", applied)


def revert_entry(entry: AuditEntry, *, by: Actor = SYSTEM) -> ChangeSet:
    """A new draft that undoes one entry of the audit log, for whoever may read it.

    Raises `NotPossible` with the reason where there is no way back.
    """
    inverse = inverse_of_entry(entry)
    if inverse.item is None:
        raise NotPossible(inverse.why_not or f"{entry.action} cannot be undone by a change set")
    name = f"Revert {entry.action} of {entry.name}"[:LONGEST_NAME]
    return _new_set(
        name, (inverse.item,), by, f"Back to what was before entry {entry.pk} of the log."
    )


def _without_the_window(applied: ChangeSet) -> tuple[ChangeItem, ...]:
    """A safe window that has ended gave its queue back: that is no change of others."""
    window = window_of_set(applied)
    if window is None or window.is_open:
        return applied.changes
    return after_the_window(applied.changes, window.queue, window.requested_before)


def copy_of(other: ChangeSet, *, by: Actor = SYSTEM) -> ChangeSet:
    """A new draft with the same edits."""
    return _new_set(other.name, other.changes, by, other.description)


def _own_draft(number: int, by: Actor, expected_version: Expected = None) -> ChangeSet:
    """A draft that the caller may change: their own, or anybody's for an admin of the cluster."""
    visible = visible_set(number, by)
    change_set = ChangeSet.objects.select_for_update().get(pk=visible.pk)
    mine = access.access_for(by)
    if change_set.author != by.name and not mine.is_cluster_admin:
        message = f"Only {change_set.author or 'its author'} and cluster admins may change it."
        raise Forbidden(Permission.ADMINISTER, ROOT, message=message)
    if not mine.may_anywhere(Permission.OPERATE):
        raise mine.refusal(Permission.OPERATE, ROOT, "collect changes")
    require_draft(change_set, "changed")
    check_set_version(change_set, expected_version)
    return change_set


def _now_holds(change_set: ChangeSet, items: tuple[ChangeItem, ...]) -> str:
    return f"Changed what {change_set.name} holds: {counts_in_words(items)}."


def _changed(
    change_set: ChangeSet, items: tuple[ChangeItem, ...], by: Actor, message: str
) -> ChangeSet:
    """Written down, so that whoever read it before can be told who changed it."""
    change_set.resource_version += 1
    kept = _kept(change_set, items, by)
    audit.record(by, "EditChangeSet", "ChangeSet", str(change_set.pk), message=message)
    return kept
