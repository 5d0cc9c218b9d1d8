"""A database carried from SQLite to PostgreSQL and back is the same."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.running import BASE
from tests.upgrades.releases import backups

pytestmark = pytest.mark.processes


def manage(database: str, *words: str) -> None:
    environment = {**os.environ, "DATABASE_URL": database, "LOG_LEVEL": "ERROR"}
    command = [sys.executable, "manage.py", *words]
    subprocess.run(command, cwd=BASE, env=environment, check=True, capture_output=True)


def rows(path: Path) -> dict[str, list[list[object]]]:
    """By table, sorted; JSON counts by its meaning. What a restore itself notes is left out."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("tables/"):
                lines = archive.read(name).decode().splitlines()
                fields = [[meaning(field) for field in line.split("\t")] for line in lines]
                found[name] = sorted(
                    (row for row in fields if "RestoreBackup" not in row), key=repr
                )
    return found


def meaning(field: str) -> object:
    if not field.startswith(("{", "[")):
        return field
    return json.loads(field.replace("\\\\", "\\"))


def changed(
    path: Path, to: Path, change: Callable[[dict[str, Any], dict[str, bytes]], None]
) -> Path:
    """A copy of a backup whose manifest and rows were changed, with sums that are right."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    change(manifest, members)
    for table in manifest["tables"]:
        content = members[f"tables/{table['name']}.copy"]
        table["sha256"] = hashlib.sha256(content).hexdigest()
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(to, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return to


def has_a_statement_as_a_column(manifest: dict[str, Any], _members: dict[str, bytes]) -> None:
    table = next(one for one in manifest["tables"] if one["name"] == "scheduler_queue")
    table["columns"][0]["name"] = 'id") FROM STDIN; DROP TABLE scheduler_queue; --'


def has_half_a_row(_manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    members["tables/scheduler_queue.copy"] += b"77\thalf\n"


def has_no_queues(_manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    members["tables/scheduler_queue.copy"] = b""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (has_a_statement_as_a_column, "has columns of scheduler_queue that its version has not"),
        (has_half_a_row, "the rows of scheduler_queue do not fit"),
        (has_no_queues, "the rows of other tables do not fit"),
    ],
)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_file_with_right_sums_and_wrong_rows_is_refused_in_words(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    kind: str,
    change: Callable[[dict[str, Any], dict[str, bytes]], None],
    words: str,
):
    path = changed(list(backups().values())[-1], tmp_path / "changed", change)
    database = f"sqlite:///{tmp_path / 'new.sqlite3'}"
    if kind == "postgresql":
        database = request.getfixturevalue("postgres_database")

    with pytest.raises(subprocess.CalledProcessError) as refused:
        manage(database, "restore", str(path))

    said = refused.value.stderr.decode()
    assert words in said
    assert "Traceback" not in said


def test_what_goes_to_postgresql_and_back_is_the_same(tmp_path: Path, postgres_database: str):
    newest = list(backups().values())[-1]
    first = f"sqlite:///{tmp_path / 'first.sqlite3'}"
    again = f"sqlite:///{tmp_path / 'again.sqlite3'}"
    manage(first, "restore", str(newest))
    manage(first, "backup", str(tmp_path / "of-sqlite"))
    manage(postgres_database, "restore", str(tmp_path / "of-sqlite"))
    manage(postgres_database, "backup", str(tmp_path / "of-postgresql"))

    manage(again, "restore", str(tmp_path / "of-postgresql"))
    manage(again, "backup", str(tmp_path / "of-sqlite-again"))

    assert rows(tmp_path / "of-sqlite-again") == rows(tmp_path / "of-sqlite")
