"""The log of changed rows (models/change.py), read from where one stopped: which rows of which kind, and in one state of the database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import connection, transaction

from scheduler.models.bulk import fetch


@contextmanager
def one_state_of_the_database() -> Iterator[None]:
    """Everything read inside belongs to the same moment. On SQLite reading waits for no writer."""
    with _reading_only(), transaction.atomic():
        if connection.vendor == "postgresql" and not connection.savepoint_ids:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield


@contextmanager
def _reading_only() -> Iterator[None]:
    """SQLite's transactions take the lock of writers at once (settings.py), which is right for all but this one."""
    if connection.vendor != "sqlite":
        yield
        return
    sqlite: Any = connection
    usual = sqlite.transaction_mode
    sqlite.transaction_mode = "DEFERRED"
    try:
        yield
    finally:
        sqlite.transaction_mode = usual


class _Words(NamedTuple):
    """How a database says where its log stands, what a reader has not seen, and many numbers as one value."""

    here: str
    unseen: str
    together: str


_WORDS = {
    "postgresql": _Words("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", '"transaction" >= %s', "array_agg(row_id)"),
    "sqlite": _Words(
        "(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'scheduler_change')", "id > %s", "json_group_array(row_id)"
    ),
}
_HORIZON = "(SELECT coalesce(max(position), 0) FROM scheduler_changehorizon)"


def untouched_since(position: int | None) -> int | None:
    """Where the log stands now, if nothing was written to it since `position`; None if something was, or if that can not be told.

    One statement sees one state of the database, so this needs no transaction around it.
    """
    if position is None:
        return None
    words = _WORDS[connection.vendor]
    sql = f"SELECT {words.here}, {_HORIZON}, EXISTS (SELECT 1 FROM scheduler_change WHERE {words.unseen})"
    here, horizon, touched = fetch(sql, [position])[0]
    return None if touched or _is_lost(position, here, horizon) else int(here)


def changes_since(position: int | None) -> tuple[int, dict[str, set[int]] | None]:
    """Where the log stands, and the ids that changed by kind; None for those when everything must be read.

    To be called with the reading of those rows inside `one_state_of_the_database`.
    """
    words = _WORDS[connection.vendor]
    here, horizon = fetch(f"SELECT {words.here}, {_HORIZON}")[0]
    if position is None or _is_lost(position, here, horizon):
        return here, None
    found = fetch(f"SELECT kind, {words.together} FROM scheduler_change WHERE {words.unseen} GROUP BY kind", [position])
    return here, {kind: set(json.loads(ids) if isinstance(ids, str) else ids) for kind, ids in found}


def _is_lost(position: int, here: int, horizon: int) -> bool:
    """What came after `position` was pruned, or an older state of the database was put back."""
    return position < horizon or here < position
