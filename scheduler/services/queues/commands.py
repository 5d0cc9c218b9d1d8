"""Orders to queues, kept as rows: written down first, then carried out exactly once, in order, with the result on the row.

An order is written and carried out in one transaction, together with every earlier one for the same queue that is still open: whoever is
told that it failed need not fear that it is carried out later. Rows that another version left open are taken up by `execute_pending`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db import transaction
from django.utils import timezone

from scheduler import notify
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import Permission
from scheduler.domain.lifecycle import NotAllowed, QueueCommand
from scheduler.domain.plans import Plan, plan
from scheduler.models import Command, Queue
from scheduler.selectors.queues.loads import queue_loads
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor, Door
from scheduler.services.files.versions import Expected, check_queue_version
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.queues.states import read_tree
from scheduler.services.queues.transaction import TreeWork
from scheduler.services.records.events import EventNote

logger = logging.getLogger(__name__)

_Result = tuple[str, str, dict[str, Any]]  # of an order: its result, the message, the effect


class CommandFailed(Exception):
    """The order could not be carried out although nothing forbids it; it stays on record as Failed."""


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """What came of an order, or would come of it: the API's answer to a command, without the objects."""

    queue: str
    action: QueueCommand
    message: str
    changed: bool
    queues: list[dict[str, str]] = field(default_factory=list)
    podgroups: dict[str, int] = field(default_factory=lambda: {"running": 0, "waiting": 0})
    pods: dict[str, int] = field(default_factory=lambda: {"running": 0, "waiting": 0})
    users: list[str] = field(default_factory=list)
    warnings: list[dict[str, str]] = field(default_factory=list)
    command: Command | None = None  # None for a dry run


def plan_command(name: str, command: QueueCommand) -> CommandOutcome:
    """What the command would do now, without doing it. Raises `Queue.DoesNotExist` and `NotAllowed`."""
    if not Queue.objects.filter(name=name).exists():
        raise Queue.DoesNotExist(f"There is no queue {name}.")
    return _outcome(_planned(name, command))


def command_queue(
    name: str, command: QueueCommand, *, by: Actor = SYSTEM, reason: str = "", target_uid: str = "", dry_run: bool = False,
    expected_version: Expected = None,
) -> CommandOutcome:  # fmt: skip
    """Open, close, suspend or resume a queue, and write down who asked, through which door, why, and what came of it.

    Raises `Queue.DoesNotExist`, `Rejected` where the uid is another queue's, `StaleVersion`, and `NotAllowed` where the states do not
    permit it; a refusal stays on record. An order that changes nothing is an answer, not an error.
    """
    _check_uid(name, str(_found(name).uid), target_uid)
    access.require(by, Permission.OPERATE, name, f"{command.verb} it")
    if dry_run:
        check_queue_version(_found(name), expected_version)
        return plan_command(name, command)
    with (
        transaction.atomic()
    ):  # one: an order that could not be carried out, and was answered so, is not carried out later
        row = write_down(
            name,
            command,
            by=by,
            reason=reason,
            target_uid=target_uid,
            expected_version=expected_version,
        )
        row = execute(row)
    return _answer(row)


def write_down(
    name: str,
    command: QueueCommand,
    *,
    by: Actor,
    reason: str = "",
    target_uid: str = "",
    expected_version: Expected = None,
) -> Command:
    """The order as an open row. The tree is locked meanwhile, so that the rows of a queue are numbered in the order of their commits."""
    with transaction.atomic():
        lock_tree()
        queue = _found(name)
        _check_uid(name, str(queue.uid), target_uid)
        check_queue_version(queue, expected_version)
        row = _order(name, str(queue.uid), command, by, reason)
        row.save()
        return row


def _order(name: str, uid: str, command: QueueCommand, by: Actor, reason: str) -> Command:
    return Command(
        action=command.value,
        target_kind="Queue",
        target_name=name,
        target_uid=uid,
        actor=by.name,
        door=by.door.value,
        reason=reason[:1024],
        request_id=by.request_id[:64],
        address=by.address[:64],
    )


def _found(name: str) -> Queue:
    return Queue.objects.only(
        "id", "uid", "name", "resource_version", "updated_by", "updated_at"
    ).get(name=name)


