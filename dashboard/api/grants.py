"""/api/v1/grants/: who has which role on which queue."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import GrantFilters
from dashboard.api.framework.body_fields import given_text
from dashboard.api.framework.collection import Objects, Rows
from dashboard.api.framework.visible_rows import visible
from dashboard.api.given_records import GivenRecords, given_operations
from dashboard.api.objects import record_object
from dashboard.api.schema.openapi import Operations
from scheduler.domain.queues import ROOT
from scheduler.models import Grant
from scheduler.services.accounts import grants as grant_service


class Grants(GivenRecords):
    noun = "grant"
    filter_class = GrantFilters
    operations: ClassVar[Operations] = given_operations(schema.Grant, schema.GivenGrant)

    def visible_rows(self) -> QuerySet[Any]:
        return visible(
            Grant.objects.select_related("user", "group", "queue", "mapping"), self.access
        )

    def as_objects(self, rows: Rows) -> Objects:
        return [grant_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        body = request.data
        with self.undone_in_dry_run():
            grant = grant_service.grant_role(
                user=given_text(body, "user"),
                group=given_text(body, "group"),
                role=given_text(body, "role", required=True),
                queue=given_text(body, "queue", ROOT) or ROOT,
                by=self.actor,
            )
            made = grant_object(grant)
        return self.created_response(made, location=f"/api/v1/grants/{grant.pk}/")

    def destroy(self, request: Request, name: str) -> Response:
        grant = self.row_or_404()
        grant_service.revoke_grant(grant, by=self.actor, dry_run=self.dry_run)
        return self.response_with({"message": "The grant was revoked.", "dryRun": self.dry_run})


def grant_object(grant: Grant) -> dict[str, Any]:
    spec = grant_service.describe_grant(grant)
    status = {"createdBy": grant.created_by, "providerGroup": ""}
    if grant.mapping is not None:
        status["providerGroup"] = grant.mapping.provider_group
    return record_object("Grant", str(grant.pk), grant.created_at, spec, status)
