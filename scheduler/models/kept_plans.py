"""Cursors whose statements PostgreSQL plans once for each connection.

Django writes values into the text of a statement, so that every one is read and planned anew. Here
the text stays the same, and the values follow it. Which connections may keep plans is a setting
(`DATABASE_KEEPS_PLANS`): a pooler between us and the server may give the next statement to another
connection.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db import connection


@cache
def _planning_once() -> Any:
    """Made when it is needed: on SQLite nobody loads psycopg."""
    import psycopg

    class PlanningOnce(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **more: Any) -> Any:
            return super().execute(query, params, **{**more, "prepare": True})

        def _send_query_prepared(self, name: bytes, pgq: Any, **more: Any) -> None:
            self._query = pgq  # Django's records say what was asked; psycopg leaves it out here
            super()._send_query_prepared(name, pgq, **more)

    return PlanningOnce


def cursor_that_keeps_plans() -> Any:
    """As `connection.cursor()`, whose checks and records it has."""
    cursor = connection.cursor()
    if connection.vendor == "postgresql":
        cursor.cursor = _planning_once()(connection.connection)
    return cursor
