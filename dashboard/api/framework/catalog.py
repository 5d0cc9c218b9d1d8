"""What namespaces and priority classes have in common."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import NameFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.collection import ManifestSet, Objects, Orderings, Rows
from dashboard.api.schema.openapi import Operation, Operations
from scheduler.services.files import catalog


class CatalogSet(ManifestSet):
    entries: ClassVar[catalog.Kind]
    takes_lists_in_steps = True
    filter_class = NameFilters
    search_fields = ("name",)
    orderings: ClassVar[Orderings] = {"name": "name", "created": "created_at"}
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.MEMBER,
        "retrieve": permissions.MEMBER,
        "create": permissions.CLUSTER_ADMIN,
        "update": permissions.CLUSTER_ADMIN,
        "partial_update": permissions.CLUSTER_ADMIN,
        "destroy": permissions.CLUSTER_ADMIN,
    }

    def visible_rows(self) -> QuerySet[Any]:
        found: QuerySet[Any] = self.entries.model.objects.all()
        return found

    def as_object(self, row: Any) -> dict[str, Any]:
        raise NotImplementedError

    def as_objects(self, rows: Rows) -> Objects:
        return [self.as_object(row) for row in rows]

    def create_object(self, manifest: Any) -> Response:
        made = catalog.create_entry(self.entries, manifest, by=self.actor, dry_run=self.dry_run)
        return self.saved_response(
            self.as_object(made.row),
            made.notices,
            created=True,
            version=made.row.resource_version,
            location=f"/api/v1/{self.basename}/{made.row.name}/",
        )

    def update_object(self, *, merge: bool, **where: str) -> Response:
        made = catalog.update_entry(
            self.entries,
            where["name"],
            self.request.data,
            by=self.actor,
            merge=merge,
            expected_version=self.expected_version,
            dry_run=self.dry_run,
        )
        body = self.as_object(made.row)
        version = made.row.resource_version
        return self.saved_response(body, made.notices, changed=made.changed, version=version)

    def destroy(self, request: Request, name: str) -> Response:
        self.row_or_404()
        catalog.delete_entry(
            self.entries,
            name,
            by=self.actor,
            expected_version=self.expected_version,
            dry_run=self.dry_run,
        )
        return self.response_with({"message": f"{name} was deleted.", "dryRun": self.dry_run})


def catalog_operations(shape: Any, manifest: Any) -> Operations:
    return {
        "list": Operation(shape, many=True),
        "retrieve": Operation(shape),
        "create": Operation(schema.saved(shape), manifest, 201, bulk=True),
        "update": Operation(schema.saved(shape), manifest),
        "partial_update": Operation(schema.saved(shape), manifest),
        "destroy": Operation(schema.Gone),
    }
