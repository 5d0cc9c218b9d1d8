"""Who may do what on which queue: roles are granted on a queue and count for everything below it.

One answer for every door.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from scheduler.domain.queue_fields import METADATA_FIELDS, QUEUE_FIELDS, ChangedBy, field_names
from scheduler.domain.queues import ROOT, QueueSpec


class Role(StrEnum):
    VIEWER = "viewer"
    SUBMITTER = "submitter"
    ADMIN = "admin"


class Permission(StrEnum):
    VIEW = "view"
    SUBMIT = "submit"
    OPERATE = "operate"
    ADMINISTER = "admin"


class Scope(StrEnum):
    """What a token may be used for, at most; its owner's roles limit it further."""

    READ = "read"
    SUBMIT = "submit"
    OPERATE = "operate"
    ADMIN = "admin"


_IN_ORDER = tuple(Permission)
_UP_TO = {
    permission: frozenset(_IN_ORDER[: index + 1]) for index, permission in enumerate(_IN_ORDER)
}
ALL_PERMISSIONS = frozenset(Permission)

ROLE_PERMISSIONS: Mapping[Role, frozenset[Permission]] = {
    Role.VIEWER: _UP_TO[Permission.VIEW],
    Role.SUBMITTER: _UP_TO[Permission.SUBMIT],
    Role.ADMIN: ALL_PERMISSIONS,
}
SCOPE_PERMISSIONS: Mapping[Scope, frozenset[Permission]] = {
    Scope.READ: _UP_TO[Permission.VIEW],
    Scope.SUBMIT: _UP_TO[Permission.SUBMIT],
    Scope.OPERATE: _UP_TO[Permission.OPERATE],
    Scope.ADMIN: ALL_PERMISSIONS,
}

SCOPE_OF: Mapping[Permission, Scope] = {
    Permission.VIEW: Scope.READ,
    Permission.SUBMIT: Scope.SUBMIT,
    Permission.OPERATE: Scope.OPERATE,
    Permission.ADMINISTER: Scope.ADMIN,
}
"""The least scope that holds a permission."""

PARENTS_FIELDS = field_names(ChangedBy.PARENT_ADMIN)
OWN_FIELDS = (*METADATA_FIELDS, *field_names(ChangedBy.OWN_ADMIN))


class Forbidden(Exception):
    """The caller may see the queue but lacks a permission on it."""

    def __init__(
        self,
        permission: Permission,
        queue: str,
        doing: str = "",
        *,
        message: str = "",
    ) -> None:
        self.permission = permission
        self.queue = queue
        self.fix = f"ask for the permission “{permission}”"
        if doing:
            what = f" to {doing}"
        else:
            what = ""
        needed = (
            f"You need the permission “{permission}” on the queue {queue}{what}. Ask an admin of "
            f"{queue} or of a queue above it."
        )
        super().__init__(message or needed)


class ScopeTooNarrow(Forbidden):
    """The caller's roles would do; the token that they use is for less."""

    def __init__(self, permission: Permission, queue: str, doing: str = "") -> None:
        if doing:
            what = f" to {doing}"
        else:
            what = ""
        self.scope = SCOPE_OF[permission]
        message = (
            f"The token in use does not have the scope “{self.scope}”, which is needed{what}. "
            "Your account may do this: use a token with that scope, or sign in."
        )
        super().__init__(permission, queue, message=message)
        self.fix = f"use a token with the scope “{self.scope}”, or sign in"


class SignInNeeded(Forbidden):
    """What no token is enough for, whatever its scopes."""

    def __init__(self, message: str) -> None:
        super().__init__(
            Permission.ADMINISTER, ROOT, message=f"{message} Sign in with your password to do this."
        )
        self.fix = "sign in with your password"


class SuperusersOnly(Forbidden):
    """Only superusers change superusers.

    Whoever could set the password of one could sign in as one.
    """

    def __init__(self, doing: str) -> None:
        super().__init__(
            Permission.ADMINISTER,
            ROOT,
            message=f"Only a superuser may {doing}. The role admin on root is not enough.",
        )
        self.fix = "ask a superuser"


class OutOfSight(Exception):
    """The caller may not even know that the queue exists.

    To be answered exactly as if it did not.
    """

    def __init__(self, queue: str) -> None:
        self.queue = queue
        super().__init__(f"There is no queue {queue}.")


def place_of_deleted(name: str, number: int) -> str:
    """The key of a deleted queue in `Access`.

    No queue can have such a name, so it is never mistaken for one that exists.
    """
    return f"{name} (deleted #{number})"


def scope_permissions(scopes: Collection[str] | None) -> frozenset[Permission]:
    """What a token with these scopes may be used for at most.

    None is a person, whom nothing limits but the roles.
    """
    if scopes is None:
        return ALL_PERMISSIONS
    known = []
    for scope in scopes:
        if scope in SCOPE_PERMISSIONS:
            known.append(SCOPE_PERMISSIONS[Scope(scope)])
    return frozenset[Permission]().union(*known)


