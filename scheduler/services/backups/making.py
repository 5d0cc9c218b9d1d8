"""`manage.py backup`: everything that is stored, as of one moment, while the system runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

from django.db import connection
from django.utils import timezone

from scheduler import VERSION
from scheduler.selectors.sessions.change_log import one_state_of_the_database
from scheduler.services.backups.archive import Manifest, new_archive
from scheduler.services.backups.schema import applied_migrations, tables_at
from scheduler.services.backups.tables import columns_of, last_id_of, read_rows

LEFT_OUT: Final = {
    "django_session": "whoever has the file could go on as somebody who was signed in",
    "scheduler_keptanswer": "answers may hold a new token in plain text",
    "scheduler_change": "the log of changed rows means something in its own database only",
    "scheduler_changehorizon": "where that log begins",
}
"""Tables whose rows are not kept, and why."""


def make_backup(path: Path) -> Manifest:
    """Raises `OSError` where the file cannot be written. What is there is replaced at the end."""
    with one_state_of_the_database(), new_archive(path) as writer:
        migrations = applied_migrations()
        for table in tables_at(migrations):
            if table not in LEFT_OUT:
                columns = columns_of(table)
                writer.add_table(table, columns, read_rows(table, columns), last_id_of(table))
        manifest = Manifest(
            version=VERSION,
            database=_server(),
            made_at=timezone.now().isoformat(),
            migrations=migrations,
            tables=tuple(writer.tables),
            left_out=tuple(LEFT_OUT),
        )
        writer.finish(manifest)
    return manifest


def _server() -> str:
    """The kind of database and its version, for people."""
    connection.ensure_connection()
    if connection.vendor == "postgresql":
        number = cast(Any, connection).pg_version
        return f"PostgreSQL {number // 10_000}.{number % 10_000}"
    return f"SQLite {'.'.join(map(str, cast(Any, connection).Database.sqlite_version_info))}"
