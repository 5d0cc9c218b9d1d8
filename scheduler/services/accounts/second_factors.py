"""Second factors that are taken away: by their owner, or by an admin for who lost theirs."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from scheduler.models import SecondFactor
from scheduler.services.accounts.access import require_cluster, require_to_touch_account
from scheduler.services.accounts.actors import Actor
from scheduler.services.records import audit


@transaction.atomic
def remove_second_factor(user: Any, *, by: Actor, dry_run: bool = False) -> bool:
    """The password alone is asked for from now on. False if there was none.

    Of somebody else it takes a cluster admin. Callers ask the owner for a code first.
    """
    if by.user is not None and by.user.pk != user.pk:
        require_cluster(by, doing="remove the second factor of others")
        require_to_touch_account(by, user, "remove the second factor of a superuser")
    factor = SecondFactor.objects.filter(user=user).first()
    if factor is None:
        return False
    factor.delete()
    audit.record(by, "RemoveSecondFactor", "User", user.get_username())
    transaction.set_rollback(dry_run)
    return True