def _check_uid(name: str, uid: str, target_uid: str) -> None:
    if target_uid and target_uid != uid:
        message = f"The uid {target_uid[:64]} is not that of the queue {name}, which has {uid}: it may have been deleted and made anew."
        raise Rejected(
            [
                Violation(
                    "uid_mismatch",
                    name,
                    "target.uid",
                    message,
                    "leave the uid out, or read the queue again",
                )
            ]
        )


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """One of many orders that are given at once."""

    name: str
    command: QueueCommand
    reason: str = ""
    target_uid: str = ""


def command_queues(
    orders: Sequence[QueueOrder], *, by: Actor = SYSTEM, dry_run: bool = False
) -> list[CommandOutcome | Exception]:
    """Many at once, in their order: what came of each, or what `command_queue` would have raised. All are on record, or none.

    In a dry run each is answered as if it were the only one.
    """
    with transaction.atomic():
        work = TreeWork(only_life=True, with_pods=True)
        work.expect_many()
        _carry_out_open()
        results = [_given(work, order, by, dry_run) for order in orders]
        if not dry_run:
            work.settle()
    return results


def _given(
    work: TreeWork, order: QueueOrder, by: Actor, dry_run: bool
) -> CommandOutcome | Exception:
    try:
        _check_order(work, order, by)
        if dry_run:
            return _outcome(_planned_in(work, order.name, order.command))
        row = order_in(work, order.name, order.command, by=by, reason=order.reason)
        if row.result == Command.REFUSED:
            work.keep_order(row)
            work.note(_refusal_note(row))
        return _answer(row)
    except (
        Queue.DoesNotExist,
        Rejected,
        NotAllowed,
        access.Forbidden,
        access.OutOfSight,
        CommandFailed,
    ) as refusal:
        return refusal


def give_in(work: TreeWork, order: QueueOrder, by: Actor) -> CommandOutcome:
    """An order as part of some work at the tree. Raises what `command_queue` raises, and is on record only where it is not refused."""
    _check_order(work, order, work.seen_by(by))
    return _answer(order_in(work, order.name, order.command, by=by, reason=order.reason))


def _check_order(work: TreeWork, order: QueueOrder, by: Actor) -> None:
    if order.name not in work.tree:
        raise Queue.DoesNotExist(f"There is no queue {order.name}.")
    _check_uid(order.name, work.uid_of(order.name), order.target_uid)
    access.require(by, Permission.OPERATE, order.name, f"{order.command.verb} it")


def order_in(
    work: TreeWork, name: str, command: QueueCommand, *, by: Actor, reason: str = ""
) -> Command:
    """The order's row with its result, to be written, unless it is refused, when the work is settled."""
    row = _order(name, work.uid_of(name), command, by, reason)
    row.executed_at = timezone.now()
    try:  # nothing is done before all of it is planned, so that there is nothing to undo
        row.result, row.message, row.effect = _attempt(row, work)
    except Exception as problem:
        row.result, row.message, row.effect = _failure(row, problem)
    if row.result != Command.REFUSED:
        work.keep_order(row)
    return row


def execute(row: Command) -> Command:
    """Carry out this order, and before it every earlier open one for the same queue. The row with its result."""
    with transaction.atomic():
        lock_tree()
        alone_with_pods()
        _carry_out_open(target_name=row.target_name, up_to=row.pk)
    row.refresh_from_db()
    return row


def execute_pending() -> int:
    """Carry out whatever a process that died has left open. How many orders that were."""
    if not Command.objects.filter(result=Command.PENDING, target_kind="Queue").exists():
        return 0
    with transaction.atomic():
        lock_tree()
        alone_with_pods()
        return _carry_out_open()


def _carry_out_open(target_name: str = "", up_to: int | None = None) -> int:
    rows = (
        Command.objects.select_for_update()
        .filter(result=Command.PENDING, target_kind="Queue")
        .order_by("id")
    )
    if target_name:
        rows = rows.filter(target_name=target_name, pk__lte=up_to)
    opened = list(rows)
    for row in opened:
        _carry_out(row)
    return len(opened)


