"""The ready-made tables of an empty database are those that the migrations make, byte for byte."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from scheduler.models import first_schema
from scheduler.models.first_schema import SCHEMA, make_first_tables, migrations_in

ROOT = Path(__file__).resolve().parents[2]
BEGIN = """
import django
django.setup()
from django.core.management import call_command
from django.db import connection
from scheduler.models.first_schema import make_first_tables
"""
MIGRATE = 'call_command("migrate", verbosity=0)'
READY_MADE = "assert make_first_tables(connection)"
CONTENT = (
    "SELECT app, name FROM django_migrations ORDER BY app, name",
    "SELECT app_label, model FROM django_content_type ORDER BY app_label, model",
    "SELECT codename FROM auth_permission ORDER BY codename",
    "SELECT name FROM scheduler_queue ORDER BY name",
)


def database_after(file: Path, *steps: str) -> sqlite3.Connection:
    """Made by a process of its own, as a start makes it."""
    environment = {**os.environ, "DATABASE_URL": f"sqlite:///{file}"}
    program = "\n".join([BEGIN, *steps])
    command = [sys.executable, "-c", program]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return sqlite3.connect(file)


def schema_of(database: sqlite3.Connection) -> list[tuple[str, ...]]:
    columns = "type, name, tbl_name, sql"
    return database.execute(f"SELECT {columns} FROM sqlite_master ORDER BY type, name").fetchall()


def test_the_tables_are_those_of_the_migrations_byte_for_byte(tmp_path: Path):
    migrated = database_after(tmp_path / "migrated", MIGRATE)
    made = database_after(tmp_path / "made", READY_MADE, MIGRATE)

    assert schema_of(made) == schema_of(migrated)
    for question in CONTENT:
        assert made.execute(question).fetchall() == migrated.execute(question).fetchall()


@pytest.mark.django_db
def test_a_database_with_tables_is_left_to_the_migrations():
    assert make_first_tables(connection) is False


@pytest.mark.django_db
def test_a_text_with_a_migration_that_is_not_here_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    unknown = (
        'INSERT INTO "django_migrations" ("app", "name", "applied") '
        "VALUES ('auth', '9999_later', 'now');"
    )
    file = tmp_path / "schema.sql"
    file.write_text(f"{unknown}\n")
    monkeypatch.setattr(first_schema, "SCHEMA", file)
    monkeypatch.setattr(connection.introspection, "table_names", lambda *_: [])

    assert migrations_in(file.read_text().splitlines()) == {("auth", "9999_later")}
    assert make_first_tables(connection) is False


def test_the_text_knows_the_first_migrations_of_ours():
    known = migrations_in(SCHEMA.read_text().splitlines())

    assert {("scheduler", "0001_initial"), ("scheduler", "0065_pins")} <= known
