"""/api/v1/priorityclasses/."""

from __future__ import annotations

from typing import Any, ClassVar

from dashboard.api import schema
from dashboard.api.framework.catalog import CatalogSet, catalog_operations
from dashboard.api.framework.collection import Orderings
from dashboard.api.objects import priority_class_object
from dashboard.api.schema.openapi import Operations
from scheduler.models import PriorityClass
from scheduler.services.files import catalog


class PriorityClasses(CatalogSet):
    noun = "priority class"
    entries = catalog.PRIORITY_CLASSES
    orderings: ClassVar[Orderings] = {"name": "name", "value": "value", "created": "created_at"}
    operations: ClassVar[Operations] = catalog_operations(
        schema.PriorityClass, schema.PriorityClassManifest
    )

    def as_object(self, row: PriorityClass) -> dict[str, Any]:
        return priority_class_object(row)
