"""`manage.py simulate FILE…`: try queues, policies and jobs without a cluster."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from scheduler.management import simulation


class Command(BaseCommand):
    """For Django's list of commands.

    `manage.py` itself calls `simulation.main` before any settings are read.
    """

    help = simulation.HELP
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        simulation.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        code = simulation.simulate(Namespace(**options), self.stdout, self.stderr)  # type: ignore[arg-type]
        if code:
            sys.exit(code)
