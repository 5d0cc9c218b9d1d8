"""The sign-in page and the answer to too many wrong passwords."""

from __future__ import annotations

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard.forms.sign_in import SignInForm
from dashboard.http.lockout import minutes_locked, remember_browser
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
