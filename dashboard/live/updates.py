"""What changed in a topic, row by row, and how it is written for clients."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dashboard.live.client import Client

Rows = dict[str, str]
"""The key of a row -> the row as JSON."""


@dataclass(slots=True)
class Update:
    """What a client has still to be told about a topic.

    `whole` means everything, as it is when the message is written. `gone` keeps the rows as they
    last were, and `before` the changed rows as they were: whether a client may see a row is decided
    by its content, and clients are not told of rows that they could not see.
    """

    rows: Rows = field(default_factory=dict)
    gone: Rows = field(default_factory=dict)
    whole: bool = False
    before: Rows = field(default_factory=dict)

    def absorb(self, later: Update) -> None:
        """Take in a later update, row by row: the newest state of each row is what counts."""
        self.whole = self.whole or later.whole
        self.rows = _without_keys(self.rows, later.gone) | later.rows
        self.gone = _without_keys(self.gone, later.rows) | later.gone

    def copy(self) -> Update:
        return Update(dict(self.rows), dict(self.gone), self.whole)


def _without_keys(rows: Rows, keys: Rows) -> Rows:
    return {key: row for key, row in rows.items() if key not in keys}


def encode_tail(rows: Iterable[str], gone: Iterable[str]) -> str:
    """The part of a message that is the same for every client: all after its sequence number."""
    return f'"rows":[{",".join(rows)}],"gone":{json.dumps(sorted(gone))}}}'


@dataclass(slots=True)
class Topic:
    """The rows of one topic as last read, and who follows it.

    `rows` is None until the first reading.
    """

    name: str
    rows: Rows | None = None
    clients: set[Client] = field(default_factory=set)
    _snapshot_tail: str | None = None

    def take_rows(self, rows: Rows) -> Update | None:
        """Remember the new rows and return what changed.

        After the first reading that is everything. None where nothing changed.
        """
        known = self.rows
        self.rows = rows
        if known is None:
            self._snapshot_tail = None
            return Update(whole=True)
        changed = {key: row for key, row in rows.items() if known.get(key) != row}
        gone = _without_keys(known, rows)
        if not changed and not gone:
            return None
        self._snapshot_tail = None
        before = {key: known[key] for key in changed if key in known}
        return Update(changed, gone, before=before)

    def snapshot_tail(self) -> str:
        if self._snapshot_tail is None:
            self._snapshot_tail = encode_tail((self.rows or {}).values(), ())
        return self._snapshot_tail
