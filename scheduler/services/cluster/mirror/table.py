"""One mirrored table: what is in it is remembered, and only what differs is written.

Rows travel as one parameter, so that a thousand cost as many statements as one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from django.db import DatabaseError, connection
from django.db.models import Field, Model

from scheduler.domain.resources import Resources
from scheduler.models.bulk import as_parameter, execute, fetch, values_table
from scheduler.selectors.sessions.snapshot_rows import ids_parameter, one_of_ids
from scheduler.services.cluster.mirror.index import Index

Row = Mapping[str, Any]

_OTHER_UIDS = UUID("6f0ad1ae-53a5-4f4b-8a44-1f0c6a2f4d11")
MOST_ROWS = 2000
"""In one statement: a larger parameter makes SQLite slow and helps nobody."""


class RowsAreMissing(DatabaseError):
    """Somebody else has deleted rows of the mirror: the tables have to be read again."""


def stored_uid(uid: str) -> str:
    """As the database keeps it. Kubernetes gives UUIDs; anything else is made into one."""
    try:
        return UUID(uid).hex
    except ValueError:
        return uuid5(_OTHER_UIDS, uid).hex


@dataclass(frozen=True, slots=True)
class SharedColumns:
    """Columns that others write, too. They keep what they have where the condition holds.

    In it `{row}` is the table, and `d` what the cluster says. It names no other columns.
    """

    names: tuple[str, ...]
    kept_if: str
    rows_may_go: bool = False  # others may also delete rows


class Table:
    """`columns` are mirrored, `fixed` are given to new rows and never touched again.

    `key` is the column by which an object finds its row. `indexed` says by what else rows can be
    found without a walk through all of them: a name, and the values that follow from a row.
    """

    def __init__(
        self,
        model: type[Model],
        key: str,
        columns: Sequence[str],
        fixed: Row | None = None,
        indexed: Mapping[str, Callable[[Row], Iterable[Hashable]]] | None = None,
        shared: SharedColumns | None = None,
    ) -> None:
        self.name = model._meta.db_table
        self._model = model
        self._key = key
        self._columns = tuple(columns)
        self._fixed = dict(fixed or {})
        self._shared = shared or SharedColumns((), "")
        self._rows: dict[str, Row] = {}
        self.ids: dict[str, int] = {}
        self._keys_by_id: dict[int, str] = {}
        self._indexed = dict(indexed or {})
        self._indexes: dict[str, Index[Hashable]] = {name: Index() for name in self._indexed}

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def keys(self) -> Collection[str]:
        return self._rows.keys()

    def items(self) -> Collection[tuple[str, Row]]:
        return self._rows.items()

    def row(self, key: str) -> Row:
        return self._rows[key]

    def key_of(self, pk: int) -> str | None:
        """Of the row with this id; None if there is none."""
        return self._keys_by_id.get(pk)

    def keys_with(self, name: str, value: Hashable) -> set[str]:
        """Of the rows that have this value under a name in `indexed`."""
        return self._indexes[name].members(value)

    def load(self) -> None:
        """What the database has, whoever wrote it."""
        self._rows = {}
        self.ids = {}
        self._keys_by_id = {}
        for index in self._indexes.values():
            index.clear()
        names = [name for name in self._columns if name != self._key]
        found = self._model._default_manager.order_by().values_list("id", self._key, *names)
        for pk, key, *values in found:
            columns = dict(zip(names, map(_plain, values), strict=True))
            text = str(_plain(key))
            self._remember(text, {self._key: text, **columns}, pk)

    # Writing

    def write(self, wanted: Mapping[str, Row]) -> set[str]:
        """Make these rows as they should be. The keys of those that were not."""
        new: list[Row] = []
        differing: dict[str, Row] = {}
        for key, row in wanted.items():
            known = self._rows.get(key)
            if known is None:
                new.append(row)
            elif known != row:
                differing[key] = row
        for some in _portions(new):
            self._insert(some)
        for keys in _portions(list(differing)):
            self._update({key: differing[key] for key in keys})
        return {row[self._key] for row in new} | differing.keys()

    def delete(self, keys: Iterable[str]) -> set[str]:
        """The keys of those that were there."""
        gone = {key for key in keys if key in self._rows}
        if not gone:
            return set()
        ids = [self.ids[key] for key in gone]
        execute(f"DELETE FROM {self.name} WHERE {one_of_ids('id')}", [ids_parameter(ids)])
        self.forget(gone)
        return gone

    def forget(self, keys: Iterable[str]) -> None:
        """These are not in the table any more."""
        for key in keys:
            row = self._rows.pop(key)
            del self._keys_by_id[self.ids.pop(key)]
            self._unindex(key, row)

    def _remember(self, key: str, row: Row, pk: int) -> None:
        """A row that was not known before."""
        self._rows[key] = row
        self.ids[key] = pk
        self._keys_by_id[pk] = key
        self._index(key, row)

    def _replace(self, key: str, row: Row) -> None:
        self._unindex(key, self._rows[key])
        self._rows[key] = row
        self._index(key, row)

    def _index(self, key: str, row: Row) -> None:
        for name, values_of in self._indexed.items():
            for value in values_of(row):
                self._indexes[name].add(value, key)

    def _unindex(self, key: str, row: Row) -> None:
        for name, values_of in self._indexed.items():
            for value in values_of(row):
                self._indexes[name].discard(value, key)

    def _insert(self, rows: Sequence[Row]) -> None:
        given = {name: self._type(name) for name in self._columns}
        fixed = [self._field(name) for name in self._fixed]
        names = [self._quoted(name) for name in (*self._columns, *self._fixed)]
        values = [f'd."{name}"' for name in self._columns]
        sql = (
            f"INSERT INTO {self.name} ({', '.join(names)}) "
            f"SELECT {', '.join([*values, *('%s' for _ in fixed)])} "
            f"FROM {values_table('d', given)} WHERE true RETURNING id, {self._quoted(self._key)}"
        )
        constants = [
            field.get_db_prep_save(self._fixed[field.attname], connection) for field in fixed
        ]
        by_key = {row[self._key]: row for row in rows}
        for pk, key in fetch(sql, [*constants, as_parameter(by_key.values())]):
            text = str(_plain(key))
            self._remember(text, by_key[text], pk)

    def _update(self, rows: Mapping[str, Row]) -> None:
        """Only columns that differ in at least one of these rows are named."""
        columns = self._differing_columns(rows)
        given = {"id": "bigint", **{name: self._type(name) for name in columns}}
        changes = ", ".join(self._assignment(name) for name in columns)
        parameter = as_parameter(
            {"id": self.ids[key], **{name: row[name] for name in columns}}
            for key, row in rows.items()
        )
        found = execute(
            f"UPDATE {self.name} SET {changes} FROM {values_table('d', given)} "
            f"WHERE {self.name}.id = d.id",
            [parameter],
        )
        if found != len(rows) and not self._shared.rows_may_go:
            raise RowsAreMissing(
                f"{self.name}: {len(rows)} rows were to change, {found} were there"
            )
        for key, row in rows.items():
            self._replace(key, row)

    def _differing_columns(self, rows: Mapping[str, Row]) -> list[str]:
        """Shared columns all together, because their condition looks at all of them."""
        found = {name for name in self._columns if self._differs(name, rows)}
        if found.intersection(self._shared.names):
            found.update(self._shared.names)
        return [name for name in self._columns if name in found]

    def _assignment(self, name: str) -> str:
        column = self._quoted(name)
        if name not in self._shared.names:
            return f'{column} = d."{name}"'
        kept_if = self._shared.kept_if.format(row=self.name)
        return f'{column} = CASE WHEN {kept_if} THEN {self.name}.{column} ELSE d."{name}" END'

    def _differs(self, name: str, rows: Mapping[str, Row]) -> bool:
        return any(self._rows[key][name] != row[name] for key, row in rows.items())

    # What the database calls things

    def _field(self, name: str) -> Field[Any, Any]:
        return next(field for field in self._model._meta.local_fields if field.attname == name)

    def _quoted(self, name: str) -> str:
        return str(connection.ops.quote_name(str(self._field(name).column)))

    def _type(self, name: str) -> str:
        if connection.vendor == "postgresql":
            return str(self._field(name).rel_db_type(connection) or "text")
        return _SQLITE_TYPES.get(self._field(name).get_internal_type(), "text")


_SQLITE_TYPES = {"BooleanField": "boolean"}


def _portions(items: list[Any]) -> Iterable[list[Any]]:
    for start in range(0, len(items), MOST_ROWS):
        yield items[start : start + MOST_ROWS]


def _plain(value: Any) -> Any:
    """As rows hold it: to be compared, and to be sent as JSON."""
    if isinstance(value, Resources):
        return dict(value)
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return value
