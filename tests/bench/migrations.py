"""How long each migration since the first release takes on a million pods, and what it locks.

`nice .venv/bin/python -m tests.bench.migrations [PODS]`: PostgreSQL, a database of release 0.1.0
made large, and each later migration by itself. A second connection looks every few milliseconds
which locks are held on the large tables. A lock that stops readers or writers is told with the time
for which it was held.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import defaultdict
from typing import Any

from tests import postgres
from tests.upgrades.releases import backups

PODS = 1_000_000
LARGE = {
    "scheduler_pod": 1.0,
    "scheduler_podgroup": 0.1,
    "scheduler_decision": 0.3,
    "scheduler_event": 0.3,
}
"""Rows of each large table, as a share of the pods."""
_LOOKS_EVERY = 0.005  # seconds
_STOPS = {
    "AccessExclusiveLock": "readers and writers",
    "ExclusiveLock": "writers",
    "ShareRowExclusiveLock": "writers",
    "ShareLock": "writers",
}
_HELD = """
SELECT DISTINCT c.relname, l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
WHERE l.granted AND l.pid = %s AND c.relname = ANY(%s) AND l.mode = ANY(%s)
"""


class Watcher:
    """Looks which locks one connection holds, until it is stopped."""

    def __init__(self, address: str, pid: int) -> None:
        self._address = address
        self._pid = pid
        self._stop = threading.Event()
        self.held: dict[tuple[str, str], float] = defaultdict(float)
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        import psycopg

        address = self._address.replace("postgres://", "postgresql://")
        with psycopg.connect(address, autocommit=True) as connection:
            last = time.perf_counter()
            while not self._stop.is_set():
                found = connection.execute(_HELD, [self._pid, list(LARGE), list(_STOPS)])
                now = time.perf_counter()
                for table, mode in found.fetchall():
                    self.held[table, mode] += now - last
                last = now
                time.sleep(_LOOKS_EVERY)


def main(pods: int) -> None:
    address = postgres.new_database("fumarole_migrations")
    os.environ["DATABASE_URL"] = address
    os.environ.setdefault("SECRET_KEY", "bench")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    os.environ["LOG_LEVEL"] = "ERROR"
    import django

    django.setup()
    _fill(pods)
    print(f"\n| migration on {pods:,} pods | seconds | stopped, and for how long |\n|---|---|---|")
    for name in _later_migrations():
        seconds, held = _measured(address, name)
        print(f"| `{name}` | {seconds:.2f} | {_in_words(held)} |", flush=True)


def _fill(pods: int) -> None:
    """The oldest release, with the rows of its tables repeated."""
    from django.db import connection, transaction

    from scheduler.services.backups.archive import open_archive
    from scheduler.services.backups.restoring import _load
    from scheduler.services.backups.schema import migrate_to

    oldest = next(iter(backups().values()))
    with open_archive(oldest) as backup:
        migrate_to(backup.manifest.migrations)
        with transaction.atomic():
            _load(backup)
    for table, share in LARGE.items():
        _multiply(table, int(pods * share))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _multiply(table: str, wanted: int) -> None:
    """The rows again and again, each with a number, identity and name of its own."""
    from django.db import connection

    from scheduler.services.backups.tables import columns_of

    own = {"id": "nextval(pg_get_serial_sequence(%s, 'id'))", "uid": "gen_random_uuid()"}
    names = [column.name for column in columns_of(table)]
    values = []
    for name in names:
        value = own.get(name, f'"{name}"')
        if name == "name":
            value = "left(\"name\", 200) || '-' || i"
        if name == "job_id":
            value = "NULL"
        values.append(value)
    columns = ", ".join(f'"{name}"' for name in names)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        times = wanted // max(cursor.fetchone()[0], 1)
        cursor.execute(
            f"INSERT INTO {table} ({columns}) SELECT {', '.join(values)} "
            f"FROM {table} CROSS JOIN generate_series(1, %s) AS i",
            [table, times],
        )
        print(f"{table}: {cursor.rowcount:,} rows", flush=True)


def _later_migrations() -> list[str]:
    from django.db import connection
    from django.db.migrations.loader import MigrationLoader

    loader = MigrationLoader(connection)
    names = sorted(name for app, name in loader.disk_migrations if app == "scheduler")
    return [name for name in names if ("scheduler", name) not in loader.applied_migrations]


def _measured(address: str, name: str) -> tuple[float, dict[tuple[str, str], float]]:
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    connection.ensure_connection()
    executor = MigrationExecutor(connection)
    wrapped: Any = connection.connection
    with Watcher(address, wrapped.info.backend_pid) as watcher:
        begun = time.perf_counter()
        executor.migrate([("scheduler", name)])
        seconds = time.perf_counter() - begun
    return seconds, watcher.held


def _in_words(held: dict[tuple[str, str], float]) -> str:
    parts = []
    for (table, mode), seconds in sorted(held.items(), key=lambda pair: -pair[1]):
        parts.append(f"{_STOPS[mode]} of `{table}` {seconds:.2f} s")
    return "; ".join(parts) or "nobody"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else PODS)
