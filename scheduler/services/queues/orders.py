"""Orders that name their target: the bus Command of a manifest, or a line of `commands/`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from scheduler.admission.reading.cluster import CommandManifest, read_command
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.access import Permission
from scheduler.domain.jobs.commands import COMMANDS, NotPossible
from scheduler.domain.jobs.policies import ACTION_NAMES, JobAction
from scheduler.domain.lifecycle import QueueCommand, command_named
from scheduler.models import Job, Queue
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.files.merge import readable
from scheduler.services.jobs.submit import JobCommandResult, command_job
from scheduler.services.queues import commands
from scheduler.services.queues.commands import CommandOutcome, QueueOrder
from scheduler.services.queues.transaction import TreeEdit


@dataclass(frozen=True, slots=True)
class Ordered:
    """What came of an order to a queue, or to a job; exactly one of them is there."""

    order: CommandManifest
    queue: CommandOutcome | None = None
    job: JobCommandResult | None = None
    notices: tuple[Notice, ...] = ()

    @property
    def changed(self) -> bool:
        outcome = self.queue or self.job
        return bool(outcome and outcome.changed)

    @property
    def message(self) -> str:
        outcome = self.queue or self.job
        if outcome:
            return outcome.message
        return ""


def give_order(manifest: object, *, by: Actor = SYSTEM, dry_run: bool = False) -> Ordered:
    """Carry out a Command object.

    Raises `Rejected` for an unknown action or target and for a uid that is not the target's, and
    what the command itself raises.
    """
    (ordered,) = give_orders([manifest], by=by, dry_run=dry_run)
    if isinstance(ordered, Exception):
        raise ordered
    return ordered


def give_order_in(edit: TreeEdit, manifest: object, by: Actor) -> Ordered:
    """An order to a queue as part of an edit of the tree."""
    read = _read(manifest)
    try:
        order = _queue_order(read.order)
        return read.to_queue(commands.give_order(edit, order, edit.seen_by(by)))
    except (Queue.DoesNotExist, access.OutOfSight):
        raise Rejected([_no_target("queue", read.order.name)]) from None


def is_for_job(manifest: object) -> bool:
    """As far as can be made out in whatever came."""
    order = read_command(manifest).value
    return order is not None and order.kind == "Job"


def give_orders(
    manifests: Iterable[object],
    *,
    by: Actor = SYSTEM,
    dry_run: bool = False,
) -> list[Ordered | Exception]:
    """Many at once, in their order: what came of each, or what `give_order` would have raised.

    Those to queues share a look at the tree.
    """
    results: list[Ordered | Exception] = []
    for for_jobs, some in groupby(manifests, is_for_job):
        if for_jobs:
            give = _to_jobs
        else:
            give = _to_queues
        results += give(list(some), by, dry_run)
    return results


def _to_jobs(manifests: list[object], by: Actor, dry_run: bool) -> list[Ordered | Exception]:
    return [_alone(manifest, by, dry_run) for manifest in manifests]


def _alone(manifest: object, by: Actor, dry_run: bool) -> Ordered | Exception:
    try:
        read = _read(manifest)
        return read.to_job(_order_job(read.order, by, dry_run))
    except (Rejected, NotPossible, access.Forbidden) as refusal:
        return refusal


def _to_queues(manifests: list[object], by: Actor, dry_run: bool) -> list[Ordered | Exception]:
    read = [_queue_order_or_refusal(manifest) for manifest in manifests]
    orders = []
    for pair in read:
        if not isinstance(pair, Rejected):
            orders.append(pair[1])
    outcomes = iter(commands.command_queues(orders, by=by, dry_run=dry_run) if orders else ())
    answers: list[Ordered | Exception] = []
    for pair in read:
        if isinstance(pair, Rejected):
            answers.append(pair)
        else:
            answers.append(_ordered(pair[0], next(outcomes)))
    return answers


def _queue_order_or_refusal(manifest: object) -> tuple[_Read, QueueOrder] | Rejected:
    try:
        read = _read(manifest)
        return read, _queue_order(read.order)
    except Rejected as refusal:
        return refusal


def _ordered(read: _Read, outcome: CommandOutcome | Exception) -> Ordered | Exception:
    if isinstance(outcome, (Queue.DoesNotExist, access.OutOfSight)):
        return Rejected([_no_target("queue", read.order.name)])
    if isinstance(outcome, Exception):
        return outcome
    return read.to_queue(outcome)


@dataclass(frozen=True, slots=True)
class _Read:
    order: CommandManifest
    notices: tuple[Notice, ...]

    def to_queue(self, outcome: CommandOutcome) -> Ordered:
        return Ordered(self.order, queue=outcome, notices=self.notices)

    def to_job(self, result: JobCommandResult) -> Ordered:
        return Ordered(self.order, job=result, notices=self.notices)


def _read(manifest: object) -> _Read:
    reading = read_command(manifest)
    return _Read(readable(reading), reading.notices)


def _queue_order(order: CommandManifest) -> QueueOrder:
    command = command_named(order.action)
    if command is None:
        raise Rejected([_unknown_action(order, [known.value for known in QueueCommand])])
    return QueueOrder(order.name, command, order.reason, order.uid)


def _order_job(order: CommandManifest, by: Actor, dry_run: bool) -> JobCommandResult:
    action = ACTION_NAMES.get(order.action)
    if action is None or action not in COMMANDS:
        raise Rejected([_unknown_action(order, sorted(COMMANDS))])
    try:
        _check_job_uid(order, by)
        return command_job(
            order.namespace,
            order.name,
            JobAction(action),
            by=by,
            reason=order.reason,
            dry_run=dry_run,
        )
    except (Job.DoesNotExist, access.OutOfSight):
        raise Rejected([_no_target("job", f"{order.namespace}/{order.name}")]) from None


def _check_job_uid(order: CommandManifest, by: Actor) -> None:
    """Only for whoever may see the job: to others there is none, whatever the uid."""
    if not order.uid:
        return
    job = Job.objects.select_related("queue").get(namespace=order.namespace, name=order.name)
    access.require(by, Permission.VIEW, job.queue.place)
    if order.uid != str(job.uid):
        message = (
            f"The uid {order.uid} is not that of the job {order.namespace}/{order.name}: it may "
            "have been deleted and created again."
        )
        raise Rejected(
            [
                Violation(
                    "uid_mismatch",
                    "",
                    "target.uid",
                    message,
                    "leave the uid out, or read the job again",
                )
            ]
        )


def _unknown_action(order: CommandManifest, known: list[str]) -> Violation:
    message = f"“{order.action[:40]}” is not a command for a {order.kind.lower()}."
    return Violation(
        "invalid_action",
        order.name if order.kind == "Queue" else "",
        "action",
        message,
        f"write one of {', '.join(known)}",
    )


def _no_target(kind: str, name: str) -> Violation:
    rule = "job_not_found"
    if kind == "queue":
        rule = "queue_not_found"
    return Violation(
        rule,
        name if kind == "queue" else "",
        "target.name",
        f"There is no {kind} {name}.",
        f"name a {kind} that exists",
    )
