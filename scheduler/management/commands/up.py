"""`manage.py up`: run everything.

manage.py starts it without loading Django. This entry is for the list in `manage.py help`.
"""

from __future__ import annotations

import sys
from typing import Any

from django.core.management import BaseCommand

from scheduler.supervisor.up import main


class Command(BaseCommand):
    help = (
        "Runs everything on this machine: Redis, web, workers and beat, until Ctrl-C "
        "(PORT, DEMO=0, DATABASE_URL, REDIS_URL)."
    )
    requires_system_checks: list[str] = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        sys.exit(main())
