"""Statements that are written once: Django takes longer to put a small one into words than the
database takes to answer it.

    _BY_NAME = Prepared(lambda: Queue.objects.filter(name=slot("name")).values_list("id", "state"))
    _BY_NAME.rows(name="team-a")

The rows are what the queryset itself would give, converted in the same way; only values of slots
differ from call to call.

PostgreSQL keeps the plans of those that are asked with every request (`keep_plan`): to plan a small
statement takes it longer than to carry it out.

    _NEW_JOB = PreparedInsert(Job)
    _NEW_JOB.insert([Job(name="train", …)])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import BooleanField, Field, Model, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.sql.subqueries import UpdateQuery

from scheduler.models.kept_plans import cursor_that_keeps_plans


@dataclass(frozen=True, slots=True)
class _Slot:
    name: str


def slot(name: str, field: Field[Any, Any] | None = None) -> RawSQL:
    """Stands for a value that each call gives, in the form that the database takes.

    It needs a field where it is calculated with.
    """
    return RawSQL("%s", [_Slot(name)], output_field=field)


def condition_with_slot(sql: str, name: str) -> RawSQL:
    """A condition of our own words with one `%s` in it, which stands for the value."""
    return RawSQL(sql, [_Slot(name)], output_field=BooleanField())  # noqa: S611 - our own words


@dataclass(frozen=True, slots=True)
class _Written:
    sql: str
    parameters: tuple[Any, ...]
    converters: Any
    compiler: Any


class Prepared:
    """`make` gives a `values_list` queryset with slots.

    It is asked once for each kind of database. With `keep_plan` every value must have one type
    wherever it stands, and there must not be many such statements: each connection keeps its own.
    """

    def __init__(self, make: Callable[[], QuerySet[Any, Any]], *, keep_plan: bool = False) -> None:
        self._make = make
        self._keep_plan = keep_plan
        self._written: dict[str, _Written] = {}

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        written = self._written.get(connection.vendor) or self._write()
        with self._cursor() as cursor:
            cursor.execute(written.sql, _filled(written.parameters, values))
            found = cursor.fetchall()
        return self._converted(written, found)

    def row(self, **values: Any) -> tuple[Any, ...] | None:
        return next(iter(self.rows(**values)), None)

    def _cursor(self) -> Any:
        if self._keep_plan:
            return cursor_that_keeps_plans()
        return connection.cursor()

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


def _filled(parameters: Iterable[Any], values: Mapping[str, Any]) -> list[Any]:
    given = []
    for item in parameters:
        if isinstance(item, _Slot):
            given.append(values[item.name])
        else:
            given.append(item)
    return given


class PreparedUpdate:
    """`make` gives a queryset with slots, and what its rows are set to. Its plan is kept.

    Nobody is told by a signal, as with `update()` of a queryset.
    """

    def __init__(self, make: Callable[[], tuple[QuerySet[Any, Any], dict[str, Any]]]) -> None:
        self._make = make
        self._written: dict[str, tuple[str, tuple[Any, ...]]] = {}

    def run(self, **values: Any) -> int:
        """How many rows there were."""
        sql, parameters = self._written.get(connection.vendor) or self._write()
        with cursor_that_keeps_plans() as cursor:
            cursor.execute(sql, _filled(parameters, values))
            return int(cursor.rowcount)

    def _write(self) -> tuple[str, tuple[Any, ...]]:
        rows, changes = self._make()
        query: Any = rows.query.chain(UpdateQuery)
        query.add_update_values(changes)
        sql, parameters = query.get_compiler(DEFAULT_DB_ALIAS).as_sql()
        written = sql, tuple(parameters)
        self._written[connection.vendor] = written
        return written


class PreparedInsert:
    """New rows of a model, their keys filled in.

    Nobody is told by a signal, and no row may hold an expression. With `keep_plan` PostgreSQL keeps
    the plan for a few rows: for what comes with many requests.
    """

    MOST_ROWS = 16
    """As many are written down for; more are left to `bulk_create`."""
    MOST_ROWS_PLANNED = 4
    """Each number of rows is a statement of its own, and a connection keeps few."""

    def __init__(self, model: type[Model], *, keep_plan: bool = False) -> None:
        self._model = model
        self._keep_plan = keep_plan
        self._written: dict[tuple[str, int], str] = {}

    def insert(self, rows: Sequence[Model]) -> None:
        if len(rows) > self.MOST_ROWS:
            self._model._default_manager.bulk_create(rows, batch_size=2000)
        elif rows:
            self._insert_few(rows)

    def _insert_few(self, rows: Sequence[Model]) -> None:
        sql = self._written.get((connection.vendor, len(rows))) or self._write(len(rows))
        database = connections[DEFAULT_DB_ALIAS]  # itself: `connection` looks for it at every touch
        values = []
        for row in rows:
            for field in self._fields:
                values.append(field.get_db_prep_save(field.pre_save(row, True), database))
        with self._cursor(len(rows)) as cursor:
            cursor.execute(sql, values)
            keys = cursor.fetchall()
        for row, (key,) in zip(rows, keys, strict=True):
            note_saved(row, key)

    def _cursor(self, rows: int) -> Any:
        if self._keep_plan and rows <= self.MOST_ROWS_PLANNED:
            return cursor_that_keeps_plans()
        return connection.cursor()

    @cached_property
    def _fields(self) -> list[Field[Any, Any]]:
        return [field for field in self._model._meta.local_concrete_fields if not field.primary_key]

    def _write(self, rows: int) -> str:
        quote = connection.ops.quote_name
        row = f"({', '.join(['%s'] * len(self._fields))})"
        columns = ", ".join(quote(str(field.column)) for field in self._fields)
        table = quote(self._model._meta.db_table)
        key = quote(str(self._model._meta.pk.column))
        sql = f"INSERT INTO {table} ({columns}) VALUES {', '.join([row] * rows)} RETURNING {key}"
        self._written[connection.vendor, rows] = sql
        return sql


def note_saved(row: Model, key: Any) -> None:
    """It has been inserted by a statement of our own, under this key."""
    row.pk = key
    row._state.adding = False
    row._state.db = DEFAULT_DB_ALIAS
