"""A database carried from SQLite to PostgreSQL and back is the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

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
