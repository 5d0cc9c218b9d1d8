"""Commands to queues: open, close, suspend, resume. Whoever asks, they are given here.

A command is one transaction. The tree is locked once; the rights are asked once; the command's row,
the states that follow, the audit entries, the events and the news are written once. A page, the API
and `vcctl` come through `command_queue` and `command_queues`. A file and an edited `spec.state` are
part of a larger change of the tree, and come through `give_order` and `carry_out_order` with the
transaction that they have begun.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import Permission
from scheduler.domain.lifecycle import NotAllowed, QueueCommand
from scheduler.domain.plans import Plan, plan
from scheduler.models import Command, Queue
from scheduler.outages import in_a_line
from scheduler.selectors.queues.surroundings import Around
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.cluster.queue_writes import SENT_TO_CLUSTER, are_queues_in_cluster
from scheduler.services.files.versions import Expected, StaleVersion, check_queue_version
from scheduler.services.queues.transaction import TreeEdit
from scheduler.services.records.events import EventNote

logger = logging.getLogger(__name__)


class CommandFailed(Exception):
    """An unexpected error: nothing was changed."""

    def __init__(self, queue: str, problem: Exception) -> None:
        super().__init__(
            f"{queue} could not be changed: an unexpected error ({type(problem).__name__}) "
            "was written to the log."
        )


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """A command with its target.

    `target_uid` and `expected_version` say which queue the caller has seen.
    """

    name: str
    command: QueueCommand
    reason: str = ""
    target_uid: str = ""
    expected_version: Expected = None


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """What a command did, or would do: the API's answer to a command, without the objects."""

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


Given = CommandOutcome | Exception
"""What came of an order, or why it was refused."""

_FORBIDDEN = (access.Forbidden, access.OutOfSight)
_REFUSALS = (NotAllowed, Queue.DoesNotExist, Rejected, StaleVersion, *_FORBIDDEN)


def command_queue(
    name: str,
    command: QueueCommand,
    *,
    by: Actor = SYSTEM,
    reason: str = "",
    target_uid: str = "",
    dry_run: bool = False,
    expected_version: Expected = None,
) -> CommandOutcome:
    """Open, close, suspend or resume one queue.

    Who asked, why, and what came of it stay on record.

    Raises `Forbidden`, `OutOfSight`, `Queue.DoesNotExist`, `Rejected` where the uid is another
    queue's, `StaleVersion`, `NotAllowed` where the states do not permit it (which stays on record),
    and `CommandFailed`. A command that changes nothing is an answer, not an error.
    """
    order = QueueOrder(name, command, reason, target_uid, expected_version)
    (given,) = command_queues([order], by=by, dry_run=dry_run)
    if isinstance(given, Exception):
        raise given
    return given


def command_queues(
    orders: Sequence[QueueOrder],
    *,
    by: Actor = SYSTEM,
    dry_run: bool = False,
    needs_all_rights: bool = False,
) -> list[Given]:
    """Give many orders, one after the other.

    The answer has for each what came of it, or what `command_queue` would have raised.

    One that is refused stops no other, unless `needs_all_rights`: then `Forbidden` or `OutOfSight`
    is raised, and nothing is done. A dry run answers each as if it were the only one; it locks
    nothing.
    """
    by = replace(by, access=access.access_for(by))
    if dry_run:
        return _plan_orders(orders, by, needs_all_rights)
    if are_queues_in_cluster():
        return _send_orders(orders, by, needs_all_rights)
    with transaction.atomic():
        edit = _edit_for(orders)
        try:
            # an error leaves nothing behind but the rows that tell of it
            with transaction.atomic():
                given = []
                for order in orders:
                    given.append(_give_and_record(edit, order, by, needs_all_rights))
                edit.settle()
        except _FORBIDDEN:
            raise
        except Exception as problem:
            _log_failure("commands to queues failed", orders, problem)
            given = _record_failures(orders, by, problem)
    return given


