"""/api/v1/groupmappings/: which groups of the sign-on provider have which role on which queue."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import Count, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import GroupMappingFilters
from dashboard.api.framework.body_fields import given_text
from dashboard.api.framework.collection import Objects, Rows
from dashboard.api.framework.visible_rows import visible
from dashboard.api.given_records import GivenRecords, given_operations
from dashboard.api.objects import record_object
from dashboard.api.schema.openapi import Operations
from scheduler.domain.plans import counted
from scheduler.domain.queues import ROOT
from scheduler.models import GroupMapping
from scheduler.services.accounts import sign_on


class GroupMappings(GivenRecords):
    noun = "group mapping"
    filter_class = GroupMappingFilters
    operations: ClassVar[Operations] = given_operations(
        schema.GroupMapping, schema.GivenGroupMapping, "The roles that it gave end at once"
    )

    def visible_rows(self) -> QuerySet[Any]:
        mappings = GroupMapping.objects.select_related("queue").annotate(held=Count("grants"))
        return visible(mappings, self.access)

    def as_objects(self, rows: Rows) -> Objects:
        return [mapping_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        body = request.data
        with self.undone_in_dry_run():
            mapping = sign_on.map_group(
                given_text(body, "providerGroup", required=True),
                role=given_text(body, "role", required=True),
                queue=given_text(body, "queue", ROOT) or ROOT,
                by=self.actor,
            )
            made = mapping_object(mapping)
        return self.created_response(made, location=f"/api/v1/groupmappings/{mapping.pk}/")

    def destroy(self, request: Request, name: str) -> Response:
        mapping = self.row_or_404()
        ended = sign_on.unmap_group(mapping, by=self.actor, dry_run=self.dry_run)
        message = f"The mapping was deleted. {counted(ended, 'role')} ended with it."
        return self.response_with({"message": message, "dryRun": self.dry_run})


def mapping_object(mapping: GroupMapping) -> dict[str, Any]:
    held = getattr(mapping, "held", None)
    if held is None:
        held = mapping.grants.count()
    status = {"createdBy": mapping.created_by, "grants": held}
    spec = sign_on.describe_mapping(mapping)
    return record_object("GroupMapping", str(mapping.pk), mapping.created_at, spec, status)
