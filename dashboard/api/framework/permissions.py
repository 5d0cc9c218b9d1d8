"""Who may try an action. The service behind it asks again about the queue itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scheduler.domain.access import Access, Permission, ScopeTooNarrow
from scheduler.domain.queues import ROOT

Rule = Callable[[Access], None]
Rules = Mapping[str, Rule]
"""A rule for each action."""


def signed_in(access: Access) -> None:
    """Everybody with an account, with any token. What they see in the answer is another matter."""
    if Permission.VIEW not in access.limit:
        raise ScopeTooNarrow(Permission.VIEW, ROOT, "read anything")


def may_write_own(access: Access) -> None:
    """Everybody, for what is theirs alone; but not with a token that is only for reading."""
    if Permission.SUBMIT not in access.limit:
        raise ScopeTooNarrow(Permission.SUBMIT, ROOT, "write anything")


def may_change_own_account(access: Access) -> None:
    """Everybody, for their own account; but a token must be for everything."""
    if Permission.ADMINISTER not in access.limit:
        raise ScopeTooNarrow(Permission.ADMINISTER, ROOT, "change an account, even your own")


def on_any_queue(permission: Permission) -> Rule:
    """Whoever has the permission on some queue. The service knows which queue it must be."""

    def rule(access: Access) -> None:
        access.require_anywhere(permission)

    rule.__name__ = f"on_any_queue_{permission}"
    return rule


def on_root(permission: Permission) -> Rule:
    """Whoever has the permission on root, which is the whole cluster."""

    def rule(access: Access) -> None:
        access.require_cluster(permission)

    rule.__name__ = f"on_root_{permission}"
    return rule


MEMBER = on_any_queue(Permission.VIEW)
SUBMIT = on_any_queue(Permission.SUBMIT)
OPERATE = on_any_queue(Permission.OPERATE)
ADMIN = on_any_queue(Permission.ADMINISTER)
CLUSTER_VIEW = on_root(Permission.VIEW)
CLUSTER_OPERATE = on_root(Permission.OPERATE)
CLUSTER_ADMIN = on_root(Permission.ADMINISTER)
