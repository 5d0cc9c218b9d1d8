"""/api/v1/previews/: what a change would do, by the engine run ahead on a copy of the cluster."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.body_fields import given_fields, given_texts, refuse_unknown
from dashboard.api.framework.collection import Objects, Rows
from dashboard.api.framework.errors import bad_parameter, not_found
from dashboard.api.objects import iso_time, record_object
from dashboard.api.records import Records
from dashboard.api.schema.openapi import Operation, Operations
from scheduler.models import ChangeSet, Preview
from scheduler.selectors.change_sets.listing import visible_sets
from scheduler.services.change_sets.preview_runs import cancel_preview, start_preview
from scheduler.services.change_sets.wishes import remarks_on

_FIELDS = ("changeSet", "documents", "lostNodes", "minutes", "beginsAt")
_MOST_NODES = 1000


class Previews(Records):
    noun = "preview"
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "create": permissions.SUBMIT,
        "destroy": permissions.may_write_own,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(schema.Preview, many=True, summary="The previews that you asked for"),
        "retrieve": Operation(
            schema.Preview, summary="How far a preview is, and what the change would do"
        ),
        "create": Operation(
            schema.saved(schema.Preview),
            schema.GivenPreview,
            201,
            summary="Try changes, jobs or the loss of nodes out on a copy of the cluster",
        ),
        "destroy": Operation(schema.Gone, summary="Cancel a preview"),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return Preview.objects.filter(owner_id=self.request.user.pk)

    def as_objects(self, rows: Rows) -> Objects:
        return [preview_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        given = given_fields(request.data)
        refuse_unknown(given, _FIELDS, "A preview has no {}.", f"one of {', '.join(_FIELDS)}")
        documents = _given_documents(given.get("documents"))
        with self.undone_in_dry_run():
            made = start_preview(
                by=self.actor,
                change_set=self._given_set(given.get("changeSet")),
                documents=documents,
                lost_nodes=_given_names(given.get("lostNodes")),
                minutes=_given_minutes(given.get("minutes")),
                begins_at=_given_moment(given.get("beginsAt")),
            )
            body = preview_object(made)
        location = f"/api/v1/previews/{made.pk}/"
        remarks = remarks_on(documents) if documents else ()
        return self.saved_response(body, remarks, created=True, location=location)

    def destroy(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        message = "The preview had ended already."
        if self.dry_run or cancel_preview(row):
            message = "The preview was cancelled."
        return self.response_with({"message": message, "dryRun": self.dry_run})

    def _given_set(self, number: Any) -> ChangeSet | None:
        if number is None:
            return None
        if not isinstance(number, int) or isinstance(number, bool):
            raise bad_parameter("changeSet", "changeSet must be the number of a change set.")
        mine = visible_sets(self.access, self.request.user.get_username())
        found = mine.filter(pk=number).first()
        if found is None:
            raise not_found(f"There is no change set {number}.")
        return found


def _given_documents(given: Any) -> list[Any]:
    if given is None:
        return []
    if not isinstance(given, list):
        raise bad_parameter("documents", "documents must be a list.")
    return given


def _given_names(given: Any) -> list[str]:
    if given is None:
        return []
    names = given_texts(given, _MOST_NODES)
    if names is None or any("\x00" in name for name in names):
        raise bad_parameter(
            "lostNodes", f"lostNodes must be a list of at most {_MOST_NODES} names of nodes."
        )
    return names


def _given_minutes(given: Any) -> int:
    if given is None:
        return 60
    if not isinstance(given, int) or isinstance(given, bool):
        raise bad_parameter("minutes", "minutes must be a whole number.")
    return given


def _given_moment(given: Any) -> datetime | None:
    if given is None:
        return None
    found = None
    if isinstance(given, str):
        with contextlib.suppress(ValueError):
            found = datetime.fromisoformat(given)
    if found is None or found.tzinfo is None:
        message = "beginsAt must be a moment with its zone, such as 2026-11-20T17:00:00Z."
        raise bad_parameter("beginsAt", message)
    return found


def preview_object(row: Preview) -> dict[str, Any]:
    spec = {
        "changeSet": row.change_set_id,
        "jobs": row.jobs,
        "lostNodes": row.lost_nodes,
        "minutes": row.minutes,
        "beginsAt": iso_time(row.begins_at),
    }
    status = {
        "state": row.state,
        "progress": row.progress,
        "message": row.message,
        "takenAt": iso_time(row.taken_at),
        "finishedAt": iso_time(row.finished_at),
        "result": row.result,
    }
    return record_object("Preview", str(row.pk), row.created_at, spec, status)
