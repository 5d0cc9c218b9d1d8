"""Record what was done: one row for each write, in the transaction that makes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler.domain.audit_actions import audit_area
from scheduler.domain.queues import QueueState
from scheduler.models import AuditEntry
from scheduler.models.prepared import PreparedInsert
from scheduler.services.accounts.actors import Actor

_NEW_ENTRY = PreparedInsert(AuditEntry, keep_plan=True)


def record(by: Actor, action: str, kind: str, name: str, **more: Any) -> AuditEntry:
    """Write down one thing that was done; `more` as `entry` has it."""
    written = entry(by, action, kind, name, **more)
    write([written])
    return written


def entry(
    by: Actor,
    action: str,
    kind: str,
    name: str,
    *,
    namespace: str = "",
    queue: str = "",
    before: Any = None,
    after: Any = None,
    reason: str = "",
    message: str = "",
    follows: str = "",
) -> AuditEntry:
    """A row for `write`.

    `before` and `after` are what the object looked like, as JSON; None where it was not there.

    Without a `reason` of its own it is done for the reason that the caller gave. `follows` names
    the queue whose deed this came from.
    """
    return AuditEntry(
        actor=by.name[:150],
        door=by.door.value,
        address=by.address[:64],
        request_id=by.request_id[:64],
        action=action,
        kind=kind,
        deeds=audit_area(action, kind).value,
        namespace=namespace,
        name=name[:253],
        queue_name=queue,
        before=before,
        after=after,
        reason=(reason or by.reason)[:1024],
        message=message,
        follows=follows,
    )


def consequence(
    deed: AuditEntry,
    queue: str,
    *,
    before: QueueState,
    after: QueueState,
    message: str,
) -> AuditEntry:
    """What a deed did to another queue: to be found there too, with who did it, and why."""
    return AuditEntry(
        actor=deed.actor,
        door=deed.door,
        address=deed.address,
        request_id=deed.request_id,
        action=deed.action,
        kind=deed.kind,
        deeds=deed.deeds,
        name=queue,
        queue_name=queue,
        before={queue: before.value},
        after={queue: after.value},
        reason=deed.reason,
        message=message,
        follows=deed.name,
    )


def write(entries: Sequence[AuditEntry]) -> None:
    """In the order in which things were done."""
    _NEW_ENTRY.insert(entries)
