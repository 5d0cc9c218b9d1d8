"""Statements of a migration that would stop writers of a large table while they run."""

from __future__ import annotations

import re
from collections.abc import Iterable

LARGE = (
    "scheduler_pod",
    "scheduler_podgroup",
    "scheduler_job",
    "scheduler_decision",
    "scheduler_event",
    "scheduler_auditentry",
    "scheduler_queuesample",
    "scheduler_simulatedpod",
)
"""Tables that have very many rows where a cluster is large."""

_TABLE = rf'"(?P<table>{"|".join(LARGE)})"'
_RULES = {
    "builds an index while writers wait": rf"CREATE (UNIQUE )?INDEX (?!CONCURRENTLY).* ON {_TABLE}",
    "rewrites the table": rf"ALTER TABLE {_TABLE} ALTER COLUMN .* TYPE ",
    "reads all rows for NOT NULL": rf"ALTER TABLE {_TABLE} ALTER COLUMN .* SET NOT NULL",
    "checks all rows at once": rf"ALTER TABLE {_TABLE} ADD CONSTRAINT (?!.*NOT VALID)",
}


def locking(statements: Iterable[str]) -> list[str]:
    """What each of them does, in words; nothing for those that let others go on."""
    found = []
    for statement in statements:
        for words, pattern in _RULES.items():
            match = re.search(pattern, statement)
            if match:
                found.append(f"{match['table']}: {words}")
    return found
