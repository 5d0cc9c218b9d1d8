"""How wrong passwords are counted, so that guessing ends and nobody can lock another out for good.

There are three counts, each for the last AXES_COOLOFF_TIME. Attempts while locked do not prolong
them:

- An account from one address: AXES_FAILURE_LIMIT, then that account is locked for that address.
- An address, with any account: SIGN_IN_ADDRESS_LIMIT, then that address is locked.
- An account, from any address: SIGN_IN_USER_LIMIT, then each address has one try instead of ten.
  It is never locked everywhere: otherwise anyone who knows a name could keep its owner out.

A wrong old password, typed to change it, counts like one at the sign-in: whoever has stolen a
session or a token must not find the password by trying.

A browser in which the owner has signed in before is known by a signed cookie. It has a count of its
own, and the three do not apply to it: users who share an address with an attacker can still sign in
where they worked yesterday.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_client_username, get_cool_off, get_failure_limit
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.core import signing
from django.db.models import QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from dashboard.http.proxies import neighbourhood

KNOWN_BROWSER_COOKIE = "known_browser"
_A_YEAR = 365 * 86_400
_SALT = "dashboard.lockout.known_browser"

# How the stored user agent of an attempt begins. A visitor's own text never comes first.
_KNOWN = "known browser "
_NEW = "new browser "


def address_of(request: HttpRequest) -> str | None:
    """Named in AXES_CLIENT_IP_CALLABLE."""
    return neighbourhood(request.META.get("REMOTE_ADDR") or "") or None


def is_locked_out(request: HttpRequest, username: str) -> bool:
    return bool(AxesProxyHandler.is_locked(request, {"username": username}))


def minutes_locked(request: HttpRequest) -> int:
    return round(_cool_off(request).total_seconds() / 60)


def _cool_off(request: HttpRequest) -> timedelta:
    cool_off: timedelta | None = get_cool_off(request)
    return cool_off or timedelta()


def count_wrong_password(request: HttpRequest, username: str) -> None:
    """For a password that was not typed at the sign-in."""
    user_login_failed.send(sender=__name__, credentials={"username": username}, request=request)


class LockoutHandler(AxesDatabaseHandler):  # type: ignore[misc]  # axes has no types
    def get_failures(self, request: Any, credentials: dict[str, Any] | None = None) -> int:
        """How many wrong passwords count. The limit or more means that signing in is locked."""
        username = get_client_username(request, credentials)
        browser = known_browser(request, username or "")
        recent = _recent_attempts(request)
        if browser:
            return _failures_in(recent.filter(username=username, user_agent=_KNOWN + browser))
        unknown = recent.exclude(user_agent__startswith=_KNOWN)
        of_address = unknown.filter(ip_address=request.axes_ip_address)
        from_here = _failures_in(of_address.filter(username=username))
        limit = int(get_failure_limit(request, credentials))
        if _failures_in(of_address) >= settings.SIGN_IN_ADDRESS_LIMIT:
            return max(limit, from_here)
        of_user = unknown.filter(username=username)
        if from_here and _failures_in(of_user) >= settings.SIGN_IN_USER_LIMIT:
            return max(limit, from_here)
        return from_here

    def user_login_failed(
        self,
        sender: Any,
        credentials: dict[str, Any],
        request: Any = None,
        **more: Any,
    ) -> None:
        if request is not None:
            _name_browser(request, get_client_username(request, credentials) or "")
        super().user_login_failed(sender, credentials, request, **more)

    def user_logged_in(self, sender: Any, request: Any, user: Any, **more: Any) -> None:
        """The right password clears this account's count here; attempts elsewhere still count."""
        super().user_logged_in(sender, request, user, **more)
        own = AccessAttempt.objects.filter(username=user.get_username())
        browser = known_browser(request, user.get_username())
        if browser:
            own.filter(user_agent=_KNOWN + browser).delete()
            return
        from_here = own.filter(ip_address=request.axes_ip_address)
        from_here.exclude(user_agent__startswith=_KNOWN).delete()


def _recent_attempts(request: Any) -> QuerySet[Any]:
    since = timezone.now() - _cool_off(request)
    recent: QuerySet[Any] = AccessAttempt.objects.filter(attempt_time__gte=since)
    return recent


def _failures_in(attempts: QuerySet[Any]) -> int:
    return int(attempts.aggregate(total=Sum("failures_since_start"))["total"] or 0)


def _name_browser(request: Any, username: str) -> None:
    browser = known_browser(request, username)
    if browser:
        request.axes_user_agent = _KNOWN + browser
        return
    own_words = str(request.axes_user_agent).removeprefix(_NEW)
    request.axes_user_agent = (_NEW + own_words)[:255]


def known_browser(request: HttpRequest, username: str) -> str:
    """The name of a browser in which this account has signed in before; empty for any other."""
    cookie = request.COOKIES.get(KNOWN_BROWSER_COOKIE, "")
    try:
        kept = signing.loads(cookie, salt=_SALT, max_age=_A_YEAR)
    except signing.BadSignature:
        return ""
    if kept["username"] != username:
        return ""
    return str(kept["browser"])


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
