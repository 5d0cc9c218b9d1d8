"""What can go wrong on the way to the provider and back: a page for each, with what to do."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import requests
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from scheduler.conf import conf

logger = logging.getLogger(__name__)


@dataclass
class SignOnProblem(OAuth2Error):  # type: ignore[misc]  # allauth has no types
    """`words` say what happened, `fix` what to do. `status` is that of the page."""

    title: str
    words: str
    fix: str = ""
    status: int = 502

    def __str__(self) -> str:
        return self.words


def problem_page(request: HttpRequest, problem: SignOnProblem) -> HttpResponse:
    if problem.status >= 500:
        logger.warning("a sign-on failed: %s", problem)
    return render(
        request,
        "sso/problem.html",
        {"problem": problem, "provider": conf().sign_on.name},
        status=problem.status,
    )


def provider_is_down(error: Exception) -> SignOnProblem:
    issuer = conf().sign_on.issuer
    if isinstance(error, requests.HTTPError) and error.response is not None:
        what = f"It answered with status {error.response.status_code}."
    elif isinstance(error, requests.exceptions.SSLError):
        what = "Its certificate is not trusted here."
    elif isinstance(error, requests.Timeout):
        what = "It did not answer in time."
    elif isinstance(error, requests.ConnectionError):
        what = "No connection to it could be made."
    else:
        what = "Its answer could not be understood."
    return SignOnProblem(
        "The provider does not answer",
        f"{issuer} could not be asked who you are. {what}",
        "Try again in a minute. With a password you can sign in all the same.",
        503,
    )


def state_is_unknown() -> SignOnProblem:
    return SignOnProblem(
        "This sign-on was not begun here",
        "The answer of the provider does not belong to a sign-on that this browser began in the "
        "last ten minutes.",
        "Begin again at the sign-in page. If it happens again, allow cookies for this site.",
        400,
    )


def refused_by_provider(error: str, description: str) -> SignOnProblem:
    if error == "access_denied":
        return SignOnProblem(
            "You were not admitted",
            f"The provider did not let you in, or you cancelled it. {description}".strip(),
            "Begin again at the sign-in page.",
            403,
        )
    said = f"{error[:80]}: {description[:300]}".strip(": ")
    return SignOnProblem(
        "The provider refused",
        f"The provider said “{said or 'nothing'}”.",
        "An admin finds out why on the page of single sign-on.",
    )


def of_exception(error: Exception | None) -> SignOnProblem:
    if isinstance(error, SignOnProblem):
        return error
    if isinstance(error, requests.RequestException):
        return provider_is_down(error)
    text = str(error or "")
    if "invalid_client" in text or "unauthorized_client" in text:
        return SignOnProblem(
            "The provider does not know this console",
            "It refused the client's id or secret.",
            "An admin has to correct SSO_CLIENT_ID and SSO_CLIENT_SECRET.",
        )
    if "invalid_grant" in text:
        return SignOnProblem(
            "This sign-on is too old",
            "The provider no longer knows the code that it gave to your browser.",
            "Begin again at the sign-in page.",
            400,
        )
    logger.warning("a sign-on failed: %s", text[:500])
    return SignOnProblem(
        "The sign-on failed",
        "The provider did not give what is needed to know who you are.",
        "An admin finds out why on the page of single sign-on, and in the log.",
    )


def of_request(request: HttpRequest, more: dict[str, Any]) -> SignOnProblem:
    """Where there was no exception: the provider refused, or the state is not known."""
    if more.get("state") is None:
        return state_is_unknown()
    return refused_by_provider(
        request.GET.get("error", ""), request.GET.get("error_description", "")
    )
