"""May this caller do that?

Asked by every service before it writes; and the grants and tokens themselves.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from scheduler import notify
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import (
    Access,
    Forbidden,
    OutOfSight,
    Permission,
    Role,
    Scope,
    ScopeTooNarrow,
    SignInNeeded,
    SuperusersOnly,
    require_queue_change,
    scope_permissions,
)
from scheduler.domain.queues import ROOT
from scheduler.models import ApiToken, Grant, GroupMapping, Queue
from scheduler.selectors.accounts.access import access_of, token_with_user
from scheduler.selectors.accounts.people import groups_in_sight, people_in_sight
from scheduler.services.accounts.actors import Actor
from scheduler.services.records import audit

__all__ = [
    "Forbidden",
    "OutOfSight",
    "access_for",
    "create_token",
    "grant_role",
    "may",
    "require",
    "require_cluster",
    "require_queue_change",
    "revoke_grant",
    "revoke_token",
    "token_user",
]

TOKEN_START = "fum_"  # noqa: S105 - how every token begins, so that leaked ones are found by scanners
_USED_AGAIN_AFTER = timedelta(minutes=1)


def access_for(by: Actor) -> Access:
    if by.access is None:
        return access_of(by.user, by.scopes)
    return by.access


def may(user: Any, permission: Permission | str, queue: str) -> bool:
    """The one question of pages, API, websocket and command line."""
    return access_of(user).may(Permission(permission), queue)


def require(by: Actor, permission: Permission, queue: str, doing: str = "") -> None:
    """Raises where the permission is missing.

    `OutOfSight` if the queue may not even be seen, else `Forbidden`.

    Nothing is raised for who has the permission.
    """
    access_for(by).require(permission, queue, doing)


def require_cluster(
    by: Actor,
    permission: Permission = Permission.ADMINISTER,
    doing: str = "",
) -> None:
    access_for(by).require_cluster(permission, doing)


def require_to_create_queue(by: Actor, parent: str) -> None:
    """By an admin of the parent.

    A parent that the caller may not see is answered like one that is not there.
    """
    access = access_for(by)
    if parent != ROOT and not access.may(Permission.VIEW, parent):
        message = f"The parent {parent} does not exist."
        raise Rejected(
            [Violation("parent_not_found", "", "spec.parent", message, "name a queue that exists")]
        )
    if not access.may(Permission.ADMINISTER, parent):
        raise access.refusal(Permission.ADMINISTER, parent, "create a queue below it")


def require_to_touch_queue(by: Actor, queue: str, parent: str) -> None:
    """Whoever may change nothing at all of a queue is told so before anything else is looked at."""
    access = access_for(by)
    if not access.may(Permission.ADMINISTER, parent or ROOT):
        access.require(Permission.OPERATE, queue, "change it")


def require_to_delete_queue(by: Actor, queue: str, parent: str) -> None:
    access = access_for(by)
    access.require(Permission.VIEW, queue)
    if not access.may(Permission.ADMINISTER, parent or ROOT):
        raise access.refusal(
            Permission.ADMINISTER, parent or ROOT, f"delete {queue}, which is below it"
        )


def require_to_submit(by: Actor, queue: str) -> None:
    """A queue that the caller may not see is answered like one that is not there."""
    access = access_for(by)
    if not access.may(Permission.VIEW, queue):
        raise Rejected(
            [
                Violation(
                    "queue_not_found",
                    queue,
                    "spec.queue",
                    f"There is no queue {queue}.",
                    "name a queue that exists",
                )
            ]
        )
    access.require(Permission.SUBMIT, queue, "submit work to it")


def require_job_command(by: Actor, queue: str, owner: str) -> None:
    """One's own jobs, while one may submit to their queue.

    Anybody's as an operator of the queue.
    """
    access = access_for(by)
    if owner and owner == by.name and access.may(Permission.SUBMIT, queue):
        return
    access.require(Permission.OPERATE, queue, "command a job that is not your own")


def require_logs(by: Actor, queue: str, owner: str) -> None:
    """Logs may hold anything: those of one's own jobs, and all as an operator of the queue."""
    access = access_for(by)
    if owner and owner == by.name and access.may(Permission.SUBMIT, queue):
        return
    access.require(Permission.OPERATE, queue, "read the logs of a job that is not your own")


# Grants


def grant_role(
    *,
    user: str = "",
    group: str = "",
    role: str,
    queue: str = ROOT,
    by: Actor,
    dry_run: bool = False,
) -> Grant:
    """Give a user or a group a role on a queue and below.

    The same grant again is the one that is there.
    """
    place = grant_place(queue, by)
    who = _grantee_columns(user, group, access_for(by))
    require_role(role)
    columns = {**who, "role": role, "queue": place, "mapping": None}
    named = Named(user or group, describe_grant)
    return stored_once(Grant.objects.all(), columns, named, by=by, dry_run=dry_run)


Row = TypeVar("Row", Grant, GroupMapping)


