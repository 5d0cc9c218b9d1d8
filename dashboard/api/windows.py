"""/api/v1/windows/: a subtree that is suspended while it is changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import WindowFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.body_fields import given_fields, given_text, refuse_unknown
from dashboard.api.framework.collection import Objects, Rows, Verbs
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.objects import iso_time, record_object
from dashboard.api.records import Records
from dashboard.api.schema.openapi import Operation, Operations, command_to
from dashboard.present.change_sets import crossing_json
from scheduler.domain.access import OutOfSight
from scheduler.models import Queue
from scheduler.selectors.change_sets.windows import (
    WindowStanding,
    standing_of,
    standings_of,
    visible_windows,
)
from scheduler.services.change_sets import windows
from scheduler.services.change_sets.windows import WindowDeed

_FIELDS = ("queue", "name", "reason")
_EXAMPLE = OpenApiExample(
    "Hold a team while its quotas are changed",
    request_only=True,
    value={"queue": "research", "reason": "quarterly quotas"},
)


class Windows(Records):
    noun = "safe window"
    filter_class = WindowFilters
    search_fields = ("queue", "reason")
    verbs: ClassVar[Verbs] = {
        "apply": {"post": "apply"},
        "revert": {"post": "revert"},
        "resume": {"post": "resume"},
        "suspend": {"post": "suspend"},
        "abandon": {"post": "abandon"},
        "collect": {"post": "collect"},
    }
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "create": permissions.OPERATE,
        "apply": permissions.OPERATE,
        "revert": permissions.OPERATE,
        "resume": permissions.OPERATE,
        "suspend": permissions.OPERATE,
        "abandon": permissions.OPERATE,
        "collect": permissions.OPERATE,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.SafeWindow, many=True, summary="The safe windows whose queue you may see"
        ),
        "retrieve": Operation(
            schema.SafeWindow,
            summary="How far a safe window is, and what others did to its queues meanwhile",
        ),
        "create": Operation(
            schema.saved(schema.SafeWindow),
            schema.GivenWindow,
            201,
            summary="Suspend a queue with all below it, and begin a change set for it",
            examples=(_EXAMPLE,),
        ),
        "apply": command_to(
            schema.SafeWindow, "Apply the change set of a window whose queue is still suspended"
        ),
        "revert": command_to(
            schema.SafeWindow, "Undo the apply at once. The edits become a new draft of the window"
        ),
        "resume": command_to(
            schema.SafeWindow, "Give the queue back what it was before, and end the window"
        ),
        "suspend": command_to(schema.SafeWindow, "Suspend the queue again: the undo of resume"),
        "abandon": command_to(
            schema.SafeWindow,
            "Revert what was applied, discard the draft, resume and end: all or none",
        ),
        "collect": command_to(
            schema.SafeWindow, "Begin another change set where that of the window was discarded"
        ),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return visible_windows(self.access, self.request.user.get_username())

    def as_objects(self, rows: Rows) -> Objects:
        return [window_object(standing) for standing in standings_of(rows)]

    def create(self, request: Request) -> Response:
        given = given_fields(request.data)
        refuse_unknown(given, _FIELDS, "A safe window has no {}.", f"one of {', '.join(_FIELDS)}")
        queue = given_text(request.data, "queue", required=True)
        try:
            deed = windows.begin_window(
                queue,
                by=replace(self.actor, reason=given_text(request.data, "reason", longest=1024)),
                name=given_text(request.data, "name"),
                dry_run=self.dry_run,
            )
        except (OutOfSight, Queue.DoesNotExist):
            raise bad_parameter("spec.queue", f"There is no queue {queue[:80]}.") from None
        location = f"/api/v1/windows/{deed.window.pk}/"
        body = _deed_object(deed)
        return self.saved_response(body, deed.notices, created=True, location=location)

    def apply(self, request: Request, name: str) -> Response:
        return self._after(windows.apply_window)

    def revert(self, request: Request, name: str) -> Response:
        return self._after(windows.revert_window)

    def resume(self, request: Request, name: str) -> Response:
        return self._after(windows.resume_window)

    def suspend(self, request: Request, name: str) -> Response:
        return self._after(windows.suspend_again)

    def abandon(self, request: Request, name: str) -> Response:
        return self._after(windows.abandon_window)

    def collect(self, request: Request, name: str) -> Response:
        return self._after(windows.new_draft)

    def _after(self, do: Callable[..., WindowDeed]) -> Response:
        row = self.row_or_404()
        deed = do(row.pk, by=self.commander, dry_run=self.dry_run)
        return self.saved_response(_deed_object(deed), deed.notices)


def _deed_object(deed: WindowDeed) -> dict[str, Any]:
    """With what came of the step: in a dry run the row may not be there any more."""
    body = window_object(standing_of(deed.window))
    return {**body, "message": deed.message, "effect": _effect(deed)}


def _effect(deed: WindowDeed) -> dict[str, Any] | None:
    outcome = deed.outcome
    if outcome is None:
        return None
    return {
        "queues": outcome.queues,
        "podgroups": outcome.podgroups,
        "pods": outcome.pods,
        "users": outcome.users,
        "warnings": outcome.warnings,
    }


def window_object(standing: WindowStanding) -> dict[str, Any]:
    row = standing.window
    before = []
    for name, states in row.before.items():
        before.append({"queue": name, **states})
    incidents = []
    for each in standing.incidents:
        incidents.append({"code": each.code, "queue": each.queue, "message": each.message})
    spec = {"queue": row.queue, "changeSet": row.change_set_id, "reason": row.reason}
    status = {
        "state": row.state,
        "step": standing.step.value,
        "author": row.author,
        "isSuspended": standing.is_held,
        "before": before,
        "incidents": incidents,
        "conflicts": [crossing_json(crossing) for crossing in standing.crossings],
        "endedAt": iso_time(row.ended_at),
        "endedBy": row.ended_by,
    }
    return record_object("SafeWindow", str(row.pk), row.created_at, spec, status)