def _carry_out(row: Command) -> None:
    """One order with its result, in a savepoint: what fails leaves nothing behind but the row that says so."""
    try:
        with transaction.atomic():
            work = TreeWork(
                only_life=True, with_pods=True
            )  # what is planned is what will be written
            row.result, row.message, row.effect = _attempt(row, work)
            if row.result == Command.REFUSED:
                work.note(_refusal_note(row))
            work.settle()
    except Exception as problem:
        row.result, row.message, row.effect = _failure(row, problem)
    Command.objects.filter(pk=row.pk, result=Command.PENDING).update(
        result=row.result, message=row.message, effect=row.effect, executed_at=timezone.now()
    )
    notify.queues_changed([row.target_name])


def _failure(row: Command, problem: Exception) -> _Result:
    logger.error("command %s (%s) failed", row.pk or row.uid, row, exc_info=problem)
    message = f"{row.target_name} could not be changed: an unexpected error ({type(problem).__name__}) was written to the log."
    return Command.FAILED, message, {}


def _attempt(row: Command, work: TreeWork) -> _Result:
    try:
        _same_queue(row, work)
        planned = _planned_in(work, row.target_name, QueueCommand(row.action))
    except NotAllowed as refusal:
        return (
            Command.REFUSED,
            refusal.message,
            {"ruleId": refusal.rule_id, "first": refusal.first, "fix": refusal.fix},
        )
    if planned.wish is None:
        return Command.NO_OP, planned.message, _effect(planned)
    work.carry_out(planned, row.actor)
    _audit(row, planned, work)
    return Command.DONE, planned.message, _effect(planned)


def _refusal_note(row: Command) -> EventNote:
    return EventNote(
        "Queue", row.target_name, row.action, row.message, queue=row.target_name, warning=True
    )


def _audit(row: Command, planned: Plan, work: TreeWork) -> None:
    turned = planned.state_changes
    deed = work.record(
        Actor(row.actor, Door(row.door), address=row.address, request_id=row.request_id),
        row.action,
        row.target_name,
        before={change.name: change.before.state.value for change in turned},
        after={change.name: change.after.state.value for change in turned},
        reason=row.reason,
        message=planned.message,
    )
    work.record_consequences(deed, [change for change in turned if change.name != row.target_name])


def _same_queue(row: Command, work: TreeWork) -> None:
    if row.target_name not in work.tree or work.uid_of(row.target_name) != row.target_uid:
        message = f"The queue {row.target_name} that this was meant for is no longer there."
        raise NotAllowed(message, rule_id="queue_not_found", queue=row.target_name)


def _planned(name: str, command: QueueCommand) -> Plan:
    stored = read_tree()
    affected = [name, *(queue.name for queue in stored.tree.descendants(name))]
    return plan(stored.tree, name, command, loads=queue_loads(affected), unknown=stored.unknown)


def _planned_in(work: TreeWork, name: str, command: QueueCommand) -> Plan:
    return plan(work.tree, name, command, loads=work.loads(name), unknown=work.unknown)


def _effect(planned: Plan) -> dict[str, Any]:
    return {
        "changed": planned.changed,
        "queues": [
            {"name": change.name, "from": change.before.state.value, "to": change.after.state.value}
            for change in planned.state_changes
        ],
        "podgroups": {"running": planned.load.running, "waiting": planned.load.waiting},
        "pods": {"running": planned.load.pods_running, "waiting": planned.load.pods_waiting},
        "users": sorted(planned.load.users),
        "warnings": [asdict(warning) for warning in planned.warnings],
    }


def _outcome(planned: Plan) -> CommandOutcome:
    return CommandOutcome(
        queue=planned.queue, action=planned.command, message=planned.message, **_effect(planned)
    )


def _answer(row: Command) -> CommandOutcome:
    if row.result == Command.REFUSED:
        raise NotAllowed(
            row.message,
            queue=row.target_name,
            rule_id=row.effect["ruleId"],
            first=row.effect["first"],
            fix=row.effect["fix"],
        )
    if row.result == Command.FAILED:
        raise CommandFailed(row.message)
    return CommandOutcome(
        queue=row.target_name,
        action=QueueCommand(row.action),
        message=row.message,
        command=row,
        **row.effect,
    )
