"""python -m tests.tools.first_schema: writes scheduler/migrations/first_schema.sql anew, from the
migrations. Worth it when there are a dozen newer ones; until then they are applied one by one.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

APPS = ("admin", "auth", "axes", "contenttypes", "scheduler", "sessions")
"""Those that every installation has. Tables of single sign-on are made by their migrations."""
_NOW = "STRFTIME('%Y-%m-%d %H:%M:%f', 'now')"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "first.sqlite3"
        os.environ["DATABASE_URL"] = f"sqlite:///{file}"
        os.environ.setdefault("SECRET_KEY", "x" * 60)
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
        import django

        django.setup()
        from scheduler.models.first_schema import SCHEMA

        migrate_one_by_one()
        with sqlite3.connect(file) as database:
            SCHEMA.write_text("".join(f"{line}\n" for line in statements_of(database)))
    return 0


def migrate_one_by_one() -> None:
    """What the migrations do, without what follows after them."""
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    leaves = [leaf for leaf in executor.loader.graph.leaf_nodes() if leaf[0] in APPS]
    executor.migrate(leaves)
    connection.close()


def statements_of(database: sqlite3.Connection) -> Iterator[str]:
    """What makes the same tables with the same rows, a statement a line."""
    found = database.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
    )
    made = [row for row in found if not row[1].startswith("sqlite_")]
    for kind in ("table", "index", "trigger", "view"):
        yield from (_in_a_line(sql) for its_kind, _, sql in made if its_kind == kind)
    for kind, name, _ in made:
        if kind == "table":
            yield from _rows_of(database, name)


def _in_a_line(sql: str) -> str:
    if "\n" in sql:
        raise ValueError(f"This statement has more than one line: {sql}")
    return f"{sql};"


def _rows_of(database: sqlite3.Connection, table: str) -> Iterator[str]:
    if table == "django_migrations":
        for app, name in database.execute("SELECT app, name FROM django_migrations ORDER BY id"):
            yield (
                f'INSERT INTO "django_migrations" ("app", "name", "applied")'
                f" VALUES ('{app}', '{name}', {_NOW});"
            )
    elif database.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone() != (0,):
        raise ValueError(f"The migrations put rows into {table}, which nothing here copies.")


if __name__ == "__main__":
    raise SystemExit(main())