def _send_orders(orders: Sequence[QueueOrder], by: Actor, needs_all_rights: bool) -> list[Given]:
    """To the API server of a real cluster, each for itself."""
    edit = _edit_for(orders)
    given = [_give_and_record(edit, order, by, needs_all_rights) for order in orders]
    edit.settle_in_cluster()
    return [_answered(edit, order, each) for order, each in zip(orders, given, strict=True)]


def _answered(edit: TreeEdit, order: QueueOrder, given: Given) -> Given:
    if isinstance(given, Exception):
        return given
    failure = edit.failures.get(order.name)
    if failure is not None:
        return failure
    if given.changed and not edit.is_shown:
        message = f"The order to {order.command.verb} {order.name} was given. {SENT_TO_CLUSTER}"
        return replace(given, message=message)
    return given


def _edit_for(orders: Sequence[QueueOrder], *, locks: bool = True) -> TreeEdit:
    edit = TreeEdit(only_life=True, with_pods=True, locks=locks)
    if len(orders) == 1:
        edit.expect_one(Around(frozenset({orders[0].name})))
    else:
        edit.expect_many()
    return edit


def _plan_orders(orders: Sequence[QueueOrder], by: Actor, needs_all_rights: bool) -> list[Given]:
    edit = _edit_for(orders, locks=False)
    planned: list[Given] = []
    for order in orders:
        planned.append(_planned_outcome(edit, order, by, needs_all_rights))
    return planned


def _planned_outcome(edit: TreeEdit, order: QueueOrder, by: Actor, needs_all_rights: bool) -> Given:
    try:
        _check(edit, order, by)
        return _outcome(_planned(edit, order))
    except _REFUSALS as refusal:
        return _refused(refusal, needs_all_rights)


def _give_and_record(edit: TreeEdit, order: QueueOrder, by: Actor, needs_all_rights: bool) -> Given:
    try:
        return give_order(edit, order, by)
    except NotAllowed as refusal:
        _record_refusal(edit, order, by, refusal)
        return refusal
    except _REFUSALS as refusal:
        return _refused(refusal, needs_all_rights)


def _refused(refusal: Exception, needs_all_rights: bool) -> Exception:
    if needs_all_rights and isinstance(refusal, _FORBIDDEN):
        raise refusal
    return refusal


def give_order(edit: TreeEdit, order: QueueOrder, by: Actor) -> CommandOutcome:
    """An order as part of a change of the tree.

    Raises what `command_queue` raises; a refusal is not on record.
    """
    _check(edit, order, by)
    return carry_out_order(edit, order, by)


def _check(edit: TreeEdit, order: QueueOrder, by: Actor) -> None:
    """Rights first: to whoever may not see the queue, it is not there."""
    access.require(by, Permission.OPERATE, order.name, f"{order.command.verb} it")
    if order.name not in edit.tree:
        raise Queue.DoesNotExist(f"There is no queue {order.name}.")
    if order.target_uid:
        _check_uid(edit, order)
    if order.expected_version is not None:
        check_queue_version(Queue.objects.get(name=order.name), order.expected_version)


def _check_uid(edit: TreeEdit, order: QueueOrder) -> None:
    uid = edit.uid_of(order.name)
    if order.target_uid == uid:
        return
    message = (
        f"The uid {order.target_uid[:64]} is not that of the queue {order.name}, which has {uid}: "
        "it may have been deleted and created again."
    )
    fix = "leave the uid out, or read the queue again"
    raise Rejected([Violation("uid_mismatch", order.name, "target.uid", message, fix)])


def carry_out_order(edit: TreeEdit, order: QueueOrder, by: Actor) -> CommandOutcome:
    """The same for a caller who has been checked already.

    Raises `NotAllowed`; then nothing has been changed.
    """
    planned = _planned(edit, order)
    result = Command.NO_OP
    if planned.changed:
        result = Command.DONE
        edit.carry_out(planned, by.name)
        _record_deed(edit, order, by, planned)
    row = _command_row(edit, order, by, result, planned.message, _effect(planned))
    edit.keep_order(row)
    return _outcome(planned, row)


