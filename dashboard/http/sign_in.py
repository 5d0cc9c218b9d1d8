"""The sign-in page and the answer to too many wrong passwords."""

from __future__ import annotations

from datetime import timedelta

from axes.helpers import get_cool_off
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard.forms.sign_in import SignInForm
from dashboard.http.lockout import remember_browser
from scheduler.domain.access import Permission
from scheduler.selectors.accounts.access import access_of


class SignIn(LoginView):
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_valid(form)
        remember_browser(self.request, answer, form.get_user().get_username())
        return answer

    # The stubs know of a request that Django does not pass.
    def get_redirect_url(self) -> str:  # type: ignore[override]
        """Users who opened the site's address alone did not ask for a certain page."""
        wanted = super().get_redirect_url()
        if wanted == reverse("overview"):
            return ""
        return wanted

    def get_default_redirect_url(self) -> str:
        """Operators start with the overview, submitters with their own jobs."""
        mine = access_of(self.request.user)
        operates = mine.may_anywhere(Permission.OPERATE)
        if mine.may_anywhere(Permission.SUBMIT) and not operates:
            return f"{reverse('jobs')}?q=user:me"
        return super().get_default_redirect_url()


def locked_out(
    request: HttpRequest,
    _response: HttpResponse | None = None,
    credentials: dict[str, str] | None = None,
) -> HttpResponse:
    """Named in AXES_LOCKOUT_CALLABLE."""
    cool_off = get_cool_off(request) or timedelta()
    context = {
        "username": (credentials or {}).get("username", ""),
        "minutes": round(cool_off.total_seconds() / 60),
    }
    answer = render(request, "accounts/locked_out.html", context, status=429)
    answer["Retry-After"] = str(round(cool_off.total_seconds()))
    return answer
