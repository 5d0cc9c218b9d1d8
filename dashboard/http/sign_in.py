"""The sign-in page, what follows a sign-in, and the answer to too many wrong passwords."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from dashboard.forms.sign_in import SignInForm
from dashboard.http.lockout import minutes_locked, remember_browser
from dashboard.http.second_factor import begin_second_step, forget_step, has_second_factor
from scheduler.conf import conf
from scheduler.domain.access import Permission
from scheduler.selectors.accounts.access import access_of

SIGN_ON = "sign_on"
"""What the browser's session keeps of a sign-on: the proof of it, for the sign-out."""

_BACKEND = "django.contrib.auth.backends.ModelBackend"


class SignIn(LoginView):
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *arguments: Any, **keywords: Any) -> HttpResponseBase:
        request.asks_for_code = True  # type: ignore[attr-defined]
        return super().dispatch(request, *arguments, **keywords)

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        return super().get_context_data(sign_on=conf().sign_on, **context)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        answer = go_on(self.request, form.get_user(), self.get_redirect_url())
        if self.request.user.is_authenticated:
            remember_browser(self.request, answer, form.get_user().get_username())
        return answer

    # The stubs know of a request that Django does not pass.
    def get_redirect_url(self) -> str:  # type: ignore[override]
        return asked_for(self.request, super().get_redirect_url())

    def get_default_redirect_url(self) -> str:
        return first_page(self.request)


def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """From the tables of Django's admin site. Somebody signed in would be sent back for ever."""
    if request.user.is_authenticated and not admin.site.has_permission(request):
        raise PermissionDenied
    return redirect(f"{reverse('login')}?{request.META.get('QUERY_STRING', '')}")


def go_on(
    request: HttpRequest, user: Any, wanted: str, sign_on: dict[str, str] | None = None
) -> HttpResponse:
    """After the first step: sign in, or ask for the code that this account needs besides."""
    if not has_second_factor(user):
        return finish(request, user, wanted, sign_on)
    if not settings.HAS_SIGN_ON_PACKAGES:
        return render(request, "accounts/codes_missing.html", status=503)
    begin_second_step(request, user, wanted=wanted, sign_on=sign_on)
    return redirect("second-step")


def finish(
    request: HttpRequest, user: Any, wanted: str, sign_on: dict[str, str] | None
) -> HttpResponse:
    """Sign in. A session that came from a sign-on has an end that does not move."""
    login(request, user, backend=_BACKEND)
    forget_step(request)
    if sign_on:
        request.session[SIGN_ON] = sign_on
        ends = timezone.now() + timedelta(hours=conf().sign_on.session_hours)
        request.session.set_expiry(ends)
    return redirect(asked_for(request, wanted) or first_page(request))


def asked_for(request: HttpRequest, wanted: str) -> str:
    """Users who opened the site's address alone did not ask for a certain page."""
    is_ours = url_has_allowed_host_and_scheme(
        wanted, {request.get_host()}, require_https=request.is_secure()
    )
    if not is_ours or wanted == reverse("overview"):
        return ""
    return wanted


def first_page(request: HttpRequest) -> str:
    """Operators start with the overview, submitters with their own jobs."""
    mine = access_of(request.user)
    operates = mine.may_anywhere(Permission.OPERATE)
    if mine.may_anywhere(Permission.SUBMIT) and not operates:
        return f"{reverse('jobs')}?q=user:me"
    return reverse("overview")


def locked_out(
    request: HttpRequest,
    response: HttpResponse | None = None,
    credentials: dict[str, str] | None = None,
) -> HttpResponse:
    """Named in AXES_LOCKOUT_CALLABLE. The API has its own answer, which is kept."""
    if response is not None and response.status_code == 429:
        return response
    minutes = minutes_locked(request)
    context = {"username": (credentials or {}).get("username", ""), "minutes": minutes}
    answer = render(request, "accounts/locked_out.html", context, status=429)
    answer["Retry-After"] = str(minutes * 60)
    return answer
