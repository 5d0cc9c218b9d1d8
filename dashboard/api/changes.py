"""/api/v1/changes/: edits of several objects that are applied together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import ChangeSetFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.body_fields import given_fields, given_text, refuse_unknown
from dashboard.api.framework.collection import Objects, Orderings, Rows, Verbs
from dashboard.api.framework.errors import bad_parameter, notice_json, violation_json
from dashboard.api.objects import iso_time, record_object
from dashboard.api.records import Records
from dashboard.api.schema.openapi import Operation, Operations, command_to
from dashboard.present.change_sets import crossing_json, item_json
from scheduler.admission.violations import Notice
from scheduler.models import ChangeSet
from scheduler.selectors.change_sets.listing import visible_sets
from scheduler.services.change_sets import drafts
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.verdicts import SetVerdict, verdict_on
from scheduler.services.change_sets.wishes import remarks_on

_FIELDS = ("name", "description", "documents")
_EXAMPLE = OpenApiExample(
    "Move 4 CPU from batch to research",
    request_only=True,
    value={
        "name": "More for research",
        "documents": [
            {"kind": "Queue", "metadata": {"name": "batch"}, "spec": {"deserved": {"cpu": "4"}}},
            {"kind": "Queue", "metadata": {"name": "research"}, "spec": {"deserved": {"cpu": "8"}}},
            {"kind": "Node", "metadata": {"name": "old-1"}, "$patch": "delete"},
        ],
    },
)


class Changes(Records):
    noun = "change set"
    filter_class = ChangeSetFilters
    search_fields = ("name", "description")
    orderings: ClassVar[Orderings] = {"created": "id", "updated": "updated_at"}
    verbs: ClassVar[Verbs] = {
        "add": {"post": "add"},
        "remove": {"post": "remove"},
        "apply": {"post": "apply"},
        "refresh": {"post": "refresh"},
        "revert": {"post": "revert"},
    }
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "create": permissions.OPERATE,
        "partial_update": permissions.OPERATE,
        "destroy": permissions.OPERATE,
        "add": permissions.OPERATE,
        "remove": permissions.OPERATE,
        "apply": permissions.OPERATE,
        "refresh": permissions.OPERATE,
        "revert": permissions.OPERATE,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.ChangeSet, many=True, summary="The change sets whose queues you may all see"
        ),
        "retrieve": Operation(
            schema.ChangeSet,
            summary="A change set: every field before and after, and what stands against it",
        ),
        "create": Operation(
            schema.saved(schema.ChangeSet),
            schema.GivenChangeSet,
            201,
            summary="Collect edits under a name. Nothing is applied yet",
            examples=(_EXAMPLE,),
        ),
        "partial_update": Operation(
            schema.saved(schema.ChangeSet),
            schema.ChangeSetPatch,
            summary="Give a draft another name or description",
        ),
        "destroy": Operation(schema.Gone, summary="Discard a draft. It stays on record"),
        "add": Operation(
            schema.saved(schema.ChangeSet),
            schema.GivenDocuments,
            summary="Add edits to a draft. A later edit of an object comes over an earlier one",
        ),
        "remove": Operation(
            schema.saved(schema.ChangeSet),
            schema.GivenPlace,
            summary="Take an object out of a draft",
        ),
        "apply": command_to(
            schema.ChangeSet,
            "Apply all of it in one transaction, or nothing",
        ),
        "refresh": command_to(
            schema.ChangeSet,
            "Bring a draft up to date with what others changed since",
        ),
        "revert": command_to(
            schema.ChangeSet,
            "A new draft that leads back to what was before an applied set",
            201,
        ),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return visible_sets(self.access, self.request.user.get_username())

    def as_objects(self, rows: Rows) -> Objects:
        return [change_set_object(row) for row in rows]

    def retrieve(self, request: Request, *_args: Any, **_kwargs: Any) -> Response:
        row = self.row_or_404()
        return self.response_with(self._whole(row), version=row.resource_version)

    def _whole(self, row: ChangeSet) -> dict[str, Any]:
        """With the verdict of the rules, where it can still be applied."""
        if not row.is_draft:
            return change_set_object(row)
        return change_set_object(row, verdict_on(row.changes, by=self.actor))

    def create(self, request: Request) -> Response:
        given = given_fields(request.data)
        refuse_unknown(given, _FIELDS, "A change set has no {}.", f"one of {', '.join(_FIELDS)}")
        documents = _given_documents(given, required=False)
        with self.undone_in_dry_run():
            made = drafts.create_change_set(
                given_text(request.data, "name", required=True),
                documents,
                by=self.actor,
                description=given_text(request.data, "description", longest=1024),
            )
            body = self._whole(made)
        return self._made_response(made, body, documents)

    def partial_update(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        given = _without_items_as_they_are(given_fields(request.data), row)
        known = ("name", "description")
        refuse_unknown(given, known, "{} cannot be changed here.", f"one of {', '.join(known)}")
        with self.undone_in_dry_run():
            changed = drafts.rename(
                row.pk,
                given_text(request.data, "name", row.name),
                given_text(request.data, "description", row.description, longest=1024),
                by=self.actor,
                expected_version=self.expected_version,
            )
            return self._changed_response(changed)

    def destroy(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        drafts.discard(row.pk, by=self.actor, dry_run=self.dry_run)
        message = f"The change set {row.name} was discarded."
        return self.response_with({"message": message, "dryRun": self.dry_run})

    def add(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        documents = _given_documents(request.data, required=True)
        with self.undone_in_dry_run():
            changed = drafts.add_documents(
                row.pk,
                documents,
                by=self.actor,
                expected_version=self.expected_version,
            )
            return self._changed_response(changed, documents)

    def remove(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        with self.undone_in_dry_run():
            changed = drafts.take_out(
                row.pk,
                given_text(request.data, "kind", required=True),
                given_text(request.data, "name", required=True),
                by=self.actor,
                expected_version=self.expected_version,
            )
            return self._changed_response(changed)

    def apply(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        applied = apply_change_set(
            row.pk,
            by=self.commander,
            expected_version=self.expected_version,
            dry_run=self.dry_run,
        )
        body = change_set_object(applied.change_set)
        version = applied.change_set.resource_version
        return self.saved_response(
            {**body, "message": applied.message}, applied.notices, version=version
        )

    def refresh(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        with self.undone_in_dry_run():
            return self._changed_response(drafts.bring_up_to_date(row.pk, by=self.commander))

    def revert(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        with self.undone_in_dry_run():
            made = drafts.revert(row.pk, by=self.commander)
            body = self._whole(made)
        return self._made_response(made, body)

    def _made_response(
        self, made: ChangeSet, body: dict[str, Any], documents: Sequence[Any] = ()
    ) -> Response:
        return self.saved_response(
            body,
            _remarks(documents),
            created=True,
            location=f"/api/v1/changes/{made.pk}/",
            version=made.resource_version,
        )

    def _changed_response(self, changed: ChangeSet, documents: Sequence[Any] = ()) -> Response:
        body = self._whole(changed)
        return self.saved_response(body, _remarks(documents), version=changed.resource_version)


def _remarks(documents: Sequence[Any]) -> tuple[Notice, ...]:
    if not documents:
        return ()
    return remarks_on(documents)


def _without_items_as_they_are(given: Mapping[str, Any], row: ChangeSet) -> Mapping[str, Any]:
    """Whoever sends back what they read changes no items."""
    items = [item_json(item) for item in row.changes]
    if given.get("items") != items:
        return given
    return {field: value for field, value in given.items() if field != "items"}


def _given_documents(given: Any, *, required: bool) -> list[Any]:
    """A list of documents, or the field `documents` of an object."""
    found = given
    if not isinstance(given, list):
        found = given_fields(given).get("documents")
    if found is None and not required:
        return []
    if not isinstance(found, list):
        message = "documents must be a list of Queue, Node and Policy documents."
        raise bad_parameter("documents", message)
    return found


def change_set_object(row: ChangeSet, verdict: SetVerdict | None = None) -> dict[str, Any]:
    items = row.changes
    spec = {
        "name": row.name,
        "description": row.description,
        "items": [item_json(item) for item in items],
    }
    status: dict[str, Any] = {
        "state": row.state,
        "author": row.author,
        "updatedAt": iso_time(row.updated_at),
        "endedAt": iso_time(row.ended_at),
        "endedBy": row.ended_by,
        "reverts": row.reverts_id,
        "mayBeApplied": None,
        "violations": [],
        "warnings": [],
        "conflicts": [],
        "missingPermission": "",
    }
    if verdict is not None:
        status |= {
            "mayBeApplied": verdict.may_be_applied and bool(items),
            "violations": [violation_json(violation) for violation in verdict.violations],
            "warnings": [notice_json(notice) for notice in verdict.notices],
            "conflicts": [crossing_json(crossing) for crossing in verdict.crossings],
            "missingPermission": verdict.forbidden,
        }
    number = str(row.pk)
    version = row.resource_version
    return record_object("ChangeSet", number, row.created_at, spec, status, version=version)
