"""A short text for a row that is another one whenever the row was changed: what was made from a row
is good as long as its stamp is.
"""

from __future__ import annotations

from django.db import connection
from django.db.models import Model, TextField
from django.db.models.expressions import RawSQL


def stamp_of(model: type[Model]) -> RawSQL:
    """Of the row of this table in a query that reads it under its own name.

    PostgreSQL gives every version of a row the number of the transaction that wrote it, and a place
    of its own. SQLite has nothing like it: there the stamp is the whole row, as one text, which is
    still far less work than reading it column by column.
    """
    table = model._meta.db_table
    if connection.vendor == "postgresql":
        return _as_text(f'"{table}"."xmin"::text || "{table}"."ctid"::text')
    return _as_text(
        " || ',' || ".join(
            f'quote("{table}"."{field.column}")' for field in model._meta.concrete_fields
        )
    )


def _as_text(sql: str) -> RawSQL:
    return RawSQL(sql, (), output_field=TextField())  # noqa: S611 - names of our own tables and columns