@dataclass(frozen=True)
class Access:
    """Everything one caller may do.

    `granted` holds the permissions granted on a queue itself, `parents` the tree by names.

    A deleted queue has its place in the tree too (`place_of_deleted`). `numbers` are the keys of
    the queues' rows, by place.

    A superuser, and the system itself, has `everything`: then neither grants nor the tree are
    looked at, only the token's scopes.
    """

    granted: Mapping[str, frozenset[Permission]] = field(default_factory=dict)
    parents: Mapping[str, str] = field(default_factory=dict)
    limit: frozenset[Permission] = ALL_PERMISSIONS
    everything: bool = False
    numbers: Mapping[str, int] = field(default_factory=dict)

    def may(self, permission: Permission, queue: str) -> bool:
        if permission not in self.limit:
            return False
        return self.everything or permission in self._permissions_on(queue)

    def _permissions_on(self, queue: str) -> frozenset[Permission]:
        found: frozenset[Permission] = frozenset()
        for name in self._way_up(queue):
            found |= self.granted.get(name, frozenset())
        return found

    def _way_up(self, queue: str) -> Iterable[str]:
        seen: set[str] = set()
        while queue and queue not in seen and (queue in self.parents or queue == ROOT):
            seen.add(queue)
            yield queue
            queue = self.parents.get(queue, "")

    def is_held_back_by_scope(self, permission: Permission, queue: str) -> bool:
        """Whether only the token in use stands in the way: the roles of its owner would do."""
        return permission not in self.limit and (
            self.everything or permission in self._permissions_on(queue)
        )

    def is_held_back_everywhere(self, permission: Permission) -> bool:
        """The same, where it would be enough to hold the permission on any queue."""
        held = self.everything or any(permission in granted for granted in self.granted.values())
        return permission not in self.limit and held

    def refusal(self, permission: Permission, queue: str, doing: str = "") -> Forbidden:
        """What to raise where the permission is missing.

        It says whether a role is missing, or the scope of the token.
        """
        if self.is_held_back_by_scope(permission, queue):
            return ScopeTooNarrow(permission, queue, doing)
        return Forbidden(permission, queue, doing)

    def may_anywhere(self, permission: Permission) -> bool:
        """On at least one queue: enough to read what belongs to the cluster and to no queue."""
        if permission not in self.limit:
            return False
        return self.everything or any(permission in granted for granted in self.granted.values())

    @property
    def is_cluster_admin(self) -> bool:
        return self.may(Permission.ADMINISTER, ROOT)

    @property
    def sees_everything(self) -> bool:
        return self.may(Permission.VIEW, ROOT)

    @cached_property
    def visible(self) -> frozenset[str] | None:
        """The names of all queues that may be seen; None for all there are."""
        if self.sees_everything:
            return None
        return self.where(Permission.VIEW)

    @cached_property
    def above(self) -> frozenset[str]:
        """The queues above those that may be seen: they say why a queue below is closed."""
        found: set[str] = set()
        for name in self.visible or ():
            found.update(self._way_up(self.parents.get(name, "")))
        return frozenset(found)

    @cached_property
    def readable(self) -> frozenset[int] | None:
        """The rows of the queues whose jobs, gangs and pods may be seen; None for all.

        Deleted queues are among them.
        """
        seen = self.visible
        if seen is None:
            return None
        found: set[int] = set()
        for place, number in self.numbers.items():
            if place in seen:
                found.add(number)
        return frozenset(found)

    def where(self, permission: Permission) -> frozenset[str]:
        """The names of the queues on which it is held.

        Not for callers with `everything`, who have no list.
        """
        found: set[str] = set()
        for name in self.parents:
            if self.may(permission, name):
                found.add(name)
        return frozenset(found)

    def require(self, permission: Permission, queue: str, doing: str = "") -> None:
        """Raises `OutOfSight` or `Forbidden`."""
        if self.may(permission, queue):
            return
        if not self.may(Permission.VIEW, queue):
            raise OutOfSight(queue)
        raise self.refusal(permission, queue, doing)

    def require_anywhere(self, permission: Permission, doing: str = "do this") -> None:
        """For what whoever has the permission on any queue may do. Raises `Forbidden`."""
        if self.may_anywhere(permission):
            return
        if self.is_held_back_everywhere(permission):
            raise ScopeTooNarrow(permission, ROOT, doing)
        message = (
            f"You need the permission “{permission}” on some queue to {doing}, and have it on "
            "none. Ask an admin of a queue."
        )
        raise Forbidden(permission, ROOT, message=message)

    def require_cluster(self, permission: Permission, doing: str = "") -> None:
        """For what belongs to the cluster as a whole: the permission on root."""
        if not self.may(permission, ROOT):
            raise self.refusal(permission, ROOT, doing)


EVERYTHING = Access(everything=True)


def require_queue_change(access: Access, old: QueueSpec, new: QueueSpec) -> None:
    """Quotas and place by an admin of the parent, of both parents where it moves.

    The rest by one of the queue; its state by operators.
    """
    if old.name != ROOT:
        above = old.parent or ROOT
    else:
        above = ROOT
    reserved = []
    for name in PARENTS_FIELDS:
        if getattr(old, name) != getattr(new, name):
            reserved.append(name)
    if reserved:
        _require_parent(access, above, old.name, reserved)
        if new.parent != old.parent:
            _require_parent(access, new.parent or ROOT, old.name, ["parent"])
    own = []
    for name in OWN_FIELDS:
        if getattr(old, name) != getattr(new, name):
            own.append(name)
    if own and not access.may(Permission.ADMINISTER, above):
        access.require(Permission.ADMINISTER, old.name, f"change its {own[0].replace('_', ' ')}")
    if old.state is not new.state:
        access.require(Permission.OPERATE, old.name, "change its state")


def _require_parent(access: Access, parent: str, queue: str, fields: list[str]) -> None:
    if not access.may(Permission.ADMINISTER, parent):
        keys = [field.key for field in QUEUE_FIELDS if field.name in fields]
        raise access.refusal(
            Permission.ADMINISTER,
            parent,
            f"change the {', '.join(keys)} of {queue}, which is below it",
        )
