"""/api/v1/apply/ and validate/: objects of any kind, one or many, written or only checked."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.authentication import actor_of
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import notice_json, violation_json
from dashboard.api.framework.formats import Documents
from dashboard.api.schema.openapi import Operation, Operations, query_parameter
from scheduler.domain.plans import counted
from scheduler.selectors.files.configuration import configuration
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.files.apply import apply_documents, check_documents
from scheduler.services.files.items import Applied, Item

_PRUNE = query_parameter(
    "prune",
    "A label such as `team=a`: objects of the file's kinds that have it "
    "and are not in the file are deleted.",
)
_SHOWN = query_parameter(
    "shown",
    "The objects that a dry run said would be deleted, such as `queue/team-a`, "
    "joined by commas: 409 if others would be deleted.",
)


class Configuration(Endpoint):
    """Everything that admins set, as one file."""

    basename = "configuration"
    rules: ClassVar[permissions.Rules] = {"get": permissions.CLUSTER_ADMIN}
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.ConfigurationExport,
            summary="All configuration, to be applied elsewhere; without passwords and tokens",
        )
    }

    def get(self, request: Request) -> Response:
        documents = configuration()
        if self.answer_format == "yaml":
            return Response(Documents(documents))
        return Response({"apiVersion": "v1", "kind": "List", "items": documents})


class Apply(Endpoint):
    """A file of one or many documents: all of it is written, or nothing."""

    basename = "apply"
    parameters = frozenset({"prune", "shown"})
    rules: ClassVar[permissions.Rules] = {"post": permissions.SUBMIT}
    operations: ClassVar[Operations] = {
        "post": Operation(
            schema.Applied,
            schema.AnyManifest,
            several=True,
            summary="Create or update every object of a file, or none",
            parameters=(_PRUNE, _SHOWN),
        )
    }

    @property
    def actor(self) -> Actor:
        return actor_of(self.request, Door.MANIFEST, self.access, self.stated_reason)

    def post(self, request: Request) -> Response:
        applied = apply_documents(
            _given_documents(request.data),
            by=self.actor,
            dry_run=self.dry_run,
            prune=request.query_params.get("prune", ""),
            shown=self._shown_objects(),
        )
        changed = sum(item.changed for item in applied)
        body = {
            "changed": bool(changed),
            "dryRun": self.dry_run,
            "message": self._summary(changed, len(applied)),
            "results": [_applied_json(item) for item in applied],
        }
        return self.response_with(body)

    def _shown_objects(self) -> list[str] | None:
        """What a dry run showed; None where the caller does not say."""
        text = self.request.query_params.get("shown")
        if text is None:
            return None
        return [name for name in text.split(",") if name]

    def _summary(self, changed: int, objects: int) -> str:
        if not changed:
            return "Everything is as the file says; nothing was changed."
        were = "were"
        if self.dry_run:
            were = "would be"
        return f"{changed} of {counted(objects, 'object')} {were} changed."


class Validate(Endpoint):
    """All violations and warnings of one object, or of a set whose members count for each other.

    Nothing is written.
    """

    basename = "validate"
    writes_are_dry_runnable = False
    rules: ClassVar[permissions.Rules] = {"post": permissions.MEMBER}
    operations: ClassVar[Operations] = {
        "post": Operation(
            schema.Validated,
            schema.AnyManifest,
            several=True,
            summary="Which rules these objects break",
        )
    }

    def post(self, request: Request) -> Response:
        items = check_documents(_given_documents(request.data), by=self.actor)
        in_order = sorted(items, key=lambda item: item.index)
        results = [_checked_json(item) for item in in_order]
        is_valid = all(result["valid"] for result in results)
        return self.response_with({"valid": is_valid, "results": results})


def _given_documents(body: Any) -> list[Any]:
    if isinstance(body, list):
        return body
    if body == {}:
        return []
    return [body]


def _applied_json(item: Applied) -> dict[str, Any]:
    diff = []
    for field, before, after in item.diff:
        diff.append({"field": field, "before": before, "after": after})
    return {
        "index": item.index,
        "kind": item.kind,
        "name": item.name,
        "operation": item.operation,
        "changed": item.changed,
        "message": item.message,
        "diff": diff,
        "warnings": [notice_json(notice) for notice in item.notices],
    }


def _checked_json(item: Item) -> dict[str, Any]:
    return {
        "index": item.index,
        "kind": item.kind[:80],
        "name": item.name[:253],
        "operation": item.done.operation if item.done else "",
        "valid": not item.violations,
        "violations": [violation_json(violation) for violation in item.violations],
        "warnings": [notice_json(notice) for notice in item.notices],
    }
