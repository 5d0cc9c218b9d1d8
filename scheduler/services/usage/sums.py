"""Sums that are added to the rows of usage, in one statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from scheduler.domain.usage import DAY, HOUR, Account, moment_at
from scheduler.models import UsageRow
from scheduler.models.bulk import as_parameter, execute, values_table

_TYPES = {
    "grain": "text",
    "seconds": "integer",
    "resource": "text",
    "at": "timestamptz",
    "queue_name": "text",
    "namespace": "text",
    "owner": "text",
    "job": "text",
    **dict.fromkeys(UsageRow.FIGURES, "bigint"),
}
_AT_ONCE = 5000

_Names = tuple[str, str, str, str, str]  # grain, queue, namespace, owner, job


class Sums:
    """Units × seconds by bucket, collected and then written."""

    def __init__(self) -> None:
        self._found: defaultdict[tuple[_Names, int, int, str], dict[str, int]] = defaultdict(dict)

    def add_pod(
        self, account: Account, hour: int, figure: str, seconds: int, amounts: Mapping[str, int]
    ) -> None:
        """In a row of each grain."""
        queue, namespace, owner = account.queue, account.namespace, account.owner
        for names in (
            (UsageRow.JOB, queue, namespace, owner, account.job),
            (UsageRow.USER, queue, namespace, owner, ""),
            (UsageRow.QUEUE, queue, "", "", ""),
            (UsageRow.CLUSTER, "", "", "", ""),
        ):
            for resource, amount in amounts.items():
                self._add(names, hour, resource, figure, amount * seconds)

    def add_queue(self, queue: str, hour: int, resource: str, figure: str, value: int) -> None:
        """Of the cluster where the queue is empty."""
        grain = UsageRow.QUEUE if queue else UsageRow.CLUSTER
        self._add((grain, queue, "", "", ""), hour, resource, figure, value)

    def _add(self, names: _Names, hour: int, resource: str, figure: str, value: int) -> None:
        if not value:
            return
        for seconds, start in ((HOUR, hour), (DAY, hour // DAY * DAY)):
            row = self._found[names, seconds, start, resource]
            row[figure] = row.get(figure, 0) + value

    def write(self) -> None:
        rows = [self._row(key) for key in sorted(self._found)]
        for start in range(0, len(rows), _AT_ONCE):
            _add_rows(rows[start : start + _AT_ONCE])
        self._found.clear()

    def _row(self, key: tuple[_Names, int, int, str]) -> dict[str, Any]:
        (grain, queue, namespace, owner, job), seconds, start, resource = key
        found = self._found[key]
        return {
            "grain": grain,
            "seconds": seconds,
            "resource": resource,
            "at": moment_at(start),
            "queue_name": queue,
            "namespace": namespace,
            "owner": owner,
            "job": job,
            **{figure: found.get(figure, 0) for figure in UsageRow.FIGURES},
        }


def _add_rows(rows: list[dict[str, Any]]) -> None:
    table = UsageRow._meta.db_table
    columns = ", ".join(_TYPES)
    read = ", ".join(f"d.{name}" for name in _TYPES)
    added = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in UsageRow.FIGURES)
    execute(
        f"INSERT INTO {table} ({columns}) SELECT {read} FROM {values_table('d', _TYPES)} "
        f"WHERE true ON CONFLICT ({', '.join(UsageRow.KEY)}) DO UPDATE SET {added}",
        [as_parameter(rows)],
    )
