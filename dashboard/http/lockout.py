"""How wrong passwords are counted, so that guessing ends and nobody can lock another out for good.

Three counts, each for the last AXES_COOLOFF_TIME, and none is made longer by trying on while locked:

- An account from one address: AXES_FAILURE_LIMIT, then that account is locked for that address.
- An address, whoever it tries: SIGN_IN_ADDRESS_LIMIT, then that address is locked.
- An account, wherever the tries come from: SIGN_IN_USER_LIMIT, then each address has one try instead of ten. It is
  never locked everywhere: otherwise whoever knows a name could keep its owner out.

A browser in which the owner has signed in before is known by a signed cookie. It has a count of its own, and those
three do not concern it: whoever shares an address with an attacker still gets in where they worked yesterday.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username, get_cool_off, get_failure_limit
from axes.models import AccessAttempt
from django.conf import settings
from django.core import signing
from django.db.models import QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from dashboard.http.proxies import neighbourhood

KNOWN_BROWSER_COOKIE = "known_browser"
_A_YEAR = 365 * 86_400
_SALT = "dashboard.lockout.known_browser"

# Beginnings of what is kept as the user agent of an attempt. A visitor's own text never stands first.
_KNOWN = "known browser "
_NEW = "new browser "


def address_of(request: HttpRequest) -> str | None:
    """Named in AXES_CLIENT_IP_CALLABLE."""
    return neighbourhood(request.META.get("REMOTE_ADDR") or "") or None


class LockoutHandler(AxesDatabaseHandler):  # type: ignore[misc]  # axes has no types
    def get_failures(self, request: Any, credentials: dict[str, Any] | None = None) -> int:
        """The limit or more where signing in is locked, else how many wrong passwords count against it."""
        username = get_client_username(request, credentials)
        browser = known_browser(request, username or "")
        recent = _recent(request)
        if browser:
            return _total(recent.filter(username=username, user_agent=_KNOWN + browser))
        others = recent.exclude(user_agent__startswith=_KNOWN)
        from_here = _total(others.filter(username=username, ip_address=request.axes_ip_address))
        limit = int(get_failure_limit(request, credentials))
        if (
            _total(others.filter(ip_address=request.axes_ip_address))
            >= settings.SIGN_IN_ADDRESS_LIMIT
        ):
            return max(limit, from_here)
        if from_here and _total(others.filter(username=username)) >= settings.SIGN_IN_USER_LIMIT:
            return max(limit, from_here)
        return from_here

    def user_login_failed(
        self, sender: Any, credentials: dict[str, Any], request: Any = None, **more: Any
    ) -> None:
        if request is not None:
            _name_browser(request, get_client_username(request, credentials) or "")
        super().user_login_failed(sender, credentials, request, **more)

    def user_logged_in(self, sender: Any, request: Any, user: Any, **more: Any) -> None:
        """The right password ends what counted against this account here; what others do elsewhere counts on."""
        super().user_logged_in(sender, request, user, **more)
        own = AccessAttempt.objects.filter(username=user.get_username())
        browser = known_browser(request, user.get_username())
        if browser:
            own.filter(user_agent=_KNOWN + browser).delete()
        else:
            own.filter(ip_address=request.axes_ip_address).exclude(
                user_agent__startswith=_KNOWN
            ).delete()


def _recent(request: Any) -> QuerySet[Any]:
    since = timezone.now() - (get_cool_off(request) or timedelta())
    recent: QuerySet[Any] = AccessAttempt.objects.filter(attempt_time__gte=since)
    return recent


def _total(attempts: QuerySet[Any]) -> int:
    return int(attempts.aggregate(total=Sum("failures_since_start"))["total"] or 0)


def _name_browser(request: Any, username: str) -> None:
    browser = known_browser(request, username)
    own_words = str(request.axes_user_agent)
    request.axes_user_agent = (
        _KNOWN + browser if browser else (_NEW + own_words.removeprefix(_NEW))[:255]
    )


def known_browser(request: HttpRequest, username: str) -> str:
    """The name of a browser in which this account has signed in before; empty for any other."""
    try:
        kept = signing.loads(
            request.COOKIES.get(KNOWN_BROWSER_COOKIE, ""), salt=_SALT, max_age=_A_YEAR
        )
    except signing.BadSignature:
        return ""
    return str(kept["browser"]) if kept["username"] == username else ""


def remember_browser(request: HttpRequest, response: HttpResponse, username: str) -> None:
    """After a sign-in with the right password."""
    browser = known_browser(request, username) or secrets.token_hex(16)
    value = signing.dumps({"username": username, "browser": browser}, salt=_SALT)
    response.set_cookie(
        KNOWN_BROWSER_COOKIE,
        value,
        max_age=_A_YEAR,
        httponly=True,
        samesite="Lax",
        secure=settings.SECURE_COOKIES,
    )
