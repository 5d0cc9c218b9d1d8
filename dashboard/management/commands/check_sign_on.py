"""`manage.py check_sign_on`: does single sign-on work? Step by step, as the page tells it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from scheduler.conf import conf


class Command(BaseCommand):
    help = (
        "Asks the provider of SSO_ISSUER for its description and keys, tries the client's secret "
        "and the way back, and says what is wrong and what to do. Nobody has to sign on."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--url", default="", help="Where the pages are. Without it: PUBLIC_URL."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        if not settings.HAS_SIGN_ON_PACKAGES:
            raise CommandError("The packages of requirements-sso.txt are not installed.")
        from dashboard.sso.connection import WRONG, check_connection
        from dashboard.sso.provider import PROVIDER_ID

        site = (options["url"] or conf().notices.public_url).rstrip("/")
        if not site:
            raise CommandError("Give --url, or set PUBLIC_URL, so that the way back can be tried.")
        back = reverse("openid_connect_callback", kwargs={"provider_id": PROVIDER_ID})
        steps = check_connection(site + back)
        for step in steps:
            self.stdout.write(f"{step.verdict:7}  {step.title}: {step.words} {step.fix}".rstrip())
        if any(step.verdict == WRONG for step in steps):
            raise CommandError("Single sign-on does not work yet.")
