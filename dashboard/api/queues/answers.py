"""What the API answers to commands at queues, and to deleting them."""

from __future__ import annotations

from typing import Any

from dashboard.api.objects import iso_time
from scheduler.models import PlannedDeletion
from scheduler.services.queues.commands import CommandOutcome
from scheduler.services.queues.deletion import Deleted
from scheduler.services.queues.deletion_effects import Aftermath
from scheduler.services.queues.planned_deletion import CloseThenDelete


def command_answer(outcome: CommandOutcome, dry_run: bool) -> dict[str, Any]:
    return {
        "changed": outcome.changed,
        "message": outcome.message,
        "dryRun": dry_run,
        "command": outcome.action.value,
        "queue": outcome.queue,
        "queues": outcome.queues,
        "podgroups": outcome.podgroups,
        "pods": outcome.pods,
        "users": outcome.users,
        "warnings": outcome.warnings,
    }


def close_then_delete_answer(outcome: CloseThenDelete, dry_run: bool) -> dict[str, Any]:
    """The queues, children first, are either gone by now or planned to be."""
    planned = list(outcome.queues)
    deleted: list[str] = []
    if outcome.is_gone:
        deleted = planned
        planned = []
    return {
        "planned": planned,
        "deleted": deleted,
        **_aftermath_answer(outcome.aftermath),
        "message": outcome.message,
        "dryRun": dry_run,
        "closing": command_answer(outcome.closing, dry_run),
    }


def deleted_answer(deleted: Deleted, dry_run: bool) -> dict[str, Any]:
    return {
        "deleted": list(deleted.queues),
        **_aftermath_answer(deleted.aftermath),
        "message": deleted.message,
        "dryRun": dry_run,
    }


def _aftermath_answer(aftermath: Aftermath) -> dict[str, int]:
    return {
        "podgroups": aftermath.podgroups,
        "jobs": aftermath.jobs,
        "suspendedJobs": aftermath.suspended_jobs,
        "grants": aftermath.grants,
    }


def deletion_answer(name: str, planned: PlannedDeletion | None) -> dict[str, Any]:
    """Whether it will be deleted when it has drained, with what, and who asked for it."""
    answer: dict[str, Any] = {
        "queue": name,
        "planned": False,
        "queues": [],
        "actor": "",
        "door": "",
        "reason": "",
        "since": None,
    }
    if planned is not None:
        answer |= {
            "planned": True,
            "queues": planned.queues,
            "actor": planned.actor,
            "door": planned.door,
            "reason": planned.reason,
            "since": iso_time(planned.created_at),
        }
    return answer
