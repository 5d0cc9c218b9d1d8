"""Which accounts need a code besides their password, and that no door forgets to ask for it."""

from __future__ import annotations

import time
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from scheduler.models import SecondFactor

_PENDING: Final = "second_step"
_SECONDS: Final = 300


def has_second_factor(user: Any) -> bool:
    return SecondFactor.objects.filter(user=user.pk).exists()


class OneDoorForPasswords:
    """Named in AUTHENTICATION_BACKENDS before the one that looks at passwords.

    The sign-in page asks for the code afterwards. Whatever else takes a password does not, so it
    is refused for accounts that need one. It signs nobody in, so it has no `get_user`.
    """

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        **_password: Any,
    ) -> None:
        if request is not None and getattr(request, "asks_for_code", False):
            return
        accounts = SecondFactor.objects.filter(user__username=username or "")
        if accounts.exists():
            raise PermissionDenied("This account needs a second factor.")


def begin_second_step(request: HttpRequest, user: Any, **more: Any) -> None:
    """The first step is done. What is known so far waits in the browser's session."""
    request.session.cycle_key()
    request.session[_PENDING] = {
        "user": user.pk,
        "hash": user.get_session_auth_hash(),
        "at": time.time(),
        **more,
    }


def pending_step(request: HttpRequest) -> tuple[Any, dict[str, Any]] | None:
    """Who is half signed in. None after five minutes, or if their password was changed."""
    pending = request.session.get(_PENDING)
    if not pending or time.time() - pending["at"] > _SECONDS:
        return None
    user = get_user_model().objects.filter(pk=pending["user"], is_active=True).first()
    if user is None or user.get_session_auth_hash() != pending["hash"]:
        return None
    return user, pending


def forget_step(request: HttpRequest) -> None:
    request.session.pop(_PENDING, None)
