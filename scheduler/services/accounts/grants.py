"""Roles on queues: given to people and groups, and taken away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import transaction
from django.db.models import QuerySet

from scheduler.admission.rules.known_queues import unknown_queue
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import (
    Access,
    OutOfSight,
    Permission,
    Role,
)
from scheduler.domain.queues import ROOT
from scheduler.models import Grant, GroupMapping, Queue
from scheduler.selectors.accounts.people import groups_in_sight, people_in_sight
from scheduler.services.accounts.access import (
    access_for,
    invalid_value,
    require,
)
from scheduler.services.accounts.actors import Actor
from scheduler.services.records import audit


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
                invalid_value(
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
        raise Rejected([unknown_queue(queue)]) from None


def _grantee_columns(user: str, group: str, mine: Access) -> dict[str, Any]:
    """Somebody with roles at other tenants alone is answered like one who is not there."""
    if bool(user) == bool(group):
        raise Rejected(
            [
                invalid_value(
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
            raise Rejected([invalid_value(kind, f"{message}.", fix)])
        fix = "ask an admin of the cluster, who may know more of them"
        raise Rejected([invalid_value(kind, f"{message} that you may see.", fix)])
    if user:
        return {"user": found, "group": None}
    return {"user": None, "group": found}


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
