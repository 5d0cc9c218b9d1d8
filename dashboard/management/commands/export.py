"""`manage.py export`: all configuration as YAML, as `vcctl export --all` writes it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from scheduler.selectors.files.configuration import configuration
from scheduler.yaml_texts import to_yaml


class Command(BaseCommand):
    help = (
        "Writes all configuration as YAML: namespaces, priority classes, groups, users, queues, "
        "roles, mapped groups, settings, policy, rules of notices, change sets and their plans. "
        "Without passwords and tokens. "
        "Read it back with manage.py apply, or vcctl apply."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        text = "---\n".join(to_yaml(document) for document in configuration())
        self.stdout.write(text, ending="")
