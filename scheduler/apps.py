from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class SchedulerConfig(AppConfig):
    name = "scheduler"

    def ready(self) -> None:
        post_migrate.connect(_ensure_builtin_objects, sender=self)


def _ensure_builtin_objects(using: str, **_signal: Any) -> None:
    """`root` and `default` always exist: after the first migration, and after tests emptied the
    tables.
    """
    from django.db import connections

    from scheduler.models.triggers import ensure_triggers
    from scheduler.services.demo.setup import ensure_builtin_objects
    from scheduler.services.records.change_log import ensure_own_change_log

    if "scheduler_savedscenario" not in connections[using].introspection.table_names():
        return  # migrated backwards: the tables are gone
    ensure_triggers(connections[using])
    ensure_builtin_objects(using)
    ensure_own_change_log()
