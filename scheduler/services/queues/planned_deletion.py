"""Close a queue and delete it once it has drained.

The plan is stored and shown, can be taken back, and survives a restart. Only what was shown is ever
deleted. When the time comes, the same rules and the same rights count as for deleting by hand.
Where the queues are no longer those that were shown, the plan is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import DatabaseError, transaction
from django.utils import timezone

from scheduler import notify
from scheduler.admission.rules.queue_deletion import PROTECTED, check_delete, deletion_order
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import Forbidden, OutOfSight
from scheduler.domain.lifecycle import QueueCommand
from scheduler.domain.plans import listed
from scheduler.domain.queues import QueueState
from scheduler.models import PlannedDeletion, Queue
from scheduler.selectors.queues.facts import admission_scene
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.cluster.queue_writes import ClusterAway, are_queues_in_cluster
from scheduler.services.files.versions import Expected
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.queues.commands import (
    CommandFailed,
    CommandOutcome,
    QueueOrder,
    give_order,
)
from scheduler.services.queues.deletion import (
    delete_queue,
    refuse_unless_shown,
    require_to_delete,
)
from scheduler.services.queues.deletion_effects import Aftermath, aftermath_of
from scheduler.services.queues.transaction import TreeEdit, tree_transaction
from scheduler.services.records import audit
from scheduler.services.records.events import EventNote, record_events

logger = logging.getLogger(__name__)

# What passes by itself once a queue is closed. Anything else prevents for good that it is deleted.
PASSING = frozenset({"queue_not_closed", "has_podgroups", "has_allocated_pods", "has_jobs"})


@dataclass(frozen=True, slots=True)
class CloseThenDelete:
    """The queues that will be gone, children first, and the closing that begins it."""

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
    with tree_transaction(dry_run=dry_run):
        edit = TreeEdit(with_pods=True)
        require_to_delete(name, by, expected_version)
        doomed = deletion_order(name, edit.tree)
        _refuse_protected(name, edit)
        refuse_unless_shown(name, doomed, shown)
        aftermath = aftermath_of(doomed)
        closing = give_order(edit, QueueOrder(name, QueueCommand.CLOSE, reason), by)
        _refuse_if_never(name, cascade)
        _settle_closing(edit, name)
        with transaction.atomic():
            _write_down(name, doomed, by, reason)
        if not _blockers(name, cascade):
            _delete(PlannedDeletion.objects.get(queue__name=name))
        is_gone = not Queue.objects.filter(name=name).exists()
    message = _message(doomed, is_gone=is_gone)
    return CloseThenDelete(tuple(doomed), closing, aftermath, is_gone, message)


def _settle_closing(edit: TreeEdit, name: str) -> None:
    """What fails here is answered like any other command that fails. Nothing is kept of it."""
    try:
        edit.settle()
    except (DatabaseError, Rejected):
        raise
    except Exception as problem:
        logger.error("closing %s to delete it failed", name, exc_info=problem)
        raise CommandFailed(name, problem) from problem


def _refuse_protected(name: str, edit: TreeEdit) -> None:
    """Before it is closed: that would lead nowhere."""
    if name in PROTECTED:
        verdict = check_delete(name, edit.tree, edit.facts, cascade=True)
        raise Rejected(verdict.violations, by_state=True)


def _refuse_if_never(name: str, cascade: bool) -> None:
    """What no draining cures, looked for before anything is closed."""
    lasting = []
    for blocker in _blockers(name, cascade):
        if blocker.rule_id not in PASSING:
            lasting.append(blocker)
    if lasting:
        raise Rejected(lasting, by_state=True)


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
    note = EventNote("Queue", name, "PlanDeletion", f"{by.name}: {message}", queue=name)
    record_events([note], timezone.now())
    notify.queues_changed([name])


def _message(doomed: list[str], *, is_gone: bool) -> str:
    if is_gone:
        return f"Deleted {listed(doomed)}."
    return f"{doomed[-1]} is closed, and {listed(doomed)} will be deleted when drained."


def keep_queue(
    name: str,
    *,
    by: Actor,
    dry_run: bool = False,
    expected_version: Expected = None,
) -> bool:
    """Take the plan back; the queue stays closed.

    False if there was none. Raises `Queue.DoesNotExist`, `StaleVersion`.
    """
    with transaction.atomic():
        lock_tree()
        require_to_delete(name, by, expected_version)  # who may delete it may keep it
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
        _end_plan(planned, name, f"{by.name} keeps {name}: it will not be deleted.")
        transaction.set_rollback(dry_run)
    return True


def carry_out_deletions() -> int:
    """Delete what was planned and has drained. Returns how many plans are over, done or dropped."""
    closed = PlannedDeletion.objects.filter(queue__state=QueueState.CLOSED.value)
    due = list(closed.values_list("queue_id", flat=True))
    return sum(_carry_out(queue) for queue in due)


def _carry_out(queue: int) -> bool:
    if are_queues_in_cluster():
        return _carry_out_plan(queue)
    with transaction.atomic():
        lock_tree()
        # before the states, which deleting locks: a session has them in this order too
        alone_with_pods()
        return _carry_out_plan(queue)


def _carry_out_plan(queue: int) -> bool:
    plans = PlannedDeletion.objects.select_related("queue", "user")
    planned = plans.filter(queue=queue).first()
    return planned is not None and _delete(planned)


def _delete(planned: PlannedDeletion) -> bool:
    """Delete the queues, or drop the plan where that is no longer possible.

    False where the plan still waits.
    """
    name = planned.queue.name
    tree, _ = admission_scene()
    if set(deletion_order(name, tree)) != set(planned.queues):
        return _drop(planned, name, f"what is below it is no longer {listed(planned.queues)}.")
    if planned.user is None:
        return _drop(planned, name, f"the account of {planned.actor}, who asked for it, is gone.")
    try:
        delete_queue(name, cascade=True, by=_asker(planned))
    except ClusterAway:
        return False
    except Rejected as refusal:
        lasting = []
        for blocker in refusal.violations:
            if blocker.rule_id not in PASSING:
                lasting.append(blocker)
        if not lasting:
            return False
        return _drop(planned, name, lasting[0].message)
    except (Forbidden, OutOfSight) as refusal:
        return _drop(planned, name, f"{planned.actor} may no longer do that. {refusal}")
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


def _drop(planned: PlannedDeletion, name: str, why: str) -> bool:
    _end_plan(planned, name, f"{name} was not deleted: {why}")
    return True


def _end_plan(planned: PlannedDeletion, name: str, message: str) -> None:
    planned.delete()
    note = EventNote("Queue", name, "DropDeletion", message, queue=name, warning=True)
    record_events([note], timezone.now())
    notify.queues_changed([name])
