"""/account/: the user's password, tokens for programs, time zone, theme and roles."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard.http.access import access, page
from dashboard.http.context import THEME_COOKIE
from dashboard.http.lockout import count_wrong_password, is_locked_out
from dashboard.http.second_factor import has_second_factor
from dashboard.http.sign_in import locked_out
from dashboard.present.terminal import copies_of_call
from dashboard.views.calendar import time_zones
from dashboard.views.common import actor
from scheduler.admission.violations import Rejected, Violation
from scheduler.conf import conf
from scheduler.domain.access import Scope
from scheduler.models import ApiToken, Identity
from scheduler.selectors.accounts.access import grants_of
from scheduler.selectors.accounts.preferences import preference_of
from scheduler.services.accounts.preferences import (
    THEMES,
    WrongPassword,
    change_password,
    set_preferences,
)
from scheduler.services.accounts.tokens import NewToken, create_token, revoke_token

Context = dict[str, Any]
SCOPES = {
    Scope.READ: "read everything that you may see",
    Scope.SUBMIT: "and submit jobs, and stop your own",
    Scope.OPERATE: "and open, close, suspend and resume queues, command any job there",
    Scope.ADMIN: "and everything else that you may do",
}
_DIFFERENT = Violation(
    "invalid_value", "", "again", "The two new passwords differ. Type the same one twice."
)
LIFETIMES = {"7": "a week", "30": "a month", "90": "three months", "365": "a year", "": "no limit"}


@require_safe
@page
def account(request: HttpRequest) -> HttpResponse:
    return _render(request)


def _render(
    request: HttpRequest,
    *,
    new: NewToken | None = None,
    problems: tuple[str, Rejected] | None = None,
) -> HttpResponse:
    where, refusal = problems or ("", None)
    tokens = []
    for token in ApiToken.objects.filter(user=request.user.pk, revoked_at=None):
        tokens.append(_token(token))
    context: Context = {
        "tokens": tokens,
        "scopes": SCOPES.items(),
        "lifetimes": LIFETIMES.items(),
        "preference": preference_of(request.user),
        "zones": time_zones(),
        "themes": THEMES,
        "grants": grants_of(request.user),
        "is_cluster_admin": access(request).is_cluster_admin,
        "has_codes": settings.HAS_SIGN_ON_PACKAGES,
        "has_second_factor": has_second_factor(request.user),
        "identity": Identity.objects.filter(user=request.user.pk).first(),
        "sign_on": conf().sign_on,
        "new": new,
        "copies": copies_of_call(request, "tokens/", {"name": "NAME", "scopes": ["read"]}),
        "where": where,
        "problems": [violation.message for violation in refusal.violations] if refusal else [],
    }
    return render(request, "accounts/account.html", context, status=400 if problems else 200)


def _token(token: ApiToken) -> Context:
    is_over = token.expires_at is not None and token.expires_at <= timezone.now()
    return {"row": token, "scopes": ", ".join(token.scopes), "is_over": is_over}


@require_POST
@page
def password(request: HttpRequest) -> HttpResponse:
    username = request.user.get_username()
    if is_locked_out(request, username):
        return locked_out(request, credentials={"username": username})
    new = request.POST.get("new", "")
    try:
        if new != request.POST.get("again", ""):
            raise Rejected([_DIFFERENT])
        change_password(request.user, request.POST.get("old", ""), new, by=actor(request))
    except WrongPassword as refusal:
        count_wrong_password(request, username)
        return _render(request, problems=("password", refusal))
    except Rejected as refusal:
        return _render(request, problems=("password", refusal))
    update_session_auth_hash(request, request.user)  # type: ignore[arg-type]
    messages.success(
        request,
        "Your password is changed. Other browsers where you were signed in have to sign in again.",
    )
    return redirect("account")


@require_POST
@never_cache
@page
def new_token(request: HttpRequest) -> HttpResponse:
    """The secret is in this one answer and nowhere else."""
    days = request.POST.get("days", "")
    expires_at = None
    if days.isdecimal() and len(days) < 5 and int(days):
        expires_at = timezone.now() + timedelta(days=int(days))
    try:
        new = create_token(
            request.user,
            request.POST.get("name", "").strip(),
            _scopes(request),
            by=actor(request),
            expires_at=expires_at,
        )
    except Rejected as refusal:
        return _render(request, problems=("tokens", refusal))
    return _render(request, new=new)


def _scopes(request: HttpRequest) -> list[str]:
    """One is chosen and holds those before it."""
    chosen = request.POST.get("scope", "")
    if chosen:
        return [chosen]
    return []


@require_POST
@page
def forget_token(request: HttpRequest, number: int) -> HttpResponse:
    token = ApiToken.objects.select_related("user").filter(pk=number, user=request.user.pk).first()
    if token is None:
        messages.error(request, "There is no such token of yours.")
    else:
        revoke_token(token, by=actor(request))
        messages.success(
            request,
            f"The token {token.name} is revoked: programs that use it are turned away from now on.",
        )
    return redirect("account")


@require_POST
@page
def display(request: HttpRequest) -> HttpResponse:
    theme = request.POST.get("theme", "system")
    try:
        set_preferences(
            request.user,
            time_zone=request.POST.get("time_zone", ""),
            theme=theme,
            by=actor(request),
        )
    except Rejected as refusal:
        return _render(request, problems=("display", refusal))
    messages.success(request, "Kept.")
    answer = redirect("account")
    answer.set_cookie(
        THEME_COOKIE,
        theme,
        max_age=365 * 86_400,
        samesite="Lax",
        secure=request.is_secure(),
    )
    return answer
