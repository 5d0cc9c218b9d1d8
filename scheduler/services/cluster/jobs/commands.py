"""Commands on Volcano's bus to jobs: which belong to which job, and the record of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.db import connection, transaction
from django.utils import timezone

from scheduler.clusters.kubernetes.resources import JOBS
from scheduler.clusters.kubernetes.values import CommandObject, JobObject
from scheduler.domain.queues import DEFAULT
from scheduler.models import Command
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.cluster.jobs.plan import Obeyed
from scheduler.services.cluster.mirror.object_rows import version_number
from scheduler.services.records import audit

RECORDED: Final = "fumarole.io/recorded"
"""An annotation of Commands that somebody gave here: who, and why, was noted then."""


def commands_by_job(commands: Iterable[CommandObject]) -> dict[str, list[CommandObject]]:
    """Those to jobs, by namespace/name of the job, oldest first."""
    found: dict[str, list[CommandObject]] = {}
    for order in sorted(commands, key=_order_of_creation):
        if order.target_kind == JOBS.kind:
            key = f"{order.target_namespace or order.meta.namespace}/{order.target_name}"
            found.setdefault(key, []).append(order)
    return found


def _order_of_creation(order: CommandObject) -> tuple[float, int]:
    """Moments have whole seconds; within one the versions of new objects tell the order."""
    seconds = 0.0
    if order.meta.created is not None:
        seconds = order.meta.created.timestamp()
    return seconds, version_number(order.meta.resource_version)


def is_meant(order: CommandObject, job: JobObject) -> bool:
    """Not one that was given to an earlier job of the same name."""
    return not order.target_uid or order.target_uid == job.meta.uid


def note_obeyed(job: JobObject, obeyed: Obeyed) -> None:
    """Once. Those that were given here are on record already."""
    order = obeyed.command
    if RECORDED in order.meta.annotations:
        return
    try:
        if not Command.objects.filter(request_id=order.meta.uid).exists():
            with transaction.atomic():
                _row(job, obeyed).save(force_insert=True)
                _note_in_audit_log(job, obeyed)
    finally:
        connection.close()


def _note_in_audit_log(job: JobObject, obeyed: Obeyed) -> None:
    if obeyed.step is None:
        return
    order = obeyed.command
    audit.record(
        Actor("kubernetes", Door.SYSTEM, request_id=order.meta.uid),
        order.action,
        JOBS.kind,
        job.meta.name,
        namespace=job.meta.namespace,
        queue=job.job.queue or DEFAULT,
        before={"phase": job.phase},
        after={"phase": obeyed.step.phase.value},
        reason=order.reason,
        message=obeyed.message,
    )


def _row(job: JobObject, obeyed: Obeyed) -> Command:
    result = Command.DONE
    if obeyed.refused:
        result = Command.FAILED
    elif obeyed.step is None and obeyed.message.endswith("already"):
        result = Command.NO_OP
    return Command(
        action=obeyed.command.action[:32],
        target_kind=JOBS.kind,
        target_namespace=job.meta.namespace,
        target_name=job.meta.name,
        target_uid=job.meta.uid,
        actor="kubernetes",
        door=Door.SYSTEM.value,
        reason=obeyed.command.reason,
        request_id=obeyed.command.meta.uid,
        result=result,
        message=f"{job.meta.key}: {obeyed.message}.",
        executed_at=timezone.now(),
    )
