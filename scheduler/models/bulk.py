"""Many rows in one statement: a list of rows travels as a parameter and is a table inside the
statement.

`bulk_update` of 10,000 rows takes seconds; this takes hundredths of one, in one query however many
rows there are. Rows that are few, or have many columns, come as JSON (`values_table`); thousands
with a few columns come as one array a column (`columns_table`), which PostgreSQL reads in half the
time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from scheduler.models.kept_plans import cursor_that_keeps_plans

Columns = Mapping[str, str]  # name -> PostgreSQL type

# How SQLite reads a value of that PostgreSQL type out of JSON; the default is the plain value.
_SQLITE_READS = {"boolean": "CAST({} AS INTEGER)"}


def values_table(alias: str, columns: Columns) -> str:
    """A FROM item with these columns, to be filled by one parameter made with `as_parameter`."""
    if connection.vendor == "postgresql":
        types = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        return f"jsonb_to_recordset(%s::jsonb) AS {alias}({types})"
    reads = []
    for name, kind in columns.items():
        reads.append(_sqlite_column(name, kind, f'$."{name}"'))
    return f"(SELECT {', '.join(reads)} FROM json_each(%s)) AS {alias}"


def _sqlite_column(name: str, kind: str, path: str) -> str:
    """The value at this path of each JSON row, as a column."""
    value = f"json_extract(value, '{path}')"
    return _SQLITE_READS.get(kind, "{}").format(value) + f' AS "{name}"'


def columns_table(
    alias: str,
    columns: Columns,
    values: Sequence[Sequence[Any]],
) -> tuple[str, list[Any]]:
    """A FROM item with these columns, and the parameters that fill it: `values` has one list a
    column.
    """
    if connection.vendor == "postgresql":
        names = ", ".join(f'"{name}"' for name in columns)
        arrays = ", ".join(f"%s::{kind}[]" for kind in columns.values())
        return f"unnest({arrays}) AS {alias}({names})", [array_literal(column) for column in values]
    reads = []
    for place, (name, kind) in enumerate(columns.items()):
        reads.append(_sqlite_column(name, kind, f"$[{place}]"))
    rows = list(zip(*values, strict=True))
    table = f"(SELECT {', '.join(reads)} FROM json_each(%s)) AS {alias}"
    return table, [json.dumps(rows, separators=(",", ":"))]


def array_literal(values: Iterable[Any]) -> str:
    """PostgreSQL's text form of an array of numbers, truth values or texts.

    The driver's own way takes ten times as long.
    """
    some = list(values)
    text = json.dumps(some, ensure_ascii=False, separators=(",", ":"))
    if "\\" in text:  # JSON's escapes are not PostgreSQL's
        text = f"[{','.join(_quoted_name(value) for value in some)}]"
    return f"{{{text[1:-1]}}}"


def _quoted_name(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def as_parameter(rows: Iterable[Mapping[str, Any]]) -> str:
    return json.dumps(list(rows), default=_plain_text, separators=(",", ":"))


def _plain_text(value: object) -> str:
    return str(_adapted(value))


def execute(sql: str, parameters: Sequence[Any] = ()) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, _adapt_parameters(parameters))
        return int(cursor.rowcount)


def fetch(sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, _adapt_parameters(parameters))
        return list(cursor.fetchall())


def fetch_as_planned(sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The same for a fixed statement that is asked with every request: its plan is kept."""
    with cursor_that_keeps_plans() as cursor:
        cursor.execute(sql, _adapt_parameters(parameters))
        return list(cursor.fetchall())


def _adapt_parameters(parameters: Sequence[Any]) -> list[Any]:
    """Moments in the form in which the models store them: SQLite compares them as text."""
    return [_adapted(value) for value in parameters]


def _adapted(value: Any) -> Any:
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return value


def json_column(expression: str) -> str:
    """A JSON value that came as text inside the parameter, as the database keeps JSON."""
    if connection.vendor == "postgresql":
        return f"{expression}::jsonb"
    return expression
