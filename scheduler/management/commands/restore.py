"""`manage.py restore FILE`: a backup put into an empty database."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from scheduler.domain.plans import counted
from scheduler.management.database import (
    check_cluster_is_the_same,
    check_database_answers,
    database_name,
    problems_in_words,
)
from scheduler.services.backups.archive import BadBackup, Manifest
from scheduler.services.backups.restoring import NotEmpty, check_backup, restore_backup
from scheduler.supervisor.problems import StartError


class Command(BaseCommand):
    help = (
        "Puts a backup into the empty database of DATABASE_URL, and brings it up to date. "
        "A backup of an older version is upgraded on the way; one of a newer version is refused."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a file that manage.py backup wrote")
        parser.add_argument(
            "--check",
            action="store_true",
            help="only say whether the file is whole and can be restored; no database is asked",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        path = Path(options["file"])
        try:
            if options["check"]:
                found = check_backup(path)
                self.stdout.write(f"{path} is whole and can be restored: {_in_words(found)}.")
            else:
                self._restore(path)
        except (BadBackup, StartError) as problem:
            sys.exit(str(problem))
        except NotEmpty as problem:
            sys.exit(f"The database {database_name()} is not empty. {problem}")

    def _restore(self, path: Path) -> None:
        check_backup(path)
        check_database_answers()
        with problems_in_words():
            restored = restore_backup(path)
            check_cluster_is_the_same()
        self.stdout.write(
            f"{path} is restored into {database_name()}: {_in_words(restored)}. "
            "Everybody signs in again; tokens stay valid. Now start the processes."
        )


def _in_words(manifest: Manifest) -> str:
    return (
        f"{counted(manifest.rows, 'row')} of {counted(len(manifest.tables), 'table')}, "
        f"made {manifest.made_at[:19]} UTC by version {manifest.version} on {manifest.database}"
    )
