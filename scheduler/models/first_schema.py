"""The tables of an empty SQLite database, ready made.

More than a hundred migrations take seconds, because Django builds its models anew for each of them.
What they leave behind is kept as text, and newer migrations go on from there. A test holds the text
against the migrations (tests/models/test_first_schema.py).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader

SCHEMA: Final = Path(__file__).resolve().parent.parent / "migrations" / "first_schema.sql"
"""One statement a line."""
_APPLIED = re.compile(r"""INSERT INTO "django_migrations" .* VALUES \('(\w+)', '(\w+)',""")

Migration = tuple[str, str]


def make_first_tables(connection: BaseDatabaseWrapper) -> bool:
    """Says whether it did. Everything else is left to the migrations.

    That is PostgreSQL, a database that has tables, and a version whose packages lack a migration
    that the text was made with.
    """
    if connection.vendor != "sqlite":
        return False
    statements = SCHEMA.read_text().splitlines()
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    if not migrations_in(statements) <= loader.disk_migrations.keys():
        return False
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.introspection.table_names(cursor):
            return False
        for statement in statements:
            cursor.execute(statement)
    return True


def migrations_in(statements: list[str]) -> set[Migration]:
    """Those that the text says were applied."""
    found = set()
    for statement in statements:
        applied = _APPLIED.match(statement)
        if applied:
            found.add((applied[1], applied[2]))
    return found
