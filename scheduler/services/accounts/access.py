"""May this caller do that?

Asked by every service before it writes.
"""

from __future__ import annotations

from typing import Any

from scheduler.admission.rules.known_queues import unknown_queue
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import (
    Access,
    Forbidden,
    OutOfSight,
    Permission,
    ScopeTooNarrow,
    SuperusersOnly,
    require_queue_change,
    scope_permissions,
)
from scheduler.domain.queues import ROOT
from scheduler.selectors.accounts.access import access_of
from scheduler.services.accounts.actors import Actor

__all__ = [
    "Forbidden",
    "OutOfSight",
    "access_for",
    "invalid_value",
    "may",
    "require",
    "require_cluster",
    "require_job_command",
    "require_logs",
    "require_queue_change",
    "require_to_create_queue",
    "require_to_delete_queue",
    "require_to_submit",
    "require_to_touch_account",
    "require_to_touch_queue",
    "require_to_write",
]


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
        raise Rejected([unknown_queue(queue)])
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


def require_to_write(by: Actor, doing: str) -> None:
    """Not with a token that is for reading alone."""
    if by.scopes is not None and Permission.SUBMIT not in scope_permissions(by.scopes):
        raise ScopeTooNarrow(Permission.SUBMIT, ROOT, doing)


def require_to_touch_account(by: Actor, user: Any, doing: str) -> None:
    """Raises `SuperusersOnly`: a superuser's account is not for admins who are none."""
    if by.user is not None and user.is_superuser and not by.user.is_superuser:
        raise SuperusersOnly(doing)


def invalid_value(field: str, message: str, fix: str) -> Violation:
    return Violation("invalid_value", "", f"spec.{field}", message, fix)
