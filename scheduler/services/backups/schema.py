"""Which tables a state of the migrations has, and a database brought to that state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from scheduler.services.backups.archive import BadBackup, Manifest

Migrations = Mapping[str, Sequence[str]]


def applied_migrations() -> dict[str, tuple[str, ...]]:
    """What the database had, by app. Of apps that are no more nothing is kept."""
    loader = MigrationLoader(connection)
    found: dict[str, list[str]] = {}
    for app, name in sorted(loader.applied_migrations):
        if app in loader.migrated_apps:
            found.setdefault(app, []).append(name)
    return {app: tuple(names) for app, names in found.items()}


def tables_at(migrations: Migrations) -> list[str]:
    """The tables of that state, by name."""
    loader = MigrationLoader(connection)
    nodes = [(app, name) for app, names in migrations.items() for name in names]
    apps = loader.project_state(nodes).apps
    tables = set()
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed and not model._meta.proxy:
            tables.add(model._meta.db_table)
    return sorted(tables)


def check_known(manifest: Manifest) -> None:
    """Raises `BadBackup` for a backup of a newer version."""
    known = MigrationLoader(None).disk_migrations
    for app, names in sorted(manifest.migrations.items()):
        for name in names:
            if (app, name) not in known:
                raise BadBackup(
                    f"The backup was made by version {manifest.version} of Fumarole, which is "
                    f"newer than this one: {app}.{name} is not known here. "
                    f"Install version {manifest.version} or a later one, and restore with it."
                )


def migrate_to(migrations: Migrations) -> None:
    """An empty database gets the tables of that state, and no rows of ours or triggers."""
    executor = MigrationExecutor(connection)
    executor.migrate(_last_of_each_app(executor.loader, migrations))


def _last_of_each_app(loader: MigrationLoader, migrations: Migrations) -> list[tuple[str, str]]:
    last = []
    for app, names in migrations.items():
        for name in names:
            after = {node.key for node in loader.graph.node_map[app, name].children}
            if not any((app, other) in after for other in names):
                last.append((app, name))
    return last
