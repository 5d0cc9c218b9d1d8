"""What the pages' forms take; rules are the services' business."""

from __future__ import annotations

from django.contrib.auth.forms import AuthenticationForm


class SignInForm(AuthenticationForm):
    error_messages = {
        "invalid_login": (
            "This name and password do not belong together. "
            "Check both; capitals count in passwords."
        ),
        "inactive": "This account is switched off. Ask an administrator to switch it on.",
    }
