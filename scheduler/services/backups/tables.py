"""The tables of the database as they are: names, columns, rows, and the last number given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, Any, Final, cast

from django.db import connection

from scheduler.services.backups.archive import Column, TableEntry
from scheduler.services.backups.rows import line_of, sqlite_readers, sqlite_writers, values_of

_MANY: Final = 1000
_BLOCK: Final = 256 * 1024

_PG_COLUMNS = """
SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
ORDER BY attnum
"""


def _rows_of(statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[Any] = cursor.fetchall()
    return rows


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(connection.ops.quote_name(name) for name in names)


def columns_of(table: str) -> tuple[Column, ...]:
    if connection.vendor == "postgresql":
        found = _rows_of(_PG_COLUMNS, [connection.ops.quote_name(table)])
    else:
        found = _rows_of("SELECT name, type FROM pragma_table_info(%s)", [table])
    return tuple(Column(name, kind) for name, kind in found)


def last_id_of(table: str) -> int | None:
    """None for a table whose rows are not numbered by the database."""
    if connection.vendor == "postgresql":
        sequence = _sequence_of(table)
        if sequence is None:
            return None
        last, is_given = _rows_of(f"SELECT last_value, is_called FROM {sequence}")[0]
        if is_given:
            return int(last)
        return 0
    found = _rows_of("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
    if not found:
        return None
    return int(found[0][0])


def _sequence_of(table: str) -> str | None:
    if all(column.name != "id" for column in columns_of(table)):
        return None
    name = connection.ops.quote_name(table)
    ((sequence,),) = _rows_of("SELECT pg_get_serial_sequence(%s, 'id')", [name])
    return cast("str | None", sequence)


def set_last_id(table: str, last: int) -> None:
    """The next row gets a higher number than any that was ever given."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            sequence = _sequence_of(table)
            if sequence is not None and last > 0:
                cursor.execute("SELECT setval(%s, %s)", [sequence, last])
            return
        cursor.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [last, table])
        if cursor.rowcount == 0:
            cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table, last])


def read_rows(table: str, columns: Sequence[Column]) -> Iterator[bytes]:
    """Lines of the format of COPY, in blocks."""
    names = _quoted(column.name for column in columns)
    if connection.vendor == "postgresql":
        yield from _copied_out(f"COPY {_quoted([table])} ({names}) TO STDOUT")
        return
    writers = sqlite_writers(column.type for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {names} FROM {_quoted([table])}")
        while rows := cursor.fetchmany(_MANY):
            yield b"".join(line_of(row, writers) for row in rows)


def _copied_out(statement: str) -> Iterator[bytes]:
    with connection.cursor() as cursor, cast(Any, cursor).copy(statement) as copy:
        for block in copy:
            yield bytes(block)


def write_rows(table: TableEntry, file: IO[bytes]) -> None:
    names = _quoted(column.name for column in table.columns)
    if connection.vendor == "postgresql":
        _copy_in(f"COPY {_quoted([table.name])} ({names}) FROM STDIN", file)
        return
    declared = {column.name: column.type for column in columns_of(table.name)}
    readers = sqlite_readers(
        (declared[column.name] for column in table.columns),
        (column.type for column in table.columns),
    )
    places = ", ".join("%s" for _ in table.columns)
    statement = f"INSERT INTO {_quoted([table.name])} ({names}) VALUES ({places})"
    with connection.cursor() as cursor:
        while lines := list(islice(file, _MANY)):
            cursor.executemany(statement, [values_of(line, readers) for line in lines])


def _copy_in(statement: str, file: IO[bytes]) -> None:
    with connection.cursor() as cursor, cast(Any, cursor).copy(statement) as copy:
        while block := file.read(_BLOCK):
            copy.write(block)


def empty_tables(names: Sequence[str]) -> None:
    """What the migrations themselves put there."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"TRUNCATE {_quoted(names)}")
            return
        for name in names:
            cursor.execute(f"DELETE FROM {_quoted([name])}")
