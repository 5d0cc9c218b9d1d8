"""Events as Volcano records them.

The same message about the same object is one row, with a count, a first and a last time.

The same thing with other figures is the same thing: “36 of 40 nodes” and “37 of 40 nodes” are one
row, with the newest message. Or a job that waits on a busy cluster would leave a row with every
session.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from scheduler.models.bulk import as_parameter, execute, values_table

_FIGURES = re.compile(r"\d+")
_COLUMNS = {
    "type": "text",
    "kind": "text",
    "namespace": "text",
    "name": "text",
    "queue_name": "text",
    "reason": "text",
    "code": "text",
    "message": "text",
    "message_digest": "text",
    "count": "integer",
}


@dataclass(frozen=True, slots=True)
class EventNote:
    """One thing that happened to one object."""

    kind: str
    name: str
    reason: str
    message: str = ""
    namespace: str = ""
    queue: str = ""
    warning: bool = False
    code: str = ""  # of a gang that waits: why


def record_events(notes: Iterable[EventNote], now: datetime) -> None:
    """Write them in one statement, folding repeats."""
    rows = _fold_notes(notes)
    if not rows:
        return
    names = ", ".join(f'"{name}"' for name in _COLUMNS)
    execute(
        f"INSERT INTO scheduler_event ({names}, first_at, last_at) "
        f"SELECT {names}, %s, %s FROM {values_table('d', _COLUMNS)} WHERE true "
        "ON CONFLICT (kind, namespace, name, reason, message_digest) DO UPDATE "
        'SET "count" = scheduler_event."count" + excluded."count", '
        "last_at = excluded.last_at, type = excluded.type, "
        "message = excluded.message, code = excluded.code",
        [now, now, as_parameter(rows)],
    )


_IDENTITY = itemgetter("kind", "namespace", "name", "reason", "message_digest")
"""Notes that agree in these are one event, counted."""


def _fold_notes(notes: Iterable[EventNote]) -> list[dict[str, object]]:
    counts: dict[EventNote, int] = {}
    for note in notes:
        counts[note] = counts.get(note, 0) + 1
    merged: dict[tuple[object, ...], dict[str, object]] = {}
    for note, count in counts.items():
        row = _event_row(note, count)
        key = _IDENTITY(row)
        before = merged.get(key)
        if before is not None:
            row["count"] = count + int(str(before["count"]))
        merged[key] = row
    return list(merged.values())


def _digest_without_figures(message: str) -> str:
    return hashlib.md5(_FIGURES.sub("#", message).encode(), usedforsecurity=False).hexdigest()


def _event_row(note: EventNote, count: int) -> dict[str, object]:
    return {
        "type": "Warning" if note.warning else "Normal",
        "kind": note.kind,
        "namespace": note.namespace,
        "name": note.name,
        "queue_name": note.queue,
        "reason": note.reason,
        "code": note.code,
        "message": note.message,
        "message_digest": _digest_without_figures(note.message),
        "count": count,
    }
