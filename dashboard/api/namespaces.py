"""/api/v1/namespaces/."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet

from dashboard.api import schema
from dashboard.api.framework.catalog import CatalogSet, catalog_operations
from dashboard.api.objects import namespace_object
from dashboard.api.schema.openapi import Operations
from dashboard.http.visibility import Visibility
from scheduler.models import Namespace
from scheduler.selectors.accounts.namespaces import namespaces_in_sight
from scheduler.services.files import catalog


class Namespaces(CatalogSet):
    noun = "namespace"
    entries = catalog.NAMESPACES
    operations: ClassVar[Operations] = catalog_operations(
        schema.Namespace, schema.NamespaceManifest
    )

    def visible_rows(self) -> QuerySet[Any]:
        return namespaces_in_sight(self.access)

    def as_object(self, row: Namespace) -> dict[str, Any]:
        return namespace_object(row, Visibility(self.access.visible))
