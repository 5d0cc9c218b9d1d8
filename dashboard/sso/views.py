"""To the provider, back from it, and out again. Pages without traceback, whatever goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

import requests
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard.api.framework.authentication import actor_of
from dashboard.http.access import page
from dashboard.http.sign_in import go_on
from dashboard.sso import problems
from dashboard.sso.problems import SignOnProblem, problem_page
from dashboard.sso.provider import PROVIDER_ID, VerifyingAdapter, require_nonce, visitor_of
from dashboard.views.common import actor
from scheduler.admission.violations import Rejected, in_words
from scheduler.conf import CREATE_MAPPED, conf
from scheduler.models import Identity
from scheduler.selectors.accounts.access import access_of
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.accounts.sign_on import (
    BY_SIGN_ON,
    NotLinked,
    Visitor,
    admit,
    link,
    no_mapped_group,
    unlink,
)

logger = logging.getLogger(__name__)
View = Callable[..., HttpResponse]


def _needs_provider(view: View) -> View:
    @wraps(view)
    def guarded(request: HttpRequest, *arguments: Any, **keywords: Any) -> HttpResponse:
        if not conf().sign_on.is_on:
            raise Http404("Single sign-on is not set up.")
        try:
            return view(request, *arguments, **keywords)
        except (OAuth2Error, requests.RequestException) as error:
            return problem_page(request, problems.of_exception(error))

    return guarded


@require_safe
@never_cache
@_needs_provider
def begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    """To the provider. With a page wanted afterwards; a signed-in user needs no sign-on."""
    if request.user.is_authenticated:
        return redirect("overview")
    provider = get_adapter(request).get_provider(request, provider_id)
    answer: HttpResponse = provider.redirect(request, "login", request.GET.get("next", ""))
    return answer


@require_POST
@page
@_needs_provider
def connect(request: HttpRequest) -> HttpResponse:
    """Link the account that is signed in with who one is at the provider."""
    provider = get_adapter(request).get_provider(request, PROVIDER_ID)
    answer = provider.redirect(request, "connect", data={"user": request.user.pk})
    return going_to(request, answer.url)


@require_POST
@page
@_needs_provider
def disconnect(request: HttpRequest) -> HttpResponse:
    identity = Identity.objects.select_related("user").filter(user=request.user.pk).first()
    if identity is None:
        messages.info(request, "Your account is not linked.")
        return redirect("account")
    try:
        unlink(identity, by=actor(request))
        messages.success(request, "Unlinked. Roles that came with your groups have ended.")
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
    return redirect("account")


@never_cache
@_needs_provider
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    view = OAuth2CallbackView.adapter_view(VerifyingAdapter(request, provider_id))
    answer: HttpResponse = view(request)
    return answer


def let_in(request: HttpRequest, claims: dict[str, Any], state: dict[str, Any]) -> HttpResponse:
    """The provider has said who they are. Their account, their roles, and in."""
    require_nonce(claims, state)
    visitor = visitor_of(claims)
    if state.get("process") == "connect":
        return _link(request, visitor, state)
    by = Actor(BY_SIGN_ON, Door.UI, address=request.META.get("REMOTE_ADDR") or "")
    try:
        user = admit(visitor, by=by)
    except NotLinked as refusal:
        return _turned_away(request, str(refusal))
    if not user.is_active:
        return _turned_away(
            request, "Your account is switched off. Ask an admin to switch it on.", "Switched off"
        )
    if conf().sign_on.create_users == CREATE_MAPPED and not _has_any_role(user):
        return _turned_away(request, no_mapped_group(visitor))
    sign_on: dict[str, str] = request.sign_on  # type: ignore[attr-defined]
    return go_on(request, user, state.get("next", ""), sign_on)


def _has_any_role(user: Any) -> bool:
    return user.is_superuser or bool(access_of(user).granted)


def _turned_away(
    request: HttpRequest, words: str, title: str = "You have no role here"
) -> HttpResponse:
    fix = "Ask an admin of your queue. It counts from your next sign-on."
    return problem_page(request, SignOnProblem(title, words, fix, 403))


def _link(request: HttpRequest, visitor: Visitor, state: dict[str, Any]) -> HttpResponse:
    """Only the account that began it, in the same browser."""
    begun_by = (state.get("data") or {}).get("user")
    if not request.user.is_authenticated or request.user.pk != begun_by:
        return problem_page(request, problems.state_is_unknown())
    try:
        link(request.user, visitor, by=actor_of(request, Door.UI))
    except NotLinked as refusal:
        messages.error(request, str(refusal))
        return redirect("account")
    messages.success(request, f"Your account is linked with {conf().sign_on.name}.")
    return redirect("account")


def going_to(request: HttpRequest, address: str) -> HttpResponse:
    """A page that goes on by itself: a form may not lead to another site, a page may."""
    context = {"address": address, "provider": conf().sign_on.name}
    return render(request, "sso/going.html", context)


def sign_out_address(request: HttpRequest, id_token: str, back: str) -> str:
    """Where the provider signs people out; empty where it has no such address, or is away."""
    try:
        config = VerifyingAdapter(request, PROVIDER_ID).openid_config
    except (OAuth2Error, requests.RequestException) as problem:
        logger.warning("the provider was not asked to sign out: %s", problem)
        return ""
    endpoint = config.get("end_session_endpoint")
    if not endpoint:
        return ""
    hints = {
        "id_token_hint": id_token,
        "post_logout_redirect_uri": back,
        "client_id": conf().sign_on.client_id,
    }
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(hints)}"
