"""A socket that a program opens with a token, in a header or as a subprotocol.

A browser's page has a session instead. It sends its cookie to any site's request, so its origin
counts. A token is never sent by itself, so here no origin is asked for, and no cookie is read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from channels.db import database_sync_to_async

from dashboard.live.identity import Visitor
from scheduler.domain.access import Permission
from scheduler.selectors.accounts.access import access_of
from scheduler.services.accounts.tokens import BadToken, token_user

Application = Callable[[Any, Any, Any], Awaitable[None]]

PROTOCOL: Final = "fumarole.v1"
TOKEN_PROTOCOL: Final = "fumarole.bearer."  # noqa: S105 - how it begins; the token follows
_TOKEN: Final = "token"  # noqa: S105 - where it stands in the scope


def tokens_or(pages: Application, programs: Application) -> Application:
    """Who shows a token goes to `programs`, everybody else to `pages`."""

    async def route(scope: Any, receive: Any, send: Any) -> None:
        secret = _secret_in(scope)
        if secret is None:
            await pages(scope, receive, send)
        else:
            await programs({**scope, _TOKEN: secret, "cookies": {}}, receive, send)

    return route


def shown_token(scope: Any) -> str | None:
    found: str | None = scope.get(_TOKEN)
    return found


def chosen_protocol(scope: Any) -> str | None:
    """A server answers with one that was offered, never with the token."""
    if PROTOCOL in scope.get("subprotocols", ()):
        return PROTOCOL
    return None


def _secret_in(scope: Any) -> str | None:
    """ "" where something is shown that is no token."""
    for name, value in scope.get("headers", ()):
        if name.lower() == b"authorization":
            scheme, _, secret = value.decode("latin-1").partition(" ")
            return secret.strip() if scheme.lower() == "bearer" else ""
    for offered in scope.get("subprotocols", ()):
        if offered.startswith(TOKEN_PROTOCOL):
            return str(offered.removeprefix(TOKEN_PROTOCOL))
    return None


async def visitor_with(secret: str) -> tuple[Visitor, int] | None:
    """Who has this token, and its number; None where it cannot be used."""
    found: tuple[Visitor, int] | None = await database_sync_to_async(_find)(secret)
    return found


def _find(secret: str) -> tuple[Visitor, int] | None:
    try:
        user, token = token_user(secret)
    except BadToken:
        return None
    access = access_of(user, token.scopes)
    if Permission.VIEW not in access.limit:
        return None
    return Visitor(user, access.visible), token.pk
