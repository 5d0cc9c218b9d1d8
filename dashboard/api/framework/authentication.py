"""Who is asking: a browser with its session and a CSRF token, or a program with a bearer token."""

from __future__ import annotations

from typing import Any

from rest_framework import authentication, exceptions
from rest_framework.request import Request

from scheduler.domain.access import Access
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.accounts.tokens import BadToken, token_user


class BearerAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer fum_…`. It is asked first: a wrong token is refused in any case."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return None
        if scheme.lower() != "bearer" or not secret.strip():
            raise exceptions.AuthenticationFailed(
                "Only “Authorization: Bearer …” is understood here."
            )
        try:
            return token_user(secret.strip())
        except BadToken as error:
            raise exceptions.AuthenticationFailed(str(error)) from None

    def authenticate_header(self, _request: Request) -> str:
        return 'Bearer realm="Fumarole"'


class SessionAuthentication(authentication.SessionAuthentication):
    """As Django's, with CSRF checked on every write."""

    def enforce_csrf(self, request: Request) -> None:
        """Django's own request has the form's fields; here they were read as an object already."""
        super().enforce_csrf(request._request)  # type: ignore[arg-type]

    def authenticate_header(self, _request: Request) -> str:
        return 'Bearer realm="Fumarole"'


def actor_of(
    request: Any,
    door: Door | None = None,
    access: Access | None = None,
    reason: str = "",
) -> Actor:
    """Who asks, for services. `access` is what they may do, where that is known already."""
    token = getattr(request, "auth", None)
    scopes = None
    if token is not None:
        scopes = frozenset(token.scopes)
    return Actor(
        name=request.user.get_username(),
        door=door or _door_of(request),
        user=request.user,
        address=request.META.get("REMOTE_ADDR") or "",
        request_id=_request_id(request),
        scopes=scopes,
        access=access,
        reason=reason,
        token=token,
    )


def _request_id(request: Any) -> str:
    """From the request itself, or from Django's request inside it."""
    for holder in (request, getattr(request, "_request", None)):
        found: str = getattr(holder, "request_id", "")
        if found:
            return found
    return ""


def _door_of(request: Any) -> Door:
    agent = request.headers.get("User-Agent", "")
    if agent.startswith("vcctl/"):
        return Door.CLI
    return Door.API
