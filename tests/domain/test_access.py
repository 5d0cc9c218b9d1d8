from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.domain.access import (
    EVERYTHING,
    ROLE_PERMISSIONS,
    Access,
    Forbidden,
    OutOfSight,
    Permission,
    Role,
    require_queue_change,
    scope_permissions,
)
from scheduler.domain.queues import QueueSpec, QueueState

PARENTS = {"root": "", "a": "root", "b": "root", "a1": "a", "a11": "a1"}


def access(**grants: Role) -> Access:
    return Access({queue: ROLE_PERMISSIONS[role] for queue, role in grants.items()}, PARENTS)


def test_a_grant_counts_for_everything_below_and_nothing_beside():
    who = access(a=Role.VIEWER)

    assert who.visible == {"a", "a1", "a11"}
    assert not who.may(Permission.VIEW, "b")
    assert not who.may(Permission.VIEW, "nowhere")


def test_grants_add_up_on_the_way_down():
    who = access(a=Role.VIEWER, a1=Role.ADMIN)

    assert who.may(Permission.ADMINISTER, "a11")
    assert not who.may(Permission.SUBMIT, "a")


def test_a_grant_on_root_is_the_whole_cluster():
    who = access(root=Role.ADMIN)

    assert who.is_cluster_admin
    assert who.visible is None


def test_what_can_not_be_seen_is_not_forbidden_but_absent():
    who = access(a=Role.VIEWER)

    with pytest.raises(OutOfSight):
        who.require(Permission.VIEW, "b")
    with pytest.raises(Forbidden, match=r"operate.*a1"):
        who.require(Permission.OPERATE, "a1")


def test_a_ring_of_parents_ends():
    who = Access({}, {"x": "y", "y": "x"})

    assert not who.may(Permission.VIEW, "x")


@pytest.mark.parametrize(
    ("scopes", "permissions"),
    [
        (None, 4),
        ([], 0),
        (["read"], 1),
        (["submit"], 2),
        (["operate"], 3),
        (["admin"], 4),
        (["read", "nonsense"], 1),
    ],
)
def test_scopes_include_the_narrower_ones(scopes: list[str] | None, permissions: int):
    assert len(scope_permissions(scopes)) == permissions


def test_even_a_superusers_token_is_held_to_its_scopes():
    narrow = replace(EVERYTHING, limit=scope_permissions(["read"]))

    assert narrow.may(Permission.VIEW, "a")
    assert not narrow.may(Permission.OPERATE, "a")


@pytest.mark.parametrize(
    ("change", "needs"),
    [
        ({"weight": 2}, "a"),
        ({"priority": 2}, "a"),
        ({"reclaimable": False}, "a"),
        ({"parent": "b"}, "b"),
        ({"type": "x"}, "a1"),
        ({"labels": {"a": "b"}}, "a1"),
        ({"state": QueueState.CLOSED}, "a1"),
    ],
)
def test_who_may_change_what_of_a_queue(change: dict[str, object], needs: str):
    """Quotas and place: an admin of the parent, and of the new one.

    The rest: of the queue itself.
    """
    old = QueueSpec("a1", parent="a")
    new = replace(old, **change)  # type: ignore[arg-type]
    admins = {
        "a": access(a=Role.ADMIN),
        "a1": access(a1=Role.ADMIN),
        "b": access(a=Role.ADMIN, b=Role.ADMIN),
    }

    require_queue_change(admins[needs], old, new)
    if needs != "a1":
        with pytest.raises(Forbidden):
            require_queue_change(admins["a1"], old, new)
    if needs == "b":
        with pytest.raises(Forbidden, match="on the queue b"):
            require_queue_change(admins["a"], old, new)


def test_a_refused_field_is_named_as_manifests_have_it():
    old = QueueSpec("a1", parent="a")
    new = replace(old, parent="b", max_pods_per_job=5)

    with pytest.raises(Forbidden, match="to change the parent, maxPodsPerJob of a1"):
        require_queue_change(access(a1=Role.ADMIN), old, new)