def _planned(edit: TreeEdit, order: QueueOrder) -> Plan:
    loads = edit.loads(order.name)
    return plan(edit.tree, order.name, order.command, loads=loads, unknown=edit.unknown)


# What is kept on record


def _command_row(
    edit: TreeEdit, order: QueueOrder, by: Actor, result: str, message: str, effect: dict[str, Any]
) -> Command:
    return Command(
        action=order.command.value,
        target_kind="Queue",
        target_name=order.name,
        target_uid=edit.uid_of(order.name),
        actor=by.name[:150],
        door=by.door.value,
        reason=order.reason[:1024],
        request_id=by.request_id[:64],
        address=by.address[:64],
        result=result,
        message=message,
        effect=effect,
        executed_at=timezone.now(),
    )


def _record_deed(edit: TreeEdit, order: QueueOrder, by: Actor, planned: Plan) -> None:
    turned = planned.state_changes
    before = {}
    for change in turned:
        before[change.name] = change.before.state.value
    deed = edit.record(
        by,
        order.command.value,
        order.name,
        before=before,
        after={change.name: change.after.state.value for change in turned},
        reason=order.reason,
        message=planned.message,
    )
    edit.record_consequences(deed, [change for change in turned if change.name != order.name])


def _record_refusal(edit: TreeEdit, order: QueueOrder, by: Actor, refusal: NotAllowed) -> None:
    effect = {"ruleId": refusal.rule_id, "first": refusal.first, "fix": refusal.fix}
    row = _command_row(edit, order, by, Command.REFUSED, refusal.message, effect)
    edit.keep_order(row)
    action = order.command.value
    edit.note(
        EventNote("Queue", order.name, action, refusal.message, queue=order.name, warning=True)
    )


def _record_failures(orders: Sequence[QueueOrder], by: Actor, problem: Exception) -> list[Given]:
    """In the transaction that still has the tree to itself.

    What was decided in memory is forgotten.
    """
    edit = _edit_for(orders)
    given: list[Given] = []
    for order in orders:
        given.append(_recorded_failure(edit, order, by, problem))
    try:
        with transaction.atomic():
            edit.settle()
    except Exception as again:
        # The answer is the same: nothing was changed. It is only not on record.
        _log_failure("the failure could not be recorded", orders, again)
    return given


def _log_failure(what: str, orders: Sequence[QueueOrder], problem: Exception) -> None:
    """A database that is away or full is no mistake of ours, so nobody needs a traceback."""
    if isinstance(problem, (OperationalError, InterfaceError)):
        logger.warning("%s: %s: %s", what, _in_words(orders), in_a_line(problem))
    else:
        logger.error("%s: %s", what, _in_words(orders), exc_info=problem)


def _recorded_failure(
    edit: TreeEdit, order: QueueOrder, by: Actor, problem: Exception
) -> Exception:
    try:
        _check(edit, order, by)
    except _REFUSALS as refusal:
        return refusal
    failure = CommandFailed(order.name, problem)
    edit.keep_order(_command_row(edit, order, by, Command.FAILED, str(failure), {}))
    return failure


def _in_words(orders: Sequence[QueueOrder]) -> str:
    return ", ".join(f"{order.command.verb} {order.name}" for order in orders)


# The answer


def _outcome(planned: Plan, row: Command | None = None) -> CommandOutcome:
    effect = _effect(planned)
    return CommandOutcome(planned.queue, planned.command, planned.message, command=row, **effect)


def _effect(planned: Plan) -> dict[str, Any]:
    load = planned.load
    queues = []
    for change in planned.state_changes:
        queues.append(
            {"name": change.name, "from": change.before.state.value, "to": change.after.state.value}
        )
    return {
        "changed": planned.changed,
        "queues": queues,
        "podgroups": {"running": load.running, "waiting": load.waiting},
        "pods": {"running": load.pods_running, "waiting": load.pods_waiting},
        "users": sorted(load.users),
        "warnings": [asdict(warning) for warning in planned.warnings],
    }
