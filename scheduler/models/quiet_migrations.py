"""Operations for migrations of large tables, which let others go on writing meanwhile.

On PostgreSQL an index is built beside the writers, and a constraint counts for new rows at once and
is checked on the old ones later, without a lock that stops anybody. SQLite has one writer anyway.

A migration with one of them has `atomic = False`, and nothing else in it. A test reads the SQL of
migrations and names those that would lock a large table (tests/models/test_migration_locks.py).
"""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.db.migrations.operations import AddConstraint, AddIndex, RemoveIndex


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
