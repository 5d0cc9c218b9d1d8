"""`manage.py quality`: how well the cluster was scheduled lately."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from scheduler.management.console import write_json
from scheduler.management.quality import (
    as_document,
    as_text,
    figures_of_the_last,
    rests_of_kept_sessions,
)

RESTLESS = 1  # exit code


class Command(BaseCommand):
    help = (
        "Show how well the cluster was scheduled lately: placements, evictions, and the GPU time "
        "that was useful or lost. With --rest also whether the kept sessions come to rest."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--minutes", type=float, default=60.0, help="how far to look back (default 60)"
        )
        parser.add_argument(
            "--rest",
            type=int,
            metavar="N",
            help="run each kept session forward for N sessions; exit code 1 without rest",
        )
        parser.add_argument("--output", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        figures = figures_of_the_last(options["minutes"])
        rests = []
        if options["rest"]:
            rests = rests_of_kept_sessions(options["rest"])
        if options["output"] == "json":
            write_json(self.stdout, [as_document(figures, rests)])  # type: ignore[arg-type]
        else:
            self.stdout.write(as_text(figures, rests))
        if any(found.rest.after is None for found in rests):
            sys.exit(RESTLESS)
