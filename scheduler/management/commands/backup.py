"""`manage.py backup FILE`: the whole database in one file, while everything runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from scheduler.domain.plans import counted
from scheduler.management.database import (
    check_database_answers,
    check_database_not_newer,
    problems_in_words,
)
from scheduler.services.backups.making import make_backup
from scheduler.supervisor.problems import StartError


class Command(BaseCommand):
    help = (
        "Writes everything that is stored, as of one moment, into one file. "
        "It can be taken while everything runs, and restored into PostgreSQL or SQLite."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="the file to write, as fumarole.backup")
        parser.add_argument("--force", action="store_true", help="replace a file that is there")

    def handle(self, *_args: Any, **options: Any) -> None:
        path = Path(options["file"])
        try:
            self._make(path, replace=options["force"])
        except StartError as problem:
            sys.exit(str(problem))
        except OSError as problem:
            sys.exit(f"{path} cannot be written: {problem.strerror}.")

    def _make(self, path: Path, *, replace: bool) -> None:
        if path.exists() and not replace:
            raise StartError(f"{path} is there already. Choose another name, or give --force.")
        check_database_answers()
        with problems_in_words():
            check_database_not_newer()
            made = make_backup(path)
        size = path.stat().st_size / 1024 / 1024
        self.stdout.write(
            f"{path}: {counted(made.rows, 'row')} of {counted(len(made.tables), 'table')}, "
            f"{size:.1f} MiB. Keep it like a password: it has password hashes, digests of "
            "tokens and secrets of webhooks, but not SECRET_KEY, which you keep apart."
        )
