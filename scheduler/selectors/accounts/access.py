"""What somebody may do, read from the grants: two queries, none for a superuser."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth import get_user_model
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import F, Q, QuerySet, TextField
from django.db.models.expressions import RawSQL

from scheduler.domain.access import (
    EVERYTHING,
    ROLE_PERMISSIONS,
    Access,
    Permission,
    Role,
    place_of_deleted,
    scope_permissions,
)
from scheduler.models import ApiToken, Grant, Queue
from scheduler.models.prepared import Prepared, slot


def access_of(user: Any, scopes: Collection[str] | None = None) -> Access:
    """None as the user is the system itself. An account that is switched off may do nothing."""
    if user is None:
        return EVERYTHING
    if not user.is_active or not user.is_authenticated:
        return Access(limit=frozenset())
    limit = scope_permissions(scopes)
    if user.is_superuser:
        return Access(everything=True, limit=limit)
    granted = _granted_permissions(user)
    if granted:
        places = places_of_queues()
    else:
        places = NO_PLACES
    return Access(granted, places.parents, limit, numbers=places.numbers)


def _token_columns() -> tuple[list[str], list[str]]:
    user = get_user_model()
    return [field.attname for field in ApiToken._meta.concrete_fields], [
        field.attname for field in user._meta.concrete_fields
    ]


# Which transactions have ended, in this run of the server: another one may be another database.
_STATES = {
    "postgresql": "pg_current_snapshot()::text || ' ' || pg_postmaster_start_time()::text",
    "sqlite": "''",  # what it has to say is about one connection
}


def _tokens_by_digest() -> QuerySet[Any, Any]:
    token, user = _token_columns()
    state = RawSQL(_STATES[connection.vendor], (), output_field=TextField())  # noqa: S611 - fixed
    return (
        ApiToken.objects.filter(digest=slot("digest"))
        .order_by()
        .annotate(state=state)
        .values_list("state", *token, *(f"user__{name}" for name in user))
    )


_BY_DIGEST = Prepared(_tokens_by_digest, keep_plan=True)


def token_with_user(digest: str) -> ApiToken | None:
    """Asked with every request of a program, so it is prepared."""
    row = _BY_DIGEST.row(digest=digest)
    if row is None:
        return None
    state, *columns = row
    token_columns, user_columns = _token_columns()
    token = ApiToken.from_db(DEFAULT_DB_ALIAS, token_columns, columns[: len(token_columns)])
    token.user = get_user_model().from_db(
        DEFAULT_DB_ALIAS, user_columns, columns[len(token_columns) :]
    )
    if not connection.in_atomic_block:  # a transaction sees its own rows too
        token.database_state = state
    return token


def sights_of(users: Iterable[Any]) -> dict[Any, frozenset[str] | None]:
    """By key: the names of the queues that each of them may see, None for all.

    As `access_of`, in three queries for all together.
    """
    asked = {user.pk: user for user in users if user.is_active}
    held = _roles_of([pk for pk, user in asked.items() if not user.is_superuser])
    if held:
        parents = places_of_queues().parents
    else:
        parents = {}
    seen = {}
    for roles in {*held.values(), frozenset[tuple[str, str]]()}:
        seen[roles] = Access(_permissions_by_queue(roles), parents).visible
    sights: dict[Any, frozenset[str] | None] = {}
    for pk, user in asked.items():
        sights[pk] = None
        if not user.is_superuser:
            sights[pk] = seen[held.get(pk, frozenset())]
    return sights


def _roles_of(users: Sequence[Any]) -> dict[Any, frozenset[tuple[str, str]]]:
    """By user: the queues and roles that they have, directly or through a group."""
    grants = Grant.objects.order_by()
    own = grants.filter(user__in=users).values_list("user", "queue__name", "role")
    through_groups = grants.filter(group__user__in=users).values_list(
        "group__user", "queue__name", "role"
    )
    found: dict[Any, set[tuple[str, str]]] = {}
    for pk, queue, role in (*own, *through_groups):
        found.setdefault(pk, set()).add((queue, role))
    return {pk: frozenset(roles) for pk, roles in found.items()}


def _granted_permissions(user: Any) -> dict[str, frozenset[Permission]]:
    return _permissions_by_queue(_GRANTED.rows(user=user.pk))


def _permissions_by_queue(roles: Iterable[tuple[str, str]]) -> dict[str, frozenset[Permission]]:
    """By queue, from the roles that are held there."""
    granted: dict[str, frozenset[Permission]] = {}
    for queue, role in roles:
        granted[queue] = granted.get(queue, frozenset()) | ROLE_PERMISSIONS[Role(role)]
    return granted


def _grants_of_user() -> QuerySet[Any, Any]:
    own = Q(user=slot("user")) | Q(group__user=slot("user"))
    return Grant.objects.filter(own).order_by().values_list("queue__name", "role").distinct()


_GRANTED = Prepared(_grants_of_user, keep_plan=True)
_TREE = Prepared(lambda: Queue.objects.order_by().values_list("id", "name", "parent_id"))
_TREE_WITH_DELETED = Prepared(
    lambda: Queue.with_deleted.order_by(F("deleted_at").asc(nulls_last=True)).values_list(
        "id", "name", "parent_id", "deleted_at"
    )
)


@dataclass(frozen=True, slots=True)
class Places:
    """The tree with its deleted queues, as `Access` takes it."""

    parents: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)


NO_PLACES = Places()


def queue_parents() -> dict[str, str]:
    """The parent's name of every queue, "" for root."""
    rows = _TREE.rows()
    names = {row[0]: row[1] for row in rows}
    return {name: names.get(parent, "") for _, name, parent in rows}


