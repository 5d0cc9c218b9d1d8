"""The rows of queues: many new or changed ones in a few statements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from scheduler.domain.lifecycle import DerivedState
from scheduler.domain.queue_fields import (
    AMOUNT_FIELDS,
    METADATA_FIELDS,
    PLAIN_FIELDS,
    FieldKind,
    names_of,
    stored_values,
)
from scheduler.domain.queues import QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import Resources
from scheduler.models import Queue
from scheduler.models.bulk import as_parameter, execute, json_column, values_table
from scheduler.models.prepared import PreparedInsert
from scheduler.selectors.queues.tree import StoredQueue

_SQL_TYPES: Final = {
    FieldKind.NUMBER: "bigint",
    FieldKind.SECONDS: "bigint",
    FieldKind.LIMIT: "bigint",
    FieldKind.TRUTH: "boolean",
}
_JSON_COLUMNS: Final = (*names_of(AMOUNT_FIELDS), *METADATA_FIELDS)
_SPEC_COLUMNS: Final = {
    "id": "bigint",
    "parent_id": "bigint",
    **{field.name: _SQL_TYPES.get(field.kind, "text") for field in PLAIN_FIELDS},
    **dict.fromkeys(METADATA_FIELDS, "text"),
}
_WISH_COLUMNS: Final = {
    "id": "bigint",
    "wish": "text",
    "is_unknown": "boolean",
    "versions": "bigint",
    "updated_by": "text",
}
_NEW_QUEUE = PreparedInsert(Queue)


def insert_queues(
    new: Mapping[str, Queue], tree: QueueTree, stored: dict[str, StoredQueue]
) -> None:
    """Adds them to `stored` too.

    Parents before their children, a level at a time: a row names its parent by its key.
    """
    waiting = dict(new)
    while waiting:
        ready = []
        for name, row in waiting.items():
            if tree[name].parent in stored:
                ready.append(row)
        # The rules admit no queue without its parent. Should one come all the same, this must
        # not go round for ever with the tree locked.
        if not ready:
            raise LookupError(f"the parents of {', '.join(waiting)} are not there")
        for row in ready:
            row.parent_id = stored[tree[row.name].parent].pk
        _NEW_QUEUE.insert(ready)
        for row in ready:
            stored[row.name] = _stored(row, tree[row.name])
            del waiting[row.name]


def _stored(row: Queue, spec: QueueSpec) -> StoredQueue:
    """A new row, before anything has been derived for it."""
    standing = DerivedState(QueueState(row.state))
    return StoredQueue(
        row.pk,
        row.parent_id,
        spec,
        standing,
        row.is_unknown,
        row.state_since,
        conditions=[],
        warnings=[],
    )


def write_specs(queues: list[StoredQueue]) -> None:
    assignments = []
    for name in _SPEC_COLUMNS:
        value = f"d.{name}"
        if name in _JSON_COLUMNS:
            value = json_column(value)
        if name != "id":
            assignments.append(f'"{name}" = {value}')
    execute(
        f"UPDATE scheduler_queue SET {', '.join(assignments)} "
        f"FROM {values_table('d', _SPEC_COLUMNS)} WHERE scheduler_queue.id = d.id",
        [as_parameter(_spec_row(queue) for queue in queues)],
    )


def _spec_row(queue: StoredQueue) -> dict[str, Any]:
    row = stored_values(queue.spec)
    for name in _JSON_COLUMNS:
        row[name] = _text(row[name])
    return {**row, "id": queue.pk, "parent_id": queue.parent_pk}


def _text(value: Mapping[str, Any] | Resources) -> str:
    return json.dumps(dict(value))


def write_requested_states(
    queues: list[StoredQueue],
    versions: Mapping[str, int],
    authors: Mapping[str, str],
    now: datetime,
) -> None:
    rows = []
    for queue in queues:
        rows.append(
            {
                "id": queue.pk,
                "wish": queue.spec.state.value,
                "is_unknown": queue.is_unknown,
                "versions": versions[queue.name],
                "updated_by": authors[queue.name],
            }
        )
    execute(
        "UPDATE scheduler_queue SET wish = d.wish, is_unknown = d.is_unknown, updated_by = "
        "d.updated_by, updated_at = %s, "
        "resource_version = scheduler_queue.resource_version + d.versions "
        f"FROM {values_table('d', _WISH_COLUMNS)} WHERE scheduler_queue.id = d.id",
        [now, as_parameter(rows)],
    )
