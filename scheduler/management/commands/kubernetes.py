"""`manage.py kubernetes`: definitions, rights and webhooks, and which new work is ours."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler.clusters.kubernetes.credentials import CredentialsError
from scheduler.clusters.kubernetes.errors import ApiError
from scheduler.clusters.kubernetes.take_over import CannotTakeOver
from scheduler.management.kubernetes import (
    GIVE_BACK,
    TAKE_OVER,
    BadOption,
    dry_run,
    lines_of,
)


class Command(BaseCommand):
    help = (
        "Put what Fumarole needs into a Kubernetes cluster (install), say what is there (status), "
        "or take it out again (uninstall). Give new work of a namespace or a queue to Fumarole "
        "while Volcano's scheduler goes on with the rest (take-over), or leave it to Volcano "
        "again (give-back)."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        actions = ["install", "status", "uninstall", TAKE_OVER, GIVE_BACK]
        parser.add_argument("action", choices=actions)
        parser.add_argument("--kubeconfig", default="", help="default: $KUBECONFIG")
        parser.add_argument("--context", default="", help="a context of the kubeconfig")
        parser.add_argument(
            "--mode",
            choices=["watch", "schedule"],
            default="watch",
            help="which rights are given (default watch: it places and evicts nothing)",
        )
        parser.add_argument(
            "--webhooks", default="", metavar="URL", help="the address that the API server asks"
        )
        parser.add_argument(
            "--ca", default="", metavar="FILE", help="the authority of that address"
        )
        parser.add_argument(
            "--ignore-failures",
            action="store_true",
            help="while Fumarole is away, let the API server accept everything",
        )
        parser.add_argument(
            "--replace-crds",
            action="store_true",
            help="replace definitions that are there by ours, which know the state Suspended",
        )
        parser.add_argument(
            "--namespace",
            action="append",
            default=[],
            metavar="NAME",
            help="take over, or give back, what is created in it; can be repeated",
        )
        parser.add_argument(
            "--queue",
            action="append",
            default=[],
            metavar="NAME",
            help="take over, or give back, what is created for it; can be repeated",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="print the YAML, and ask the cluster nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        try:
            if options["dry_run"]:
                self.stdout.write(dry_run(options))
                return
            for line in lines_of(options):
                self.stdout.write(line)
        except (ApiError, BadOption, CannotTakeOver, CredentialsError) as problem:
            raise CommandError(str(problem)) from problem
