"""Who follows something for a long time, and what they may see now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.utils import timezone

from dashboard.live.identity import signed_in
from scheduler.domain.access import Access
from scheduler.models import ApiToken
from scheduler.selectors.accounts.access import access_of


class Reader(NamedTuple):
    """`token` is the number of the token, `session` the key of a browser's session."""

    user: Any
    token: int | None = None
    session: str = ""


def access_now(readers: Iterable[Reader]) -> dict[Reader, Access]:
    """What each of them may do. Left out is who was signed out, deactivated, or whose token ended.

    A few queries for all, and those of rights once for each reader.
    """
    asked = set(readers)
    users = get_user_model().objects.filter(is_active=True).in_bulk({who.user for who in asked})
    valid = ApiToken.objects.filter(revoked_at=None).exclude(expires_at__lte=timezone.now())
    tokens = valid.in_bulk({who.token for who in asked if who.token is not None})
    sessions = signed_in({who.session for who in asked if who.session})
    found: dict[Reader, Access] = {}
    for who in asked:
        user = users.get(who.user)
        if user is None:
            continue
        if who.token is not None:
            if who.token in tokens:
                found[who] = access_of(user, tokens[who.token].scopes)
        elif who.session in sessions:
            found[who] = access_of(user)
    return found
