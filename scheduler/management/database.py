"""Is the database there, and is it one that this version can work with?"""

from __future__ import annotations

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.utils import Error

from scheduler.supervisor.problems import StartError


def check_database_answers() -> None:
    try:
        connection.ensure_connection()
    except Error as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise StartError(
            f"The database {database_name()} does not answer: {reason}. Check DATABASE_URL, and that the server runs."
        ) from error


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
