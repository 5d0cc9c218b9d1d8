"""`manage.py replay SESSION`: run a kept session again and compare, or save it as a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db.models.functions import Length

from scheduler.management.console import console_for, print_run
from scheduler.scenarios.reports import outcome_document
from scheduler.selectors.sessions.kept import kept_sessions
from scheduler.services.sessions.replay import (
    NotKept,
    Replayed,
    keep_next_sessions,
    replay,
    scenario_text,
)

DIFFERENT = 1  # exit codes
UNUSABLE = 2


class Command(BaseCommand):
    help = "Run a kept session again and compare its outcome with the one it had, bit for bit."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "session",
            nargs="?",
            type=int,
            metavar="SESSION",
            help="the session's number; without it the kept sessions are listed",
        )
        parser.add_argument(
            "--save",
            metavar="FILE",
            help="write a scenario file for manage.py simulate; - is the standard output",
        )
        parser.add_argument(
            "--keep-next",
            type=int,
            metavar="N",
            help="keep the next N sessions, of any size and whatever they decide",
        )
        parser.add_argument(
            "--output",
            choices=["text", "json"],
            default="text",
            help="tables for people (text) or one JSON object",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        if options["keep_next"] is not None:
            self._keep(options["keep_next"])
        elif options["session"] is None:
            self._list()
        elif options["save"] is not None:
            self._save(options["session"], options["save"])
        else:
            self._replay(options["session"], options["output"])

    def _keep(self, count: int) -> None:
        try:
            keep_next_sessions(count)
        except ValueError as error:
            self._refuse(str(error))
        if count == 1:
            self.stdout.write("The next session will be kept.")
        else:
            self.stdout.write(f"The next {count} sessions will be kept.")

    def _list(self) -> None:
        rows = kept_sessions().values_list("session_number", "created_at", Length("content"))
        for number, began_at, size in rows:
            began = f"{began_at:%Y-%m-%d %H:%M:%S} UTC"
            self.stdout.write(f"{number:>8}  {began}  {size:>9,} bytes")

    def _save(self, number: int, path: str) -> None:
        try:
            text = scenario_text(number)
            if path == "-":
                self.stdout.write(text)
                return
            Path(path).write_text(text, encoding="utf-8")
        except NotKept as error:
            self._refuse(str(error))
        except OSError as error:
            self._refuse(f"{path} cannot be written: {error.strerror}")
        self.stdout.write(
            f"Session {number} is in {path}. "
            f"Run it with “.venv/bin/python manage.py simulate {path}”."
        )

    def _replay(self, number: int, output: str) -> None:
        try:
            replayed = replay(number)
        except NotKept as error:
            self._refuse(str(error))
        if output == "json":
            document = {
                **outcome_document(replayed.run.name, replayed.run.outcome),
                "sameOutcome": replayed.is_same,
            }
            self.stdout.write(json.dumps(document, indent=2, ensure_ascii=False))
        else:
            self._print(replayed)
        if not replayed.is_same:
            self.stderr.write(
                f"Session {number} decided something else then: "
                "this is another version of the scheduler, or a bug."
            )
            sys.exit(DIFFERENT)

    def _print(self, replayed: Replayed) -> None:
        print_run(console_for(self.stdout), replayed.run, replayed.run.name)
        if replayed.is_same:
            self.stdout.write("The outcome is the one it had, bit for bit.")

    def _refuse(self, message: str) -> None:
        self.stderr.write(message)
        sys.exit(UNUSABLE)
