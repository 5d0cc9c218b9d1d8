"""Close a queue and delete it once it has drained: an intention that is stored, shown, can be taken
back, and survives a restart.

Only what was shown is ever deleted. When the time comes the same rules and the same rights count as
for deleting by hand; whatever has changed meanwhile drops the intention instead of stretching it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import DatabaseError, transaction
from django.utils import timezone

from scheduler import notify
from scheduler.admission.rules.queues import PROTECTED, check_delete, deletion_order
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import Forbidden, OutOfSight
from scheduler.domain.lifecycle import QueueCommand
from scheduler.domain.plans import listed
from scheduler.domain.queues import ROOT, QueueState
from scheduler.models import PlannedDeletion, Queue
from scheduler.selectors.queues.facts import admission_scene
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.files.versions import Expected, check_queue_version
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.queues.commands import (
    CommandFailed,
    CommandOutcome,
    QueueOrder,
    give_order,
)
from scheduler.services.queues.create_update import delete_queue, refuse_unless_shown
from scheduler.services.queues.deletion_effects import Aftermath, aftermath_of
from scheduler.services.queues.transaction import TreeEdit
from scheduler.services.records import audit
from scheduler.services.records.events import EventNote, record_events

logger = logging.getLogger(__name__)

# What passes by itself once a queue is closed; anything else stands against deleting it for good.
PASSING = frozenset({"queue_not_closed", "has_podgroups", "has_allocated_pods", "has_jobs"})


@dataclass(frozen=True, slots=True)
class CloseThenDelete:
    """What closing and deleting comes to: the queues that will be gone, children first, and the
    close that begins it.
    """

    queues: tuple[str, ...]
    closing: CommandOutcome
    aftermath: Aftermath
    is_gone: bool
    message: str


def close_then_delete(
    name: str,
    *,
    shown: Iterable[str] | None = None,
    cascade: bool = True,
    by: Actor,
    reason: str = "",
    dry_run: bool = False,
    expected_version: Expected = None,
) -> CloseThenDelete:
    """Close the queue.

    Delete it with all below it now if nothing is left to drain, else when that is done.

    `shown` are the queues that the caller was shown: others are never deleted; without `cascade` a
    queue with others below it is refused. Raises `Queue.DoesNotExist`, `StaleVersion`,
    `NotAllowed`, and `Rejected` with what draining does not cure.
    """
    with transaction.atomic():
        edit = TreeEdit(with_pods=True)
        _require_to_delete(name, by, expected_version)
        doomed = deletion_order(name, edit.tree)
        _refuse_protected(name, edit)
        refuse_unless_shown(name, doomed, shown)
        aftermath = aftermath_of(doomed)
        closing = give_order(edit, QueueOrder(name, QueueCommand.CLOSE, reason), by)
        _settle_closing(edit, name)
        blockers = _blockers(name, cascade)
        lasting = [blocker for blocker in blockers if blocker.rule_id not in PASSING]
        if lasting:
            raise Rejected(lasting, by_state=True)
        _write_down(name, doomed, by, reason)
        if not blockers:
            _delete(PlannedDeletion.objects.get(queue__name=name))
        is_gone = not Queue.objects.filter(name=name).exists()
        transaction.set_rollback(dry_run)
    return CloseThenDelete(
        tuple(doomed), closing, aftermath, is_gone, _message(doomed, is_gone=is_gone)
    )


def _settle_closing(edit: TreeEdit, name: str) -> None:
    """What fails here is answered like any other command that fails. Nothing is kept of it."""
    try:
        edit.settle()
    except DatabaseError:
        raise
    except Exception as problem:
        logger.error("closing %s to delete it failed", name, exc_info=problem)
        raise CommandFailed(name, problem) from problem


def _require_to_delete(name: str, by: Actor, expected_version: Expected) -> None:
    queue = Queue.objects.select_related("parent").get(name=name)
    access.require_to_delete_queue(by, name, queue.parent.name if queue.parent else ROOT)
    check_queue_version(queue, expected_version)


def _refuse_protected(name: str, edit: TreeEdit) -> None:
    """Before it is closed: that would lead nowhere."""
    if name in PROTECTED:
        verdict = check_delete(name, edit.tree, edit.facts, cascade=True)
        raise Rejected(verdict.violations, by_state=True)


def _blockers(name: str, cascade: bool) -> tuple[Violation, ...]:
    tree, facts = admission_scene()
    return check_delete(name, tree, facts, cascade=cascade).violations


def _write_down(name: str, doomed: list[str], by: Actor, reason: str) -> None:
    values = {
        "queues": doomed,
        "user": by.user,
        "actor": by.name[:150],
        "door": by.door.value,
        "address": by.address[:64],
        "request_id": by.request_id[:64],
        "reason": reason[:1024],
    }
    PlannedDeletion.objects.update_or_create(queue=Queue.objects.get(name=name), defaults=values)
    message = f"{listed(doomed)} will be deleted when drained."
    audit.record(
        by,
        "PlanDeletion",
        "Queue",
        name,
        queue=name,
        after={"queues": doomed},
        reason=reason,
        message=message,
    )
    record_events(
        [EventNote("Queue", name, "PlanDeletion", f"{by.name}: {message}", queue=name)],
        timezone.now(),
    )
    notify.queues_changed([name])


def _message(doomed: list[str], *, is_gone: bool) -> str:
    if is_gone:
        return f"Deleted {listed(doomed)}."
    return f"{doomed[-1]} is closed, and {listed(doomed)} will be deleted when drained."


def keep_queue(
    name: str, *, by: Actor, dry_run: bool = False, expected_version: Expected = None
) -> bool:
    """Take the intention back; the queue stays closed.

    False if there was none. Raises `Queue.DoesNotExist`, `StaleVersion`.
    """
    with transaction.atomic():
        lock_tree()
        _require_to_delete(name, by, expected_version)  # who may delete it may keep it
        planned = PlannedDeletion.objects.filter(queue__name=name).first()
        if planned is None:
            return False
        audit.record(
            by,
            "KeepQueue",
            "Queue",
            name,
            queue=name,
            before={"queues": planned.queues},
            message=f"{name} is kept.",
        )
        _drop(planned, name, f"{by.name} keeps {name}: it will not be deleted.")
        transaction.set_rollback(dry_run)
    return True


def carry_out_deletions() -> int:
    """Delete what was planned and has drained. How many plans came to an end, whichever."""
    due = PlannedDeletion.objects.filter(queue__state=QueueState.CLOSED.value).values_list(
        "queue_id", flat=True
    )
    return sum(_carry_out(queue) for queue in list(due))


def _carry_out(queue: int) -> bool:
    with transaction.atomic():
        lock_tree()
        # before the states, which deleting locks: a session has them in this order too
        alone_with_pods()
        planned = (
            PlannedDeletion.objects.select_related("queue", "user").filter(queue=queue).first()
        )
        return planned is not None and _delete(planned)


def _delete(planned: PlannedDeletion) -> bool:
    """Whether the plan came to an end: by deleting, or by being dropped because things are no
    longer as they were shown.
    """
    name = planned.queue.name
    doomed = deletion_order(name, admission_scene()[0])
    if set(doomed) != set(planned.queues):
        return _drop(
            planned,
            name,
            f"{name} was not deleted: what is below it is no longer {listed(planned.queues)}.",
        )
    if planned.user is None:
        return _drop(
            planned,
            name,
            f"{name} was not deleted: the account of {planned.actor}, who asked for it, is gone.",
        )
    try:
        delete_queue(name, cascade=True, by=_asker(planned))
    except Rejected as refusal:
        lasting = [blocker for blocker in refusal.violations if blocker.rule_id not in PASSING]
        return bool(lasting) and _drop(
            planned, name, f"{name} was not deleted: {lasting[0].message}"
        )
    except (Forbidden, OutOfSight) as refusal:
        return _drop(
            planned,
            name,
            f"{name} was not deleted: {planned.actor} may no longer do that. {refusal}",
        )
    return True


def _asker(planned: PlannedDeletion) -> Actor:
    return Actor(
        planned.actor,
        Door(planned.door),
        planned.user,
        planned.address,
        planned.request_id,
        reason=planned.reason,
    )


def _drop(planned: PlannedDeletion, name: str, message: str) -> bool:
    planned.delete()
    record_events(
        [EventNote("Queue", name, "DropDeletion", message, queue=name, warning=True)],
        timezone.now(),
    )
    notify.queues_changed([name])
    return True