@dataclass(frozen=True, slots=True)
class Named(Generic[Row]):
    """How the audit log speaks of a row."""

    name: str
    describe: Callable[[Row], dict[str, str]]


def stored_once(
    rows: QuerySet[Row], columns: dict[str, Any], named: Named[Row], *, by: Actor, dry_run: bool
) -> Row:
    """The row with these columns. It is made and noted unless it is there."""
    kind = rows.model.__name__
    with transaction.atomic():
        row, is_new = rows.get_or_create(**columns, defaults={"created_by": by.name[:150]})
        if is_new:
            described = named.describe(row)
            queue = described["queue"]
            audit.record(by, f"Create{kind}", kind, named.name, queue=queue, after=described)
        transaction.set_rollback(dry_run)
    return row


def require_role(role: str) -> None:
    if role not in tuple(Role):
        raise Rejected(
            [
                _violation_at(
                    "role", f"“{role[:40]}” is not a role.", f"write one of {', '.join(Role)}"
                )
            ]
        )


def grant_place(queue: str, by: Actor) -> Queue:
    """A queue that the caller may not see is answered like one that is not there."""
    try:
        require(by, Permission.ADMINISTER, queue, "grant roles on it")
        return Queue.objects.get(name=queue)
    except (OutOfSight, Queue.DoesNotExist):
        message = f"There is no queue {queue[:80]}."
        raise Rejected(
            [Violation("queue_not_found", queue, "spec.queue", message, "name a queue that exists")]
        ) from None


def _grantee_columns(user: str, group: str, mine: Access) -> dict[str, Any]:
    """Somebody with roles at other tenants alone is answered like one who is not there."""
    if bool(user) == bool(group):
        raise Rejected(
            [
                _violation_at(
                    "user",
                    "A grant is for a user or for a group, and for one of them only.",
                    "give either user or group",
                )
            ]
        )
    found: Any
    if user:
        kind = "user"
        found = people_in_sight(mine).filter(username=user).first()
    else:
        kind = "group"
        found = groups_in_sight(mine).filter(name=group).first()
    if found is None:
        message = f"There is no {kind} {(user or group)[:80]}"
        fix = f"create the {kind} first"
        if mine.is_cluster_admin:
            raise Rejected([_violation_at(kind, f"{message}.", fix)])
        fix = "ask an admin of the cluster, who may know more of them"
        raise Rejected([_violation_at(kind, f"{message} that you may see.", fix)])
    if user:
        return {"user": found, "group": None}
    return {"user": None, "group": found}


def _violation_at(field: str, message: str, fix: str) -> Violation:
    return Violation("invalid_value", "", f"spec.{field}", message, fix)


def describe_grant(grant: Grant) -> dict[str, str]:
    return {
        "user": grant.user.get_username() if grant.user else "",
        "group": grant.group.name if grant.group else "",
        "role": grant.role,
        "queue": grant.queue.name,
    }


def _refuse_to_revoke_mapped(grant: Grant) -> None:
    """The next sign-on would give it again."""
    if grant.mapping is None:
        return
    message = (
        f"This role comes from the group {grant.mapping.provider_group} of the sign-on provider, "
        "so it is not revoked by hand."
    )
    fix = "take them out of that group, or delete the mapping of the group"
    raise Rejected([Violation("mapped_grant", "", "mapping", message, fix)], by_state=True)


@transaction.atomic
def revoke_grant(grant: Grant, *, by: Actor, dry_run: bool = False) -> None:
    require(by, Permission.ADMINISTER, grant.queue.name, "revoke roles on it")
    _refuse_to_revoke_mapped(grant)
    described = describe_grant(grant)
    audit.record(
        by,
        "DeleteGrant",
        "Grant",
        described["user"] or described["group"],
        queue=grant.queue.name,
        before=described,
    )
    grant.delete()
    transaction.set_rollback(dry_run)


# Tokens


def require_to_write(by: Actor, doing: str) -> None:
    """Not with a token that is for reading alone."""
    if by.scopes is not None and Permission.SUBMIT not in scope_permissions(by.scopes):
        raise ScopeTooNarrow(Permission.SUBMIT, ROOT, doing)


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


def require_to_touch_account(by: Actor, user: Any, doing: str) -> None:
    """Raises `SuperusersOnly`: a superuser's account is not for admins who are none."""
    if by.user is not None and user.is_superuser and not by.user.is_superuser:
        raise SuperusersOnly(doing)


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
            _violation_at(
                "name",
                "A token needs a name of at most 100 printable characters.",
                "name the program that uses it",
            )
        )
    unknown = [scope for scope in scopes if scope not in tuple(Scope)]
    if unknown or not scopes:
        problems.append(
            _violation_at("scopes", f"The scopes must be some of {', '.join(Scope)}.", "write read")
        )
    if expires_at is not None and expires_at <= timezone.now():
        problems.append(
            _violation_at(
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
