"""One job as shown: in the table, on its page and in the answers of a bulk action alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils import timezone

from dashboard.present.amounts import in_page_order, with_unit
from dashboard.present.start_times import present_start
from scheduler.domain.access import Access, Permission
from scheduler.domain.durations import seconds_between
from scheduler.domain.jobs.commands import NotPossible, command
from scheduler.domain.jobs.facts import JobFacts
from scheduler.domain.jobs.phases import JobPhase
from scheduler.domain.jobs.policies import JobAction
from scheduler.domain.plans import counted
from scheduler.domain.resources import Resources
from scheduler.selectors.jobs.listing import JobRow

COLUMNS = {
    "name": "Job",
    "queue": "Queue",
    "owner": "User",
    "state": "State",
    "gang": "Gang",
    "request": "Asks for",
    "priority": "Priority",
    "wait": "Waited",
    "when": "Starts",
    "age": "Age",
    "finished": "Ended",
    "reason": "Why it waits",
}
DEFAULT_COLUMNS = ("name", "queue", "owner", "state", "gang", "request", "wait", "when", "reason")


@dataclass(frozen=True, slots=True)
class Verb:
    """A button: what it is called, what it does, and how sure one must be."""

    key: str
    title: str
    action: JobAction
    explanation: str
    past: str
    is_final: bool = False


VERBS = {
    verb.key: verb
    for verb in (
        Verb(
            "suspend",
            "Suspend",
            JobAction.ABORT,
            "Its pods are stopped and its places go to others. "
            "It can be resumed later and starts again then.",
            "suspended",
        ),
        Verb(
            "resume",
            "Resume",
            JobAction.RESUME,
            "It gets new pods and waits for places in its queue.",
            "resumed",
        ),
        Verb(
            "restart",
            "Restart",
            JobAction.RESTART,
            "Its pods are stopped, and it starts again with new ones.",
            "restarted",
        ),
        Verb(
            "cancel",
            "Cancel",
            JobAction.TERMINATE,
            "Its pods are stopped and it ends for good. "
            "It can be restarted, or cloned as a new job.",
            "cancelled",
            is_final=True,
        ),
    )
}


def verb_of(action: str) -> Verb:
    """The verb whose action is stored in a bulk run."""
    return next(verb for verb in VERBS.values() if verb.action == action)


def obstacle(phase: str, verb: Verb) -> str:
    """Why this verb would do nothing to a job of this phase, "" if it would do something."""
    known = phase
    if phase not in tuple(JobPhase):
        known = "Running"  # a gang's own phases are those of a live job
    try:
        step = command(JobFacts(JobPhase(known), 1, ()), verb.action)
    except NotPossible as reason:
        return str(reason)
    if step:
        return ""
    return f"it is {phase} already"


def may_command(access: Access, user: str, queue: str, owner: str) -> bool:
    """Submitters command their own jobs, operators all jobs of the queue. The service checks it."""
    if owner and owner == user and access.may(Permission.SUBMIT, queue):
        return True
    return access.may(Permission.OPERATE, queue)


def amounts_text(amounts: Resources, most: int = 3) -> str:
    """ "8 GPU · 64 CPU · 512 Gi": accelerators first."""
    names = [name for name in in_page_order(amounts) if amounts[name]]
    words = []
    for name in names[:most]:
        words.append(with_unit(name, amounts[name]))
    unbroken = [word.replace(" ", "\N{NO-BREAK SPACE}") for word in words]
    return " · ".join(unbroken) or "nothing"


_PLACED = ("Binding", "Bound", "Running", "Succeeded")


def present_job(row: JobRow) -> dict[str, Any]:
    placed = sum(row.members.get(phase, 0) for phase in _PLACED)
    whole = sum(row.members.values())
    return {
        "pk": row.pk,
        "key": row.key,
        "name": row.name,
        "namespace": row.namespace,
        "url": reverse("job", args=[row.namespace, row.name]),
        "queue": row.queue,
        "owner": row.owner,
        "phase": row.phase,
        "state": row.phase,
        "is_job": row.is_job,
        "is_waiting": row.is_waiting,
        "placed": placed,
        "needed": row.min_member,
        "whole": whole,
        "gang_figures": gang_figures(placed, row.min_member),
        "gang_words": gang_words(placed, row.min_member, whole, row.phase),
        "cells": gang_cells(row.members),
        "request": amounts_text(row.request),
        "priority": row.priority,
        "priority_class": row.priority_class,
        **_reason_words(row, placed),
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "waited": _waited(row),
        "start": present_start(row.expected, timezone.now()),
    }


def _reason_words(row: JobRow, placed: int) -> dict[str, str]:
    """A gang that has all its places waits for nothing more, even before its pods run."""
    if row.is_waiting and placed >= row.min_member > 0:
        return {"reason_code": "", "reason": "Has its places and is starting."}
    words = row.reason_message
    if row.is_waiting and not words:
        words = "Not evaluated yet: the next session will look at it."
    return {"reason_code": row.reason_code, "reason": words}


def _waited(row: JobRow) -> float | None:
    """Seconds until it started, or until it ended without a start; None while it waits."""
    until = row.started_at or row.finished_at
    if until is None:
        return None
    return seconds_between(row.created_at, until)


def gang_figures(placed: int, needed: int) -> str:
    """ "3 of 8", and "8 of 8 +4" where the elastic part runs too."""
    if placed > needed:
        return f"{needed} of {needed} +{placed - needed}"
    return f"{placed} of {needed}"


def gang_words(placed: int, needed: int, whole: int, phase: str) -> str:
    have = counted(whole, "pod has", "pods have")
    words = f"{placed} of {have} a place; {counted(needed, 'is', 'are')} needed to start"
    elastic = whole - needed
    if elastic > 0:
        words += f", {counted(elastic, 'more is', 'more are')} elastic"
    return f"{words}. {phase}."


_CELL_ORDER = (
    "Running",
    "Bound",
    "Binding",
    "Releasing",
    "Succeeded",
    "Failed",
    "Unknown",
    "Pending",
)
_MOST_CELLS = 16


def gang_cells(members: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    """Up to sixteen little squares, one phase after the other.

    A larger gang is drawn to scale, with at least one square for every phase.
    """
    whole = sum(members.values())
    if not whole:
        return ()
    present = []
    for phase in _CELL_ORDER:
        if members.get(phase):
            present.append((phase, members[phase]))
    if whole <= _MOST_CELLS:
        return present
    cells: list[tuple[str, int]] = []
    for phase, number in present:
        cells.append((phase, max(1, round(number * _MOST_CELLS / whole))))
    return cells
