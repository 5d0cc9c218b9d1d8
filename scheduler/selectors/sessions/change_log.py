"""The log of changed rows (models/change.py), read from where one stopped: which rows of which
kind, and in one state of the database.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
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
    """SQLite's transactions take the lock of writers at once (settings.py), which is right for all
    but this one.
    """
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


class Position(NamedTuple):
    """How far a reader has come, in which log."""

    log: str
    number: int


class LogState(NamedTuple):
    """Where the log stands, and where it begins."""

    log: str
    here: int
    begins_at: int
    is_named: bool  # its entries are known to belong to it (services/records/change_log.py)

    def lost(self, position: Position | None) -> bool:
        """What came after `position` was pruned, an older state of the database was put back, or it
        is another log.
        """
        return (
            position is None
            or position.log != self.log
            or not self.begins_at <= position.number <= self.here
        )


class _Words(NamedTuple):
    """How a database says which log it has and where that stands, what a reader has not seen, and
    many numbers as one value.
    """

    log: str
    here: str
    unseen: str
    together: str


_WORDS = {
    "postgresql": _Words(
        # The table has another number after it was restored, even in the same cluster.
        "(SELECT system_identifier || '/' || 'scheduler_change'::regclass::oid FROM "
        "pg_control_system())",
        "pg_snapshot_xmin(pg_current_snapshot())::text::bigint",
        '"transaction" >= %s',
        "array_agg(row_id)",
    ),
    "sqlite": _Words(
        "'sqlite'",
        "(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'scheduler_change')",
        "id > %s",
        "json_group_array(row_id)",
    ),
}
_HORIZON = "SELECT coalesce(max({column}), {default}) FROM scheduler_changehorizon"


def untouched_since(position: Position | None) -> Position | None:
    """Where the log stands now, if nothing was written to it since `position`.

    None if something was, or if that cannot be told.

    One statement sees one state of the database, so this needs no transaction around it.
    """
    if position is None:
        return None
    *columns, touched = fetch(
        f"SELECT {_state_columns()}, EXISTS (SELECT 1 FROM scheduler_change WHERE "
        f"{_vendor_words().unseen})",
        [position.number],
    )[0]
    state = _log_state(columns)
    if touched or state.lost(position):
        return None
    return Position(state.log, state.here)


def changes_since(position: Position | None) -> tuple[Position | None, dict[str, set[int]] | None]:
    """Where the log stands, and the ids that changed by kind.

    None for those when everything must be read.

    There is no position in a log whose entries may be of another one: everything is read until it
    has begun again. To be called with the reading of those rows inside `one_state_of_the_database`.
    """
    state = log_state()
    here = None
    if state.is_named:
        here = Position(state.log, state.here)
    if position is None or here is None or state.lost(position):
        return here, None
    words = _vendor_words()
    found = fetch(
        f"SELECT kind, {words.together} FROM scheduler_change WHERE {words.unseen} GROUP BY kind",
        [position.number],
    )
    return here, {kind: _ids_in(ids) for kind, ids in found}


def _ids_in(gathered: Any) -> set[int]:
    """PostgreSQL gathers an array, SQLite a JSON text."""
    if isinstance(gathered, str):
        return set(json.loads(gathered))
    return set(gathered)


def log_state() -> LogState:
    return _log_state(fetch(f"SELECT {_state_columns()}")[0])


def _state_columns() -> str:
    words = _vendor_words()
    begins_at = _HORIZON.format(column="position", default="0")
    named = _HORIZON.format(column="log", default="''")
    return f"{words.log}, {words.here}, ({begins_at}), ({named})"


def _log_state(columns: Sequence[Any]) -> LogState:
    log, here, begins_at, named = columns
    return LogState(log, int(here), int(begins_at), log == named)


def _vendor_words() -> _Words:
    return _WORDS[connection.vendor]
