"""Unsaved rows of a model as one parameter of a larger statement: what belongs together is inserted
by one statement, and the database is asked once.

Only for PostgreSQL, whose statements may insert into several tables.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any

from django.db import connection
from django.db.models import Field, Model


class NewRows:
    """`left_out` names columns that the statement fills in from elsewhere."""

    def __init__(self, model: type[Model], left_out: Collection[str] = ()) -> None:
        self._model = model
        self._left_out = left_out

    @cached_property
    def _fields(self) -> list[Field[Any, Any]]:
        fields = []
        for field in self._model._meta.local_concrete_fields:
            if not field.primary_key and field.column not in self._left_out:
                fields.append(field)
        return fields

    @cached_property
    def columns(self) -> str:
        """What is filled, for both sides of INSERT INTO … SELECT."""
        return ", ".join(f'"{field.column}"' for field in self._fields)

    def table(self, alias: str) -> str:
        """A FROM item with these columns and the `place` of each row."""
        types = ['"place" integer']
        for field in self._fields:
            types.append(f'"{field.column}" {_type_of(field)}')
        return f"jsonb_to_recordset(%s::jsonb) AS {alias}({', '.join(types)})"

    def parameter(self, rows: Iterable[Model]) -> str:
        """Fills the table. Moments that the model sets at its creation are set."""
        given = []
        for place, row in enumerate(rows):
            values: dict[str, Any] = {"place": place}
            for field in self._fields:
                values[str(field.column)] = field.get_prep_value(field.pre_save(row, True))
            given.append(values)
        return json.dumps(given, default=str, separators=(",", ":"))


def _type_of(field: Field[Any, Any]) -> str:
    """Texts come at any length: the table itself says what is too long."""
    kind = str(field.db_type(connection))
    if kind.startswith("varchar"):
        return "text"
    return kind
