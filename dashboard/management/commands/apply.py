"""`manage.py apply FILE`: objects of files created or updated, all or none, as `vcctl apply`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from dashboard.cli.files.documents import located_documents, read_sources
from dashboard.cli.files.lines import Place
from dashboard.cli.problems import Problem
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.plans import counted
from scheduler.management.database import check_may_be_changed
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.files.apply import apply_documents
from scheduler.supervisor.problems import StartError

REFUSED = 1
UNUSABLE = 2
_INDEX = re.compile(r"^\[(\d+)\]\.?")


class Command(BaseCommand):
    help = (
        "Creates or updates every object of the files, or none. What manage.py export wrote is "
        "read back unchanged. What the files do not name stays."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "files", nargs="+", metavar="FILE", help="a file, a folder, or - for standard input"
        )
        parser.add_argument("--dry-run", action="store_true", help="change nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            documents = located_documents(read_sources(options["files"]))
        except Problem as problem:
            self.stderr.write(str(problem))
            sys.exit(UNUSABLE)
        if not options["dry_run"]:
            self._check_may_be_changed()
        try:
            applied = apply_documents(
                [found for _, found in documents],
                by=Actor("manage.py", Door.MANIFEST),
                dry_run=options["dry_run"],
            )
        except Rejected as refusal:
            self._refuse([place for place, _ in documents], refusal.violations)
        for item in applied:
            if item.changed:
                self.stdout.write(f"{item.kind.lower()}/{item.name} {item.operation}")
        changed = sum(item.changed for item in applied)
        ending = "."
        if options["dry_run"]:
            ending = " (dry run)."
        self.stdout.write(f"{counted(changed, 'object')} of {len(applied)} changed{ending}")

    def _check_may_be_changed(self) -> None:
        try:
            check_may_be_changed()
        except StartError as problem:
            self.stderr.write(str(problem))
            sys.exit(REFUSED)

    def _refuse(self, places: Sequence[Place], violations: Sequence[Violation]) -> None:
        for violation in violations:
            self.stderr.write(_in_words(places, violation))
        self.stderr.write("Nothing was changed.")
        sys.exit(REFUSED)


def _in_words(places: Sequence[Place], violation: Violation) -> str:
    """A field of one of several objects begins with the place of the object."""
    field = violation.field
    number = 0
    match = _INDEX.match(field)
    if match:
        number = int(match[1])
        field = field[match.end() :]
    words = f"{places[number].words(field)}: {violation.message}"
    if violation.fix:
        words += f" ({violation.fix})"
    return words
