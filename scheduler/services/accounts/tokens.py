"""Keys for programs: made, revoked, and whose one is."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from scheduler import notify
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import (
    Permission,
    Scope,
    ScopeTooNarrow,
    SignInNeeded,
    scope_permissions,
)
from scheduler.domain.queues import ROOT
from scheduler.models import ApiToken
from scheduler.selectors.accounts.access import token_with_user
from scheduler.services.accounts.access import (
    invalid_value,
    require_cluster,
    require_to_touch_account,
    require_to_write,
)
from scheduler.services.accounts.actors import Actor
from scheduler.services.records import audit

TOKEN_START = "fum_"  # noqa: S105 - how every token begins, so that leaked ones are found by scanners
_USED_AGAIN_AFTER = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class NewToken:
    """`secret` is shown this one time; only its digest is kept."""

    token: ApiToken
    secret: str


def create_token(
    user: Any,
    name: str,
    scopes: Iterable[str],
    *,
    by: Actor,
    expires_at: datetime | None = None,
    dry_run: bool = False,
) -> NewToken:
    """A key for a program, for oneself; a cluster admin may make one for somebody else.

    One that is made with a token may do no more than that token, and lives no longer.
    """
    _require_own(by, user)
    chosen = sorted(set(scopes))
    require_to_write(by, "make a token")
    _check_token(name, chosen, expires_at)
    require_within_token(by, chosen, expires_at, "make a token")
    secret = TOKEN_START + secrets.token_urlsafe(32)
    try:
        with transaction.atomic():
            token = ApiToken.objects.create(
                user=user,
                name=name,
                prefix=secret[:12],
                digest=digest_of(secret),
                scopes=chosen,
                expires_at=expires_at,
            )
            audit.record(
                by,
                "CreateToken",
                "Token",
                name,
                after={"user": user.get_username(), "scopes": chosen, "prefix": token.prefix},
            )
            transaction.set_rollback(dry_run)
    except IntegrityError:
        violation = Violation(
            "already_exists",
            "",
            "spec.name",
            f"You have a token {name} already.",
            "choose another name, or revoke it",
        )
        raise Rejected([violation], by_state=True) from None
    return NewToken(token, secret)


def _require_own(by: Actor, user: Any) -> None:
    if by.user is not None and by.user.pk != user.pk:
        require_cluster(by, doing="manage the tokens of others")
        require_to_touch_account(by, user, "manage the tokens of a superuser")


def require_within_token(
    by: Actor,
    scopes: Collection[str],
    expires_at: datetime | None,
    doing: str,
) -> None:
    """Whoever acts with a token reaches no token that may do more than it, or lives longer."""
    if by.scopes is None:
        return
    missing = sorted(
        scope_permissions(scopes) - scope_permissions(by.scopes), key=tuple(Permission).index
    )
    if missing:
        raise ScopeTooNarrow(missing[-1], ROOT, f"{doing} that may do as much")
    end = by.token_ends_at
    if end is not None and (expires_at is None or expires_at > end):
        raise SignInNeeded(
            f"The token in use ends at {end:%Y-%m-%d %H:%M} UTC, so it cannot {doing} that lives "
            "longer."
        )


def _check_token(name: str, scopes: Collection[str], expires_at: datetime | None) -> None:
    problems = []
    if not name or len(name) > 100 or not name.isprintable():
        problems.append(
            invalid_value(
                "name",
                "A token needs a name of at most 100 printable characters.",
                "name the program that uses it",
            )
        )
    unknown = [scope for scope in scopes if scope not in tuple(Scope)]
    if unknown or not scopes:
        problems.append(
            invalid_value("scopes", f"The scopes must be some of {', '.join(Scope)}.", "write read")
        )
    if expires_at is not None and expires_at <= timezone.now():
        problems.append(
            invalid_value(
                "expiresAt", "The token would have expired already.", "give a moment in the future"
            )
        )
    if problems:
        raise Rejected(problems)


def digest_of(secret: str) -> str:
    """A plain digest will do: the secret is 256 random bits, so there is nothing to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()


@transaction.atomic
def revoke_token(token: ApiToken, *, by: Actor, dry_run: bool = False) -> None:
    """Revoke a token.

    A token may always revoke itself. Others it may revoke only if they may do no more and live no
    longer.
    """
    _require_own(by, token.user)
    if by.token is None or by.token.pk != token.pk:
        require_to_write(by, "revoke a token")
        require_within_token(by, token.scopes, token.expires_at, "revoke a token")
    if token.revoked_at is None:
        ApiToken.objects.filter(pk=token.pk).update(revoked_at=timezone.now())
        notify.access_changed()
        audit.record(
            by,
            "RevokeToken",
            "Token",
            token.name,
            before={"user": token.user.get_username(), "prefix": token.prefix},
        )
    transaction.set_rollback(dry_run)


class BadToken(Exception):
    """The token cannot be used; the message says why, as far as its holder may know."""


def token_user(secret: str) -> tuple[Any, ApiToken]:
    """Whose token it is. Raises `BadToken`. Its last use is noted, to the minute."""
    token = token_with_user(digest_of(secret))
    now = timezone.now()
    if token is None:
        raise BadToken("The token is not known. Was it copied whole?")
    if token.revoked_at is not None:
        raise BadToken(f"The token {token.name} was revoked. Make a new one.")
    if token.expires_at is not None and token.expires_at <= now:
        raise BadToken(
            f"The token {token.name} expired at {token.expires_at:%Y-%m-%d %H:%M} UTC. Make a new "
            "one."
        )
    if not token.user.is_active:
        raise BadToken("The account of this token is switched off.")
    if token.last_used_at is None or now - token.last_used_at > _USED_AGAIN_AFTER:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token.user, token
