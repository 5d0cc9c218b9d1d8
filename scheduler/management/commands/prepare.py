"""`manage.py prepare`: tables up to date and, in an empty database, the first contents."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, call_command
from django.db import connection

from scheduler.management.database import (
    check_cluster_is_the_same,
    check_database_answers,
    check_database_not_newer,
    problems_in_words,
)
from scheduler.models.first_schema import make_first_tables
from scheduler.services.accounts.cli_token import ensure_cli_token
from scheduler.services.demo.setup import FirstStart, first_start
from scheduler.supervisor.problems import StartError


class Command(BaseCommand):
    help = (
        "Brings the tables of the database up to date. "
        "An empty one gets an administrator and, unless DEMO=0, a sample cluster."
    )
    requires_system_checks: list[str] = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        try:
            check_database_answers()
            with problems_in_words():
                check_database_not_newer()
                made = _prepare()
        except StartError as problem:
            sys.exit(str(problem))
        if made.sample_loaded:
            self.stdout.write("Loaded the sample cluster.")
        if made.password_file and not settings.EMBEDDED:  # `make run` says so itself
            file = made.password_file
            self.stdout.write(f"Created the account admin; its password is in {file}.")


def _prepare() -> FirstStart:
    make_first_tables(connection)
    call_command("migrate", interactive=False, verbosity=0)
    check_cluster_is_the_same()
    made = first_start()
    if settings.EMBEDDED:
        ensure_cli_token()
    return made
