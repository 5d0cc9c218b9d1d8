"""One backup restored into the database of DATABASE_URL, and the scheduler tried on it.

A process of its own, because Django settles its database once. Prints what it found as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import django


def main(file: Path) -> None:
    django.setup()
    from scheduler.services.backups.restoring import restore_backup

    manifest = restore_backup(file)
    rows = {table.name: table.rows for table in manifest.tables}
    last_ids = {table.name: table.last_id for table in manifest.tables}
    print(json.dumps(_found(rows, last_ids)))


def _found(rows: dict[str, int], last_ids: dict[str, Any]) -> dict[str, Any]:
    from scheduler.models import Pod, SchedulingSession
    from tests.histories import broken_rules
    from tests.worlds import job, phases, run_session

    kept = _counted(rows)
    runner = _runner()
    first = run_session(runner)
    made = job("after-the-upgrade", cpu="10m")
    for _ in range(3):
        run_session(runner)
    sessions = SchedulingSession.objects.filter(number__gte=first.number).order_by("number")
    return {
        "lost": {name: count for name, count in rows.items() if kept.get(name, count) < count},
        "pods": rows["scheduler_pod"],
        "sessions": [row.state for row in sessions],
        "reloaded": [row.counts.get("reloaded") for row in sessions],
        "phases": phases(made),
        "numbers_go_on": Pod.objects.latest("id").pk > (last_ids["scheduler_pod"] or 0),
        "triggers_are_there": _has_all_triggers(),
        "broken_rules": broken_rules(),
    }


def _runner() -> Any:
    """The one before held the lease when the backup was taken."""
    from django.utils import timezone

    from scheduler.models import Lease
    from scheduler.services.sessions.runner import SessionRunner

    Lease.objects.update(expires_at=timezone.now())
    return SessionRunner("trial")


def _counted(names: dict[str, int]) -> dict[str, int]:
    """How many rows the tables have that are still there under their name."""
    from django.db import connection

    there = set(connection.introspection.table_names())
    counts = {}
    with connection.cursor() as cursor:
        for name in there & names.keys():
            cursor.execute(f'SELECT count(*) FROM "{name}"')
            counts[name] = cursor.fetchone()[0]
    return counts


def _has_all_triggers() -> bool:
    from django.db import connection

    from scheduler.models import triggers

    return triggers._present_triggers(connection) >= triggers._NAMES


if __name__ == "__main__":
    main(Path(sys.argv[1]))
