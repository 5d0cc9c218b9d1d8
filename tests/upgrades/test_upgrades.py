"""A database of each released version becomes one of this version, with all that was in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scheduler import VERSION
from tests.running import BASE
from tests.upgrades.releases import backups

RELEASES = backups()
_RELEASE = re.compile(r"^## (\d+\.\d+\.\d+),", re.MULTILINE)


def tried(file: Path, database: str) -> dict[str, Any]:
    """The backup restored into that database, and what the trial found there."""
    environment = {**os.environ, "DATABASE_URL": database, "LOG_LEVEL": "ERROR"}
    command = [sys.executable, "-m", "tests.upgrades.trial", str(file)]
    done = subprocess.run(
        command, cwd=BASE, env=environment, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def assert_goes_on(found: dict[str, Any]) -> None:
    assert found.pop("pods") > 0
    assert found == {
        "lost": {},
        "sessions": ["Done"] * 4,
        "reloaded": [True, False, False, False],
        "phases": ["Bound"],
        "numbers_go_on": True,
        "triggers_are_there": True,
        "broken_rules": [],
    }


@pytest.mark.parametrize("version", RELEASES)
def test_a_release_is_upgraded_on_sqlite(version: str, tmp_path: Path):
    found = tried(RELEASES[version], f"sqlite:///{tmp_path / 'upgraded.sqlite3'}")

    assert_goes_on(found)


@pytest.mark.parametrize("version", RELEASES)
def test_a_release_is_upgraded_on_postgresql(version: str, postgres_database: str):
    found = tried(RELEASES[version], postgres_database)

    assert_goes_on(found)


def test_each_release_of_the_changelog_has_a_database():
    listed = _RELEASE.findall((BASE / "CHANGELOG.md").read_text())

    assert listed == list(reversed(RELEASES))


def test_the_version_is_the_same_everywhere():
    from dashboard.cli import VERSION as VERSION_OF_VCCTL

    project = (BASE / "pyproject.toml").read_text()

    assert f'\nversion = "{VERSION}"\n' in project
    assert VERSION_OF_VCCTL == VERSION
