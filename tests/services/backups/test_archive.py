"""Files that are no whole backup, or not one for this version, are refused in words."""

from __future__ import annotations

import json
import stat
import zipfile
from pathlib import Path

import pytest

from scheduler.services.backups.archive import BadBackup, Column, Manifest, new_archive
from scheduler.services.backups.restoring import check_backup

MANIFEST = Manifest(
    version="9.9.9",
    database="SQLite 3",
    made_at="2026-11-18T00:00:00+00:00",
    migrations={"scheduler": ("0001_initial",)},
    tables=(),
)


def whole(folder: Path) -> Path:
    """A backup with one table of two rows."""
    path = folder / "a.backup"
    with new_archive(path) as writer:
        writer.add_table("one", (Column("id", "bigint"),), [b"1\n", b"2\n"], 2)
        values = {name: getattr(MANIFEST, name) for name in MANIFEST.__slots__}
        writer.finish(Manifest(**{**values, "tables": tuple(writer.tables)}))
    return path


def replaced(path: Path, member: str, content: bytes) -> Path:
    """The same archive with other bytes in one place."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, kept in {**members, member: content}.items():
            archive.writestr(name, kept)
    return path


def test_a_whole_file_is_told_so_and_is_for_its_owner_only(tmp_path: Path):
    path = whole(tmp_path)

    assert check_backup(path).rows == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_backup_that_fails_leaves_the_old_one(tmp_path: Path):
    path = whole(tmp_path)
    before = path.read_bytes()

    with pytest.raises(ZeroDivisionError), new_archive(path):
        raise ZeroDivisionError

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_changed_rows_are_noticed(tmp_path: Path):
    path = replaced(whole(tmp_path), "tables/one.copy", b"1\n3\n")

    with pytest.raises(BadBackup, match="the rows of one are not those that were written"):
        check_backup(path)


def test_a_newer_version_is_named(tmp_path: Path):
    path = whole(tmp_path)
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("manifest.json"))
    document["migrations"]["scheduler"].append("9999_from_the_future")
    replaced(path, "manifest.json", json.dumps(document).encode())

    with pytest.raises(BadBackup, match=r"version 9\.9\.9 of Fumarole.*9999_from_the_future"):
        check_backup(path)


@pytest.mark.parametrize(
    ("member", "content", "words"),
    [
        ("manifest.json", b"no JSON", "is no backup of Fumarole"),
        ("manifest.json", b'{"format": "else"}', "is no backup of Fumarole"),
        (
            "manifest.json",
            b'{"format": "fumarole-backup", "formatVersion": 2}',
            "version 2 of the format",
        ),
        (
            "manifest.json",
            b'{"format": "fumarole-backup", "formatVersion": 1}',
            "is no whole backup",
        ),
        ("manifest.json", b"[" * 100_000, "is no backup of Fumarole"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, member: str, content: bytes, words: str):
    path = replaced(whole(tmp_path), member, content)

    with pytest.raises(BadBackup, match=words):
        check_backup(path)


TABLE = {"name": "one", "columns": [], "rows": 2, "sha256": "", "last_id": None}


@pytest.mark.parametrize(
    "change",
    [
        {"migrations": "scheduler"},
        {"migrations": {"scheduler": [1]}},
        {"tables": [TABLE, TABLE]},
        {"tables": [{**TABLE, "last_id": "1; SELECT"}]},
        {"tables": [{**TABLE, "last_id": 10**30}]},
        {"tables": [{**TABLE, "last_id": -1}]},
        {"tables": [{**TABLE, "rows": "2"}]},
        {"tables": [{**TABLE, "columns": [{"name": 1, "type": "text"}]}]},
    ],
)
def test_a_manifest_of_other_types_is_refused(tmp_path: Path, change: dict[str, object]):
    path = whole(tmp_path)
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("manifest.json"))
    replaced(path, "manifest.json", json.dumps({**document, **change}).encode())

    with pytest.raises(BadBackup, match="is no whole backup"):
        check_backup(path)


def test_a_part_of_a_file_is_refused(tmp_path: Path):
    path = whole(tmp_path)
    path.write_bytes(path.read_bytes()[:200])

    with pytest.raises(BadBackup, match="is no backup, or only a part of one"):
        check_backup(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(BadBackup, match=r"none\.backup cannot be read"):
        check_backup(tmp_path / "none.backup")
