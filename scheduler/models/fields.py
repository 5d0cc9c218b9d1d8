"""Columns that several tables share: exact amounts, labels, object identity."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import models

from scheduler.domain.resources import NOTHING, Resources


class ResourcesField(models.JSONField):
    """Amounts by resource name, in base units, as whole numbers.

    Read and written as `Resources`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("default", Resources)
        kwargs.setdefault("blank", True)
        super().__init__(*args, **kwargs)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Resources | None:
        amounts = super().from_db_value(value, expression, connection)
        if amounts is None:
            return None
        return Resources(amounts)

    def get_prep_value(self, value: Any) -> Any:
        return super().get_prep_value(dict(value) if isinstance(value, Resources) else value)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return super().get_db_prep_value(
            dict(value) if isinstance(value, Resources) else value, connection, prepared
        )

    def to_python(self, value: Any) -> Any:
        if isinstance(value, Resources) or value is None:
            return value
        return Resources(value)

    def value_to_string(self, obj: models.Model) -> Any:
        return dict(self.value_from_object(obj) or NOTHING)


class Named(models.Model):
    """What every object of the cluster has: identity, labels, age, and a version that grows with
    each change of its spec.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    labels = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    resource_version = models.PositiveBigIntegerField(default=1)

    class Meta:
        abstract = True


def one_of(values: Any) -> list[tuple[str, str]]:
    """Choices as plain text, so that migrations stay free of our enums."""
    return [(str(value.value), str(value.value)) for value in values]
