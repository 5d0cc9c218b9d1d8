"""Whom an admin of some queues may know of.

People who have roles on other tenants' queues alone are left out, and so are their groups.
Accounts without any role can be seen: somebody has to give them the first.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet

from scheduler.domain.access import Access
from scheduler.models import Grant
from scheduler.selectors.accounts.access import queue_parents


def people_in_sight(mine: Access) -> QuerySet[Any]:
    everybody = get_user_model().objects.all()
    if mine.visible is None:
        return everybody
    known = _grants_that_count(mine.visible)
    others = Grant.objects.exclude(pk__in=known.values("pk"))
    elsewhere = everybody.filter(_holds(others)).exclude(_holds(known))
    return everybody.exclude(pk__in=elsewhere.values("pk"), is_superuser=False)


def groups_in_sight(mine: Access) -> QuerySet[Group]:
    groups = Group.objects.all()
    if mine.visible is None:
        return groups
    known = _grants_that_count(mine.visible)
    elsewhere = groups.filter(grants__isnull=False).exclude(grants__in=known)
    return groups.exclude(pk__in=elsewhere.values("pk"))


def _holds(grants: QuerySet[Grant]) -> Q:
    """They, or a group of theirs, have one of these."""
    users = grants.filter(user__isnull=False).values("user")
    groups = grants.filter(group__isnull=False).values("group")
    return Q(pk__in=users) | Q(groups__in=groups)


def _grants_that_count(visible: frozenset[str]) -> QuerySet[Grant]:
    """Roles on these queues, or on queues above them."""
    parents = queue_parents()
    near = set()
    for name in visible:
        above = name
        while above and above not in near:
            near.add(above)
            above = parents.get(above, "")
    return Grant.objects.filter(queue__name__in=near)
