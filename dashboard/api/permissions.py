"""Who may even try an action: the gate before the service, which then asks again about the very queue."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.domain.access import Access, Forbidden, Permission, ScopeTooNarrow
from scheduler.domain.queues import ROOT

Rule = Callable[[Access], None]


def signed_in(access: Access) -> None:
    """Everybody with an account, as far as a token's scopes go: what he sees in the answer is another matter."""
    if Permission.VIEW not in access.limit:
        raise ScopeTooNarrow(Permission.VIEW, ROOT, "read anything")


def writes_for_himself(access: Access) -> None:
    """Everybody, for what is nobody else's; but not with a token that is for reading."""
    if Permission.SUBMIT not in access.limit:
        raise ScopeTooNarrow(Permission.SUBMIT, ROOT, "write anything")


def administers_himself(access: Access) -> None:
    """The same for one's own account: a token must be for everything."""
    if Permission.ADMINISTER not in access.limit:
        raise ScopeTooNarrow(Permission.ADMINISTER, ROOT, "change an account, even your own")


def somewhere(permission: Permission) -> Rule:
    """Whoever holds the permission on any queue; on which one it must be, the service knows."""

    def rule(access: Access) -> None:
        if access.may_anywhere(permission):
            return
        if access.is_held_back_everywhere(permission):
            raise ScopeTooNarrow(permission, ROOT, "do this")
        raise Forbidden(
            permission, ROOT, "do this; it need not be root, but you have it on no queue"
        )

    rule.__name__ = f"somewhere_{permission}"
    return rule


def cluster(permission: Permission) -> Rule:
    """The permission on root, which is the whole cluster."""

    def rule(access: Access) -> None:
        access.require_cluster(permission)

    rule.__name__ = f"cluster_{permission}"
    return rule


MEMBER = somewhere(Permission.VIEW)
SUBMIT = somewhere(Permission.SUBMIT)
OPERATE = somewhere(Permission.OPERATE)
ADMIN = somewhere(Permission.ADMINISTER)
CLUSTER_VIEW = cluster(Permission.VIEW)
CLUSTER_OPERATE = cluster(Permission.OPERATE)
CLUSTER_ADMIN = cluster(Permission.ADMINISTER)
