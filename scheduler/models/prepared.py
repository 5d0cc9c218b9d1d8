"""Queries that are written once: Django takes longer to put a small one into words than the database takes to answer it.

    _BY_NAME = Prepared(lambda: Queue.objects.filter(name=slot("name")).values_list("id", "state"))
    _BY_NAME.rows(name="team-a")

The rows are what the queryset itself would give, converted in the same way; only values of slots differ from call to call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL


@dataclass(frozen=True, slots=True)
class _Slot:
    name: str


def slot(name: str) -> RawSQL:
    """Stands for a value that is given with each call, in the form in which the database takes it."""
    return RawSQL("%s", [_Slot(name)])


@dataclass(frozen=True, slots=True)
class _Written:
    sql: str
    parameters: tuple[Any, ...]
    converters: Any
    compiler: Any


class Prepared:
    """`make` gives a `values_list` queryset with slots; it is asked once for each kind of database."""

    def __init__(self, make: Callable[[], QuerySet[Any, Any]]) -> None:
        self._make = make
        self._written: dict[str, _Written] = {}

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        written = self._written.get(connection.vendor) or self._write()
        given = [values[item.name] if isinstance(item, _Slot) else item for item in written.parameters]
        with connection.cursor() as cursor:
            cursor.execute(written.sql, given)
            found = cursor.fetchall()
        return self._converted(written, found)

    def row(self, **values: Any) -> tuple[Any, ...] | None:
        return next(iter(self.rows(**values)), None)

    def _write(self) -> _Written:
        compiler = self._make().query.get_compiler(DEFAULT_DB_ALIAS)
        sql, parameters = compiler.as_sql()
        columns = [column for column, _, _ in compiler.select]
        written = _Written(sql, tuple(parameters), compiler.get_converters(columns), compiler)
        self._written[connection.vendor] = written
        return written

    def _converted(self, written: _Written, rows: list[Any]) -> list[tuple[Any, ...]]:
        if not written.converters:
            return rows
        return [tuple(row) for row in written.compiler.apply_converters(rows, written.converters)]
