"""Orders that name their target: the bus Command of a manifest, or a line of `commands/`."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.admission.cluster_manifests import CommandManifest, read_command
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.access import Permission
from scheduler.domain.jobs import ACTION_NAMES, COMMANDS, JobAction
from scheduler.domain.lifecycle import QueueCommand, command_named
from scheduler.models import Job, Queue
from scheduler.services import access
from scheduler.services.actors import SYSTEM, Actor
from scheduler.services.commands import CommandOutcome, command_queue
from scheduler.services.jobs import JobCommandResult, command_job
from scheduler.services.merging import readable


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
        return outcome.message if outcome else ""


def give_order(manifest: object, *, by: Actor = SYSTEM, dry_run: bool = False) -> Ordered:
    """Raises `Rejected` for an unknown action or target and for a uid that is not the target's, and what the command itself raises."""
    reading = read_command(manifest)
    order = readable(reading)
    if order.kind == "Job":
        return Ordered(order, job=_order_job(order, by, dry_run), notices=reading.notices)
    return Ordered(order, queue=_order_queue(order, by, dry_run), notices=reading.notices)


def _order_queue(order: CommandManifest, by: Actor, dry_run: bool) -> CommandOutcome:
    command = command_named(order.action)
    if command is None:
        raise Rejected([_unknown_action(order, [known.value for known in QueueCommand])])
    try:
        return command_queue(order.name, command, by=by, reason=order.reason, target_uid=order.uid, dry_run=dry_run)
    except (Queue.DoesNotExist, access.OutOfSight):
        raise Rejected([_no_target("queue", order.name)]) from None


def _order_job(order: CommandManifest, by: Actor, dry_run: bool) -> JobCommandResult:
    action = ACTION_NAMES.get(order.action)
    if action is None or action not in COMMANDS:
        raise Rejected([_unknown_action(order, sorted(COMMANDS))])
    try:
        _check_job_uid(order, by)
        return command_job(order.namespace, order.name, JobAction(action), by=by, reason=order.reason, dry_run=dry_run)
    except (Job.DoesNotExist, access.OutOfSight):
        raise Rejected([_no_target("job", f"{order.namespace}/{order.name}")]) from None


def _check_job_uid(order: CommandManifest, by: Actor) -> None:
    """Only for whoever may see the job: to others there is none, whatever the uid."""
    if not order.uid:
        return
    uid, queue = Job.objects.values_list("uid", "queue__name").get(namespace=order.namespace, name=order.name)
    access.require(by, Permission.VIEW, queue)
    if order.uid != str(uid):
        message = f"The uid {order.uid} is not that of the job {order.namespace}/{order.name}: it may have been deleted and made anew."
        raise Rejected([Violation("uid_mismatch", "", "target.uid", message, "leave the uid out, or read the job again")])


def _unknown_action(order: CommandManifest, known: list[str]) -> Violation:
    message = f"“{order.action[:40]}” is not a command for a {order.kind.lower()}."
    return Violation("invalid_action", order.name if order.kind == "Queue" else "", "action", message, f"write one of {', '.join(known)}")


def _no_target(kind: str, name: str) -> Violation:
    rule = "queue_not_found" if kind == "queue" else "job_not_found"
    return Violation(rule, name if kind == "queue" else "", "target.name", f"There is no {kind} {name}.", f"name a {kind} that exists")
