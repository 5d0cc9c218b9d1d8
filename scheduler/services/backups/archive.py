"""The file of a backup: a zip archive with a manifest and the rows of each table.

Knows no database.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final, TypeVar

FORMAT: Final = "fumarole-backup"
FORMAT_VERSION: Final = 1
_MANIFEST: Final = "manifest.json"
_CHUNK: Final = 1024 * 1024
_LARGEST_MANIFEST: Final = 16 * 1024 * 1024

_Value = TypeVar("_Value")


class BadBackup(Exception):
    """The file is no whole backup, or not one for this version. The message says why."""


@dataclass(frozen=True, slots=True)
class Column:
    """`type` is what the database that was backed up calls it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One table of a backup. `last_id` is the highest number that was ever given to a row."""

    name: str
    columns: tuple[Column, ...]
    rows: int
    sha256: str
    last_id: int | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """`migrations` are the names of those that the database had, by app."""

    version: str
    database: str
    made_at: str
    migrations: Mapping[str, tuple[str, ...]]
    tables: tuple[TableEntry, ...]
    left_out: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)


class BackupWriter:
    """Table by table, then the manifest."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.tables: list[TableEntry] = []

    def add_table(
        self,
        name: str,
        columns: tuple[Column, ...],
        blocks: Iterable[bytes],
        last_id: int | None,
    ) -> None:
        digest = hashlib.sha256()
        rows = 0
        with self._archive.open(_member(name), "w", force_zip64=True) as file:
            for block in blocks:
                digest.update(block)
                rows += bytes(block).count(b"\n")
                file.write(block)
        self.tables.append(TableEntry(name, columns, rows, digest.hexdigest(), last_id))

    def finish(self, manifest: Manifest) -> None:
        document = {"format": FORMAT, "formatVersion": FORMAT_VERSION, **asdict(manifest)}
        self._archive.writestr(_MANIFEST, json.dumps(document, indent=1) + "\n")


@contextmanager
def new_archive(path: Path) -> Iterator[BackupWriter]:
    """The file has its name when it is whole, and can be read by its owner only."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
                yield BackupWriter(archive)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


class BackupReader:
    def __init__(self, archive: zipfile.ZipFile, manifest: Manifest) -> None:
        self._archive = archive
        self.manifest = manifest

    def check_sums(self) -> None:
        """Raises `BadBackup` naming the first table that is not as it was written."""
        for table in self.manifest.tables:
            digest = hashlib.sha256()
            try:
                with self._archive.open(_member(table.name)) as file:
                    while block := file.read(_CHUNK):
                        digest.update(block)
            except (KeyError, zipfile.BadZipFile, OSError) as problem:
                raise _damaged(table.name) from problem
            if digest.hexdigest() != table.sha256:
                raise _damaged(table.name)

    def open_table(self, table: TableEntry) -> IO[bytes]:
        return self._archive.open(_member(table.name))


@contextmanager
def open_archive(path: Path) -> Iterator[BackupReader]:
    """Raises `BadBackup`."""
    try:
        archive = zipfile.ZipFile(path)
    except OSError as problem:
        raise BadBackup(f"{path} cannot be read: {problem.strerror}.") from problem
    except zipfile.BadZipFile as problem:
        raise BadBackup(f"{path} is no backup, or only a part of one.") from problem
    with archive:
        yield BackupReader(archive, _read_manifest(path, archive))


def _damaged(table: str) -> BadBackup:
    return BadBackup(
        f"The backup is damaged: the rows of {table} are not those that were written. "
        "Use another copy of the file."
    )


def _member(table: str) -> str:
    return f"tables/{table}.copy"


def _read_manifest(path: Path, archive: zipfile.ZipFile) -> Manifest:
    try:
        with archive.open(_MANIFEST) as file:
            document = json.loads(file.read(_LARGEST_MANIFEST))
    except (KeyError, ValueError, RecursionError, zipfile.BadZipFile) as problem:
        raise BadBackup(f"{path} is no backup of Fumarole: it has no {_MANIFEST}.") from problem
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadBackup(f"{path} is no backup of Fumarole.")
    if document.get("formatVersion") != FORMAT_VERSION:
        raise BadBackup(
            f"{path} has version {document.get('formatVersion')} of the format of backups; "
            f"this version of Fumarole reads {FORMAT_VERSION}."
        )
    try:
        return _manifest_in(document)
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise BadBackup(f"{path} is no whole backup: its {_MANIFEST} is damaged.") from problem


def _manifest_in(document: Mapping[str, Any]) -> Manifest:
    """What is not of its type raises one of the errors that `_read_manifest` knows."""
    tables = tuple(_table_in(table) for table in document["tables"])
    if len({table.name for table in tables}) != len(tables):
        raise ValueError("a table is there twice")
    migrations = {}
    for app, names in document["migrations"].items():
        migrations[app] = tuple(_of_type(str, name) for name in names)
    return Manifest(
        version=str(document["version"]),
        database=str(document["database"]),
        made_at=str(document["made_at"]),
        migrations=migrations,
        tables=tables,
        left_out=tuple(document["left_out"]),
    )


def _table_in(table: Mapping[str, Any]) -> TableEntry:
    columns = []
    for column in table["columns"]:
        columns.append(Column(_of_type(str, column["name"]), _of_type(str, column["type"])))
    last_id = table["last_id"]
    if last_id is not None and not 0 <= _of_type(int, last_id) < 2**63:
        raise ValueError(f"{last_id} is no number of a row")
    return TableEntry(
        name=_of_type(str, table["name"]),
        columns=tuple(columns),
        rows=_of_type(int, table["rows"]),
        sha256=_of_type(str, table["sha256"]),
        last_id=last_id,
    )


def _of_type(wanted: type[_Value], value: object) -> _Value:
    if type(value) is not wanted:
        raise TypeError(f"{value!r} is no {wanted.__name__}")
    return value
