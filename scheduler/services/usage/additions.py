"""Amounts that are added to rows, in one statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from scheduler.models.bulk import as_parameter, execute, values_table


def add_amounts(
    model: Any, key: Mapping[str, str], column: str, found: Counter[tuple[Any, ...]]
) -> None:
    """`key` names the columns of the unique key with their types, in the order of the tuples."""
    rows = []
    for names in sorted(found):
        if found[names]:
            rows.append({**dict(zip(key, names, strict=True)), column: found[names]})
    if not rows:
        return
    table = model._meta.db_table
    types = {**key, column: "bigint"}
    read = ", ".join(f"d.{name}" for name in types)
    execute(
        f"INSERT INTO {table} ({', '.join(types)}) SELECT {read} FROM {values_table('d', types)} "
        f"WHERE true ON CONFLICT ({', '.join(key)}) DO UPDATE SET "
        f"{column} = {table}.{column} + excluded.{column}",
        [as_parameter(rows)],
    )
