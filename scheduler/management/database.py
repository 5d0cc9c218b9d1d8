"""Does the database answer, and can this version work with it?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.utils import Error

from scheduler.conf import is_kubernetes
from scheduler.models import Mirror, Node
from scheduler.outages import is_damage
from scheduler.supervisor.problems import StartError

_LARGEST_CHECKED = 256 * 1024 * 1024  # bytes; checking more would delay each start


def check_may_be_changed() -> None:
    """Commands that change what pages and the API change keep to the same switch."""
    if settings.READ_ONLY:
        raise StartError(
            "This installation is read-only (READ_ONLY=1). Nothing was changed. "
            "Take the setting out first."
        )


def check_database_answers() -> None:
    try:
        connection.ensure_connection()
        if connection.vendor == "sqlite":
            _check_file_is_whole()
    except Error as error:
        raise StartError(_unreachable(error)) from error


def _unreachable(error: Error) -> str:
    """What is wrong and what to do about it. SQLite is a file, so no server is named."""
    if is_damage(error):
        return _damaged(_reason(error))
    if connection.vendor == "sqlite":
        return (
            f"The database {database_name()} cannot be opened: {_reason(error)}. "
            "Check that the file and its folder can be read and written by this user."
        )
    return (
        f"The database {database_name()} does not answer: {_reason(error)}. "
        "Check DATABASE_URL, and that the server runs."
    )


def _damaged(reason: str) -> str:
    return (
        f"The database {database_name()} is damaged, or is no SQLite database: {reason}. "
        "Restore the file from a backup. Without one, move it away: "
        "the next start makes a new, empty one."
    )


def _check_file_is_whole() -> None:
    """Otherwise a query would meet the damage some day. It is better to say so now."""
    path = Path(str(connection.settings_dict["NAME"]))
    if not path.is_file() or path.stat().st_size > _LARGEST_CHECKED:
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA quick_check(1)")
        found = cursor.fetchone()[0]
    if found != "ok":
        raise StartError(_damaged(str(found).splitlines()[-1].rstrip(".")))


@contextmanager
def problems_in_words() -> Iterator[None]:
    """For a database that answers and cannot be used: read-only, full, or without rights."""
    try:
        yield
    except Error as error:
        if is_damage(error):
            raise StartError(_damaged(_reason(error))) from error
        raise StartError(
            f"The database {database_name()} cannot be used: {_reason(error)}. "
            "Check that it is one of Fumarole's, that it can be written, and that there is room."
        ) from error


def _reason(error: Error) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


def check_database_not_newer() -> None:
    unknown = sorted(unknown_migrations())
    if unknown:
        app, name = unknown[-1]
        raise StartError(
            f"The database {database_name()} was migrated by a newer version of Fumarole: "
            f"this one does not know {app}.{name}. "
            "Use that version again, or another database."
        )


def check_cluster_is_the_same() -> None:
    """What is mirrored replaces everything that is there, and so must not meet anything else."""
    is_mirror = Mirror.objects.exists()
    if is_kubernetes() and not is_mirror and Node.objects.exists():
        raise StartError(
            f"The database {database_name()} holds a simulated cluster, "
            f"and SCHEDULER_CLUSTER is kubernetes. {_USE_ANOTHER}"
        )
    if is_mirror and not is_kubernetes():
        raise StartError(
            f"The database {database_name()} mirrors a Kubernetes cluster, "
            f"and SCHEDULER_CLUSTER is not kubernetes. {_USE_ANOTHER}"
        )


_USE_ANOTHER = (
    "Use another database (DATABASE_URL), or another folder: FUMAROLE_VAR=/path/to/folder"
)


def unknown_migrations() -> set[tuple[str, str]]:
    """Migrations of our apps that were applied to the database and do not exist here."""
    loader = MigrationLoader(connection)
    unknown = loader.applied_migrations.keys() - loader.disk_migrations.keys()
    migrations: set[tuple[str, str]] = set()
    for app, name in unknown:
        if app in loader.migrated_apps:
            migrations.add((app, name))
    return migrations


def database_name() -> str:
    """For people, without the password."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return str(settings["NAME"])
    host = settings["HOST"] or settings["OPTIONS"].get("host") or "localhost"
    if settings["PORT"]:
        host = f"{host}:{settings['PORT']}"
    return f"{settings['NAME']} on {host}"