def places_of_queues() -> Places:
    """All queues and where they are in the tree; deleted ones where they were last.

    Whoever has a role above a deleted queue may read its records.

    The ways up go from row to row: a new queue with the name of a deleted one leads nobody to what
    was below that one. A bare name is the queue that exists, and where none does, the one deleted
    last.
    """
    rows = _TREE_WITH_DELETED.rows()
    places = {}
    for pk, name, _, deleted_at in rows:
        places[pk] = name
        if deleted_at is not None:
            places[pk] = place_of_deleted(name, pk)
    parents: dict[str, str] = {}
    for pk, name, parent, _ in rows:
        parents[places[pk]] = parents[name] = places.get(parent, "")
    return Places(parents, {place: pk for pk, place in places.items()})


def effective_grants(queue: str) -> list[tuple[Grant, bool]]:
    """All grants that count on a queue, and whether each is inherited from above."""
    way = _way_up(queue, queue_parents())
    grants = Grant.objects.filter(queue__name__in=way).select_related(
        "user", "group", "queue", "mapping"
    )
    return [(grant, grant.queue.name != queue) for grant in grants]


def _way_up(queue: str, parents: Mapping[str, str]) -> list[str]:
    """The queue and all above it, the nearest first."""
    way: list[str] = []
    current = queue
    while current and current not in way:
        way.append(current)
        current = parents.get(current, "")
    return way


def owner_of(queue: str) -> str:
    """The owner of the queue, or of the nearest queue above that names one; else ""."""
    return owners_of([queue])[queue]


def owners_of(queues: Iterable[str]) -> dict[str, str]:
    """As `owner_of`, of many queues."""
    parents = queue_parents()
    ways = {queue: _way_up(queue, parents) for queue in queues}
    named = {name for way in ways.values() for name in way}
    owned = Queue.objects.filter(name__in=named).exclude(owner="")
    owners = dict(owned.values_list("name", "owner"))
    found = {}
    for queue, way in ways.items():
        found[queue] = next((owners[name] for name in way if name in owners), "")
    return found


def grants_of(user: Any) -> list[Grant]:
    """What was granted to a user, directly or through a group, by queue."""
    found = Grant.objects.filter(Q(user=user.pk) | Q(group__user=user.pk)).select_related(
        "queue", "group", "user", "mapping"
    )
    return list(found.order_by("queue__name", "role").distinct())


def whom_to_ask(queue: str, most: int = 6) -> list[str]:
    """Its owner, then who can grant a role on it.

    Its own admins come first, then those above it, at last the cluster's.
    """
    grants = []
    for grant, inherited in effective_grants(queue):
        if grant.role == Role.ADMIN.value:
            grants.append((grant, inherited))
    near_first = [grant for grant, _ in sorted(grants, key=lambda pair: pair[1])]
    names = []
    for grant in near_first:
        if grant.user:
            names.append(grant.user.get_username())
        else:
            names.append(f"the group {grant.group}")
    superusers = (
        get_user_model()
        .objects.filter(is_superuser=True, is_active=True)
        .order_by("username")
        .values_list("username", flat=True)[:most]
    )
    admins = list(dict.fromkeys([*names, *superusers]))
    owner = owner_of(queue)
    if not owner:
        return admins[:most]
    others = [name for name in admins if name != owner]
    return [f"{owner} (owner)", *others][:most]
