"""The code after the password, and /account/second-factor/, where it is set up."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dashboard.http.access import page
from dashboard.http.lockout import count_wrong_password, is_locked_out, remember_browser
from dashboard.http.second_factor import has_second_factor, pending_step
from dashboard.http.sign_in import finish, locked_out
from dashboard.sso import codes
from dashboard.views.common import actor
from scheduler.services.accounts.second_factors import remove_second_factor

_SECRET: Final = "second_factor_secret"  # noqa: S105 - where it is in the session
_WRONG: Final = (
    "This code is not right, or was used already. Wait for the next one. If it is never right, "
    "compare the clock of your phone."
)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def second_step(request: HttpRequest) -> HttpResponse:
    """After the password, or after the provider. Wrong codes count like wrong passwords."""
    found = pending_step(request)
    if found is None:
        messages.info(request, "It took too long. Begin again with your password.")
        return redirect("login")
    user, pending = found
    name = user.get_username()
    if is_locked_out(request, name):
        return locked_out(request, credentials={"username": name})
    if request.method != "POST":
        return render(request, "sso/second_step.html")
    if codes.is_right_code(user, request.POST.get("code", "")):
        answer = finish(request, user, pending["wanted"], pending["sign_on"])
        remember_browser(request, answer, name)
        return answer
    count_wrong_password(request, name)
    return render(request, "sso/second_step.html", {"problem": _WRONG}, status=400)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@page
def second_factor(request: HttpRequest) -> HttpResponse:
    if has_second_factor(request.user):
        return _set_up(request)
    return _setting_up(request)


def _setting_up(request: HttpRequest) -> HttpResponse:
    secret = request.session.setdefault(_SECRET, codes.new_secret())
    problem = ""
    if request.method == "POST":
        if not request.user.check_password(request.POST.get("password", "")):
            problem = _wrong_password(request)
        else:
            code = request.POST.get("code", "")
            recovery = codes.add_second_factor(request.user, secret, code, by=actor(request))
            if recovery is not None:
                del request.session[_SECRET]
                return _shown_once(request, recovery)
            problem = _WRONG
    picture = mark_safe(codes.picture_of(request.user, secret))  # noqa: S308 - an SVG of ours
    context = {"picture": picture, "secret": secret, "problem": problem}
    return render(request, "sso/set_up.html", context, status=400 if problem else 200)


def _wrong_password(request: HttpRequest) -> str:
    count_wrong_password(request, request.user.get_username())
    return "The password is not right."


def _shown_once(request: HttpRequest, recovery: list[str]) -> HttpResponse:
    return render(request, "sso/recovery_codes.html", {"codes": recovery})


def _set_up(request: HttpRequest) -> HttpResponse:
    """What is done to a second factor takes a code of it."""
    name = request.user.get_username()
    if is_locked_out(request, name):
        return locked_out(request, credentials={"username": name})
    problem = ""
    if request.method == "POST":
        if codes.is_right_code(request.user, request.POST.get("code", "")):
            return _done(request)
        count_wrong_password(request, name)
        problem = _WRONG
    context = {"problem": problem, "left": codes.unused_recovery_codes(request.user)}
    return render(request, "sso/second_factor.html", context, status=400 if problem else 200)


def _done(request: HttpRequest) -> HttpResponse:
    if request.POST.get("do") == "renew":
        return _shown_once(request, codes.renew_recovery_codes(request.user, by=actor(request)))
    remove_second_factor(request.user, by=actor(request))
    messages.success(request, "Removed. Your password alone is asked for from now on.")
    return redirect("account")
