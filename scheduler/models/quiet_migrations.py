"""Operations for migrations of large tables, which let others go on writing meanwhile.

On PostgreSQL an index is built beside the writers, and a constraint counts for new rows at once and
is checked on the old ones later, without a lock that stops anybody. SQLite has one writer anyway.

A migration with one of them has `atomic = False`, and nothing else in it. One that changes a large
table and then fills it has `atomic = False` too: `TogetherOnce` for the change, and after it the
rows in portions (`FillRows`), so that the lock of the change is not held meanwhile. If it is
stopped in between, it goes on when it is started again. A test reads the SQL of
migrations and names those that would lock a large table (tests/models/test_migration_locks.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.db import transaction
from django.db.migrations.operations import (
    AddConstraint,
    AddIndex,
    RemoveIndex,
    RunPython,
    SeparateDatabaseAndState,
)
from django.db.migrations.operations.base import Operation

ROWS_AT_ONCE = 2000


def _is_postgresql(schema_editor: Any) -> bool:
    return bool(schema_editor.connection.vendor == "postgresql")


class AddIndexQuietly(AddIndexConcurrently):
    def database_forwards(self, app_label: str, schema_editor: Any, old: Any, new: Any) -> None:
        if _is_postgresql(schema_editor):
            super().database_forwards(app_label, schema_editor, old, new)
        else:
            AddIndex.database_forwards(self, app_label, schema_editor, old, new)

    def database_backwards(self, app_label: str, schema_editor: Any, old: Any, new: Any) -> None:
        if _is_postgresql(schema_editor):
            super().database_backwards(app_label, schema_editor, old, new)
        else:
            AddIndex.database_backwards(self, app_label, schema_editor, old, new)


class RemoveIndexQuietly(RemoveIndexConcurrently):
    def database_forwards(self, app_label: str, schema_editor: Any, old: Any, new: Any) -> None:
        if _is_postgresql(schema_editor):
            super().database_forwards(app_label, schema_editor, old, new)
        else:
            RemoveIndex.database_forwards(self, app_label, schema_editor, old, new)

    def database_backwards(self, app_label: str, schema_editor: Any, old: Any, new: Any) -> None:
        if _is_postgresql(schema_editor):
            super().database_backwards(app_label, schema_editor, old, new)
        else:
            RemoveIndex.database_backwards(self, app_label, schema_editor, old, new)


class AddCheckQuietly(AddConstraintNotValid):
    """For new rows at once. `CheckOldRows` in the next migration looks at those that are there."""

    def database_forwards(self, app_label: str, schema_editor: Any, old: Any, new: Any) -> None:
        if _is_postgresql(schema_editor):
            super().database_forwards(app_label, schema_editor, old, new)
        else:
            AddConstraint.database_forwards(self, app_label, schema_editor, old, new)


class CheckOldRows(ValidateConstraint):
    def database_forwards(self, app_label: str, schema_editor: Any, old: Any, new: Any) -> None:
        if _is_postgresql(schema_editor):
            super().database_forwards(app_label, schema_editor, old, new)


class TogetherOnce(SeparateDatabaseAndState):
    """All of the operations in one transaction; none if they made `column` of `table` before."""

    def __init__(self, operations: Sequence[Operation], table: str, column: str) -> None:
        super().__init__(database_operations=operations, state_operations=operations)
        self._table = table
        self._column = column

    def database_forwards(self, app_label: str, schema_editor: Any, old: Any, new: Any) -> None:
        if not schema_editor.collect_sql and self._is_done(schema_editor.connection):
            return
        with transaction.atomic(using=schema_editor.connection.alias):
            super().database_forwards(app_label, schema_editor, old, new)
            _do_what_was_deferred(schema_editor)

    def _is_done(self, connection: Any) -> bool:
        with connection.cursor() as cursor:
            columns = connection.introspection.get_table_description(cursor, self._table)
        return any(column.name == self._column for column in columns)


def _do_what_was_deferred(schema_editor: Any) -> None:
    """Keys and indexes, which would otherwise come at the end of the whole migration."""
    for statement in schema_editor.deferred_sql:
        schema_editor.execute(statement)
    schema_editor.deferred_sql.clear()


class FillRows(RunPython):
    """`code` writes in transactions of its own, and what it wrote before it writes again."""

    def __init__(self, code: Callable[[Any, Any], None]) -> None:
        super().__init__(code, RunPython.noop, atomic=False)


def portions(connection: Any, table: str) -> Iterator[tuple[int, int]]:
    """Numbers of rows, each time from the first up to before the second."""
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT coalesce(max(id), 0) FROM "{table}"')  # nosec B608: our own tables
        (last,) = cursor.fetchone()
    for first in range(1, last + 1, ROWS_AT_ONCE):
        yield first, first + ROWS_AT_ONCE
