"""`manage.py restore`: a backup put into an empty database.

The tables are made as they were in the version of the backup, filled, and then brought up to date
as by any other upgrade.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management import call_command
from django.db import DataError, IntegrityError, connection, transaction

from scheduler.domain.plans import counted
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.backups.archive import (
    BackupReader,
    BadBackup,
    Manifest,
    TableEntry,
    open_archive,
)
from scheduler.services.backups.schema import check_known, migrate_to, tables_at
from scheduler.services.backups.tables import columns_of, empty_tables, set_last_id, write_rows
from scheduler.services.records import audit


class NotEmpty(Exception):
    """The database holds something already."""

    def __init__(self, tables: int) -> None:
        super().__init__(
            f"It has {counted(tables, 'table')} already. "
            "A backup is restored into an empty database: create one, and name it in DATABASE_URL."
        )


def check_backup(path: Path) -> Manifest:
    """Is the file whole, and can this version restore it? Raises `BadBackup`. Asks no database."""
    with open_archive(path) as backup:
        check_known(backup.manifest)
        backup.check_sums()
        return backup.manifest


def restore_backup(path: Path) -> Manifest:
    """Raises `NotEmpty` and `BadBackup`. No row is there then, but there may be tables."""
    manifest = check_backup(path)
    _require_empty()
    migrate_to(manifest.migrations)
    with open_archive(path) as backup, _references_wait(), transaction.atomic():
        _load(backup)
    call_command("migrate", interactive=False, verbosity=0)
    _note(path, manifest)
    return manifest


def _require_empty() -> None:
    tables = connection.introspection.table_names()
    if tables:
        raise NotEmpty(len(tables))


@contextmanager
def _references_wait() -> Iterator[None]:
    """Rows may come before those that they refer to. PostgreSQL looks at the end by itself.

    SQLite has to be told, outside of transactions.
    """
    if connection.vendor != "sqlite":
        yield
        return
    connection.disable_constraint_checking()
    try:
        yield
    finally:
        connection.enable_constraint_checking()


def _load(backup: BackupReader) -> None:
    known = tables_at(backup.manifest.migrations)
    empty_tables(known)
    for table in backup.manifest.tables:
        if table.name not in known:
            raise BadBackup(f"The backup has a table {table.name} that its version has not.")
        _require_known_columns(table)
        with backup.open_table(table) as file, _rows_fit(table.name):
            write_rows(table, file)
        if table.last_id is not None:
            set_last_id(table.name, table.last_id)
    with _rows_fit("other tables"):
        connection.check_constraints()


def _require_known_columns(table: TableEntry) -> None:
    """The names become part of a statement, so they are never taken from the file unseen."""
    known = {column.name for column in columns_of(table.name)}
    given = [column.name for column in table.columns]
    if len(set(given)) != len(given) or not known.issuperset(given):
        raise BadBackup(f"The backup has columns of {table.name} that its version has not.")


@contextmanager
def _rows_fit(where: str) -> Iterator[None]:
    try:
        with connection.wrap_database_errors:
            yield
    except (DataError, IntegrityError, ValueError) as problem:
        said = str(problem).partition("\n")[0]
        raise BadBackup(
            f"The backup is damaged: the rows of {where} do not fit ({said}). Drop the database, "
            "create an empty one, and use another copy of the file."
        ) from problem


def _note(path: Path, manifest: Manifest) -> None:
    audit.record(
        SYSTEM,
        "RestoreBackup",
        "Cluster",
        "cluster",
        after={"madeAt": manifest.made_at, "version": manifest.version, "rows": manifest.rows},
        message=f"The backup {path.name} of {manifest.made_at} was restored.",
    )
