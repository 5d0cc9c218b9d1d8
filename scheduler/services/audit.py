"""Write down what was done: one row for each write through any door, in the transaction that makes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler.models import AuditEntry
from scheduler.models.prepared import PreparedInsert
from scheduler.services.actors import Actor

_NEW_ENTRY = PreparedInsert(AuditEntry)


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
) -> AuditEntry:
    """A row for `write`. `before` and `after` are what the object looked like, as JSON; None where it was not there."""
    return AuditEntry(
        actor=by.name[:150],
        door=by.door.value,
        address=by.address[:64],
        request_id=by.request_id[:64],
        action=action,
        kind=kind,
        namespace=namespace,
        name=name[:253],
        queue_name=queue,
        before=before,
        after=after,
        reason=reason[:1024],
        message=message,
    )


def write(entries: Sequence[AuditEntry]) -> None:
    """In the order in which things were done."""
    _NEW_ENTRY.insert(entries)
