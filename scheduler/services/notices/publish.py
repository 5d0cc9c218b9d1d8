"""Say that something happened: one row for each happening that somebody asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.utils import timezone

from scheduler.domain.notices import LONGEST_MESSAGE, LONGEST_TITLE, Note
from scheduler.models.bulk import as_parameter, execute, json_column, values_table
from scheduler.selectors.notices.rules import Watch, wanted_notes, watches_of

_COLUMNS: Final = {
    "kind": "text",
    "key": "text",
    "title": "text",
    "message": "text",
    "queue": "text",
    "namespace": "text",
    "name": "text",
    "owner": "text",
    "users": "text",
    "by_default": "text",
    "path": "text",
}


def publish(notes: Iterable[Note], watches: Mapping[str, Watch] | None = None) -> None:
    """To be called in the transaction of what happened. See the package for the fields.

    `watches` are those of all kinds among the notes, where the caller has asked for them already.
    """
    notes = list(notes)
    if not notes:
        return
    if watches is None:
        watches = watches_of({note.kind for note in notes})
    rows = {note.key: _row(note) for note in wanted_notes(notes, watches)}
    if rows:
        # In the order of their keys: two who say the same at once do not wait for each other.
        _insert([rows[key] for key in sorted(rows)])


def _row(note: Note) -> dict[str, Any]:
    return {
        "kind": note.kind.value,
        "key": note.key[:200],
        "title": note.title[:LONGEST_TITLE],
        "message": note.message[:LONGEST_MESSAGE],
        "queue": note.queue,
        "namespace": note.namespace,
        "name": note.name,
        "owner": note.owner,
        "users": json.dumps(note.users),
        "by_default": json.dumps(note.by_default),
        "path": note.path[:700],
    }


def _insert(rows: list[dict[str, Any]]) -> None:
    same = 'd."kind", d."key", d.title, d.message, d.namespace, d."name", d.owner, d."path"'
    execute(
        'INSERT INTO scheduler_happening ("kind", "key", title, message, namespace, "name", owner, '
        '"path", users, by_default, queue_id, "at") '
        f"SELECT {same}, {json_column('d.users')}, {json_column('d.by_default')}, q.id, %s "
        f"FROM {values_table('d', _COLUMNS)} "
        "LEFT JOIN scheduler_queue q ON q.name = d.queue AND q.deleted_at IS NULL "
        'WHERE true ON CONFLICT ("key") DO NOTHING',
        [timezone.now(), as_parameter(rows)],
    )
