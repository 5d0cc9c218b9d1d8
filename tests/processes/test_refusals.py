"""What keeps an installation from starting is said in a sentence, with an exit code, and leaves
nothing running.
"""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.running import BASE, clean_environment, random_port

pytestmark = pytest.mark.processes


def up(var: Path, port: int | None = None, **environment: str) -> str:
    """What a refused start says, all of it."""
    return refused([sys.executable, "manage.py", "up"], var, port, **environment)


def refused(command: list[str], var: Path, port: int | None = None, **environment: str) -> str:
    environment = clean_environment(var, port or random_port(), **environment)
    done = subprocess.run(
        command,
        cwd=BASE,
        env=environment,
        text=True,
        capture_output=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stderr.strip()


def test_a_port_in_use_is_named_with_another_to_take(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        said = up(tmp_path / "var", port)

    assert said.startswith(f"Port {port} is in use")
    assert "make run PORT=" in said


@pytest.mark.parametrize("port", ["eighty", "0", "70000", "-1", "8000.5"])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str):
    assert up(tmp_path / "var", PORT=port).startswith(f"PORT={port} is not a port.")


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    var = tmp_path / "file" / "var"

    said = up(var)

    assert said.startswith(f"The folder {var} cannot be written (Not a directory).")
    assert "FUMAROLE_VAR=" in said


def test_where_no_redis_is_to_be_had_it_says_what_was_looked_for(tmp_path: Path):
    bare = (
        tmp_path / "bare"
    )  # an environment whose programs are Python alone; the libraries are lent to it
    venv.create(bare, with_pip=False)
    libraries = sysconfig.get_paths()["purelib"]

    said = refused(
        [str(bare / "bin/python"), "manage.py", "up"],
        tmp_path / "var",
        PATH="/nowhere",
        PYTHONPATH=libraries,
    )

    assert said.startswith("No Redis server was found")
    assert str(bare / "bin/python") in said
    assert "REDIS_URL" in said
    assert "apt-get install redis-server" in said


def test_a_redis_that_does_not_answer_is_named_without_its_password(tmp_path: Path):
    said = up(tmp_path / "var", REDIS_URL="redis://:secret@127.0.0.1:1/0")

    assert said.startswith("Redis at redis://:***@127.0.0.1:1/0 does not answer")
    assert "secret" not in said


def test_a_database_that_does_not_answer_is_named_without_its_password(tmp_path: Path):
    said = up(tmp_path / "var", DATABASE_URL="postgres://fumarole:secret@127.0.0.1:1/fumarole")

    assert said.startswith("The database fumarole on 127.0.0.1:1 does not answer: ")
    assert "DATABASE_URL" in said
    assert "secret" not in said
    assert len(said.splitlines()) == 1


def test_an_address_that_is_no_database_is_refused(tmp_path: Path):
    said = up(tmp_path / "var", DATABASE_URL="fumarole.example.com")

    assert said.startswith("DATABASE_URL")
    assert len(said.splitlines()) == 1


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path):
    var = tmp_path / "var"
    environment = clean_environment(var, random_port(), FUMAROLE_EMBEDDED="1")
    subprocess.run(
        [sys.executable, "manage.py", "prepare"],
        cwd=BASE,
        env=environment,
        check=True,
        capture_output=True,
    )
    with sqlite3.connect(var / "fumarole.sqlite3") as database:
        database.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('scheduler', "
            "'0999_from_the_future', '2030-01-01')"
        )

    said = up(var)

    assert said.startswith(
        f"The database {var / 'fumarole.sqlite3'} was migrated by a newer version of Fumarole"
    )
    assert "scheduler.0999_from_the_future" in said


def test_a_file_that_is_no_database_is_named(tmp_path: Path):
    var = tmp_path / "var"
    var.mkdir()
    (var / "fumarole.sqlite3").write_text("a shopping list, and not a database\n" * 40)

    said = up(var)

    assert said.startswith(
        f"The database {var / 'fumarole.sqlite3'} is damaged, or is no SQLite database: "
        "file is not a database."
    )
    assert "server" not in said
    assert "Restore the file from a backup" in said


@pytest.mark.parametrize("damage", ["in the middle", "cut off"])
def test_a_damaged_database_is_named_as_that(tmp_path: Path, damage: str):
    file = tmp_path / "fumarole.sqlite3"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, words TEXT)")
        database.executemany("INSERT INTO rows (words) VALUES (?)", [("word " * 50,)] * 500)
        database.execute("CREATE INDEX by_words ON rows (words)")
    database.close()
    whole = file.read_bytes()
    half = len(whole) // 2
    file.write_bytes(
        whole[:half] if damage == "cut off" else whole[:half] + b"x" * 8192 + whole[half + 8192 :]
    )

    command = [sys.executable, "manage.py", "prepare"]
    said = refused(command, tmp_path / "var", SECRET_KEY="k" * 50, DATABASE_URL=f"sqlite:///{file}")

    assert said.startswith(f"The database {file} is damaged, or is no SQLite database: ")
    assert "server" not in said


def test_a_server_is_not_started_with_the_key_of_make_run(tmp_path: Path):
    var = tmp_path / "var"
    var.mkdir()
    (var / "secret-key").write_text("made by make run")

    environment = clean_environment(var, random_port())
    done = subprocess.run(
        [sys.executable, "-c", "import dashboard.asgi"],
        cwd=BASE,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1
    assert "SECRET_KEY is not set." in done.stderr


def test_outside_of_up_a_secret_key_is_required(tmp_path: Path):
    said = refused([sys.executable, "manage.py", "check"], tmp_path / "var")

    assert said.startswith("SECRET_KEY is not set.")


@pytest.mark.parametrize(
    "version",
    [(3, 10), (3, 9), (3, 8)],
    ids=lambda version: ".".join(map(str, version)),
)
def test_an_unsupported_python_is_refused(tmp_path: Path, version: tuple[int, int]):
    pretend = (
        f"import sys, runpy; sys.version_info = {(*version, 4, 'final', 0)}; sys.version = "
        f"'{version[0]}.{version[1]}.4 (old)'; "
    )
    program = (
        pretend + "sys.argv = ['manage.py', 'up']; runpy.run_path('manage.py', run_name='__main__')"
    )

    said = refused([sys.executable, "-c", program], tmp_path / "var")

    assert said.startswith(
        f"Fumarole needs Python 3.11 or newer; this is Python {version[0]}.{version[1]}.4."
    )


def test_the_installation_refuses_an_unsupported_python(tmp_path: Path):
    """A script stands for the old Python: it fails the question for 3.11, and tells its version."""
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\ncase "$2" in *sys.exit*) exit 1;; *) echo "Python 3.9.2";; esac\n')
    old.chmod(0o755)

    said = refused(
        ["deploy/install", str(tmp_path / "venv"), "requirements.txt"],
        tmp_path / "var",
        PATH="/usr/bin:/bin",
        PYTHON=str(old),
    )

    assert said.startswith(f"Fumarole needs Python 3.11 or newer; {old} here is Python 3.9.2.")
    assert not (tmp_path / "venv").exists()
