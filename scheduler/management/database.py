"""Is the database there, and is it one that this version can work with?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.utils import Error

from scheduler.supervisor.problems import StartError


def check_database_answers() -> None:
    try:
        connection.ensure_connection()
    except Error as error:
        raise StartError(
            f"The database {database_name()} does not answer: {_reason(error)}. Check DATABASE_URL, and that the server runs."
        ) from error


@contextmanager
def problems_in_words() -> Iterator[None]:
    """A database that answers and still can not be used: read-only, full, not one at all, or without the right to make tables."""
    try:
        yield
    except Error as error:
        raise StartError(
            f"The database {database_name()} can not be used: {_reason(error)}. "
            "Check that it is one of Fumarole's, that it may be written, and that there is room."
        ) from error


def _reason(error: Error) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


def check_database_not_newer() -> None:
    unknown = sorted(unknown_migrations())
    if unknown:
        app, name = unknown[-1]
        raise StartError(
            f"The database {database_name()} was migrated by a newer version of Fumarole: this one does not know {app}.{name}. "
            "Use that version again, or another database."
        )


def unknown_migrations() -> set[tuple[str, str]]:
    """Applied to the database, in an app that is installed here, and not among its migrations."""
    loader = MigrationLoader(connection)
    return {key for key in loader.applied_migrations if key[0] in loader.migrated_apps and key not in loader.disk_migrations}


def database_name() -> str:
    """For people, without the password."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return str(settings["NAME"])
    host = settings["HOST"] or settings["OPTIONS"].get("host") or "localhost"
    return f"{settings['NAME']} on {host}" + (f":{settings['PORT']}" if settings["PORT"] else "")
