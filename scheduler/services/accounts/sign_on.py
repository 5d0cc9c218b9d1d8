"""Single sign-on: groups of the provider mapped to roles on queues, and identities to accounts.

A sign-on gives what the mappings of the user's groups say, and takes back what an earlier one gave
and they no longer say. Roles that were granted by hand are never touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.utils import timezone

from scheduler.admission.violations import Rejected, Violation
from scheduler.conf import conf
from scheduler.domain.access import Permission
from scheduler.domain.queues import ROOT
from scheduler.models import Grant, GroupMapping, Identity, Job
from scheduler.services.accounts.access import require
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.accounts.grants import Named, grant_place, require_role, stored_once
from scheduler.services.accounts.users import is_usable_name
from scheduler.services.records import audit

LONGEST_GROUP: Final = 255
MOST_GROUPS: Final = 1000
BY_SIGN_ON: Final = "sign-on"


class NotLinked(Exception):
    """This identity does not come in. The message says why, for its owner."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who the provider says they are. Its names are only wishes: `subject` is the identity."""

    issuer: str
    subject: str
    username: str
    email: str
    groups: tuple[str, ...]
    is_groups_claim_there: bool = True


# Mappings


def map_group(
    provider_group: str, *, role: str, queue: str = ROOT, by: Actor, dry_run: bool = False
) -> GroupMapping:
    """Whoever signs on with this group has this role. The same mapping again is the same.

    Raises `Rejected` and `Forbidden`: it takes the right to grant roles on the queue.
    """
    place = grant_place(queue, by)
    require_role(role)
    _require_group_name(provider_group)
    columns = {"provider_group": provider_group, "role": role, "queue": place}
    named = Named(provider_group, describe_mapping)
    return stored_once(GroupMapping.objects.all(), columns, named, by=by, dry_run=dry_run)


def _require_group_name(name: str) -> None:
    if name and len(name) <= LONGEST_GROUP and name.isprintable():
        return
    message = f"A group of the provider has a name of 1 to {LONGEST_GROUP} printable characters."
    fix = "write it as the provider sends it"
    raise Rejected([Violation("invalid_value", "", "spec.providerGroup", message, fix)])


def describe_mapping(mapping: GroupMapping) -> dict[str, str]:
    return {
        "providerGroup": mapping.provider_group,
        "role": mapping.role,
        "queue": mapping.queue.name,
    }


@transaction.atomic
def unmap_group(mapping: GroupMapping, *, by: Actor, dry_run: bool = False) -> int:
    """The roles that it gave end now. How many there were."""
    require(by, Permission.ADMINISTER, mapping.queue.name, "change who has roles on it")
    audit.record(
        by,
        "DeleteGroupMapping",
        "GroupMapping",
        mapping.provider_group,
        queue=mapping.queue.name,
        before=describe_mapping(mapping),
    )
    grants = list(mapping.grants.all())
    for grant in grants:
        grant.delete()
    mapping.delete()
    transaction.set_rollback(dry_run)
    return len(grants)


# A sign-on


@transaction.atomic
def admit(visitor: Visitor, *, by: Actor = SYSTEM) -> Any:
    """The account of this identity, with the roles of its groups as they are now.

    Without an account one is made, where the settings say so. Raises `NotLinked`.
    """
    identity = (
        Identity.objects.select_for_update(of=("self",))
        .select_related("user")
        .filter(issuer=visitor.issuer, subject=visitor.subject)
        .first()
    )
    if identity is None:
        identity = _new_identity(visitor, _new_account(visitor, by), by)
    return _apply_groups(identity, visitor, by)


def _apply_groups(identity: Identity, visitor: Visitor, by: Actor) -> Any:
    user = identity.user
    identity.groups = list(visitor.groups)
    identity.signed_on_at = timezone.now()
    identity.save(update_fields=["groups", "signed_on_at"])
    _follow_mappings(user, GroupMapping.objects.filter(provider_group__in=visitor.groups), by)
    return user


def _follow_mappings(user: Any, mappings: Iterable[GroupMapping], by: Actor) -> None:
    wanted = {mapping.pk: mapping for mapping in mappings}
    held = {}
    for grant in Grant.objects.filter(user=user, mapping__isnull=False).select_related("queue"):
        held[grant.mapping_id] = grant
    given = [mapping for key, mapping in wanted.items() if key not in held]
    ended = [grant for key, grant in held.items() if key not in wanted]
    for mapping in given:
        Grant.objects.create(
            user=user,
            role=mapping.role,
            queue_id=mapping.queue_id,
            mapping=mapping,
            created_by=BY_SIGN_ON,
        )
    for grant in ended:
        grant.delete()
    if given or ended:
        before = [f"{grant.role} on {grant.queue.name}" for grant in ended]
        after = [f"{mapping.role} on {mapping.queue.name}" for mapping in given]
        audit.record(
            by,
            "ApplyGroups",
            "User",
            user.get_username(),
            before={"ended": sorted(before)},
            after={"given": sorted(after)},
        )


def _new_account(visitor: Visitor, by: Actor) -> Any:
    """Never one that is there already: an equal name or address proves nothing."""
    if conf().sign_on.create_users == "never":
        raise NotLinked(
            "No account here is linked to you, and none is made by signing on. Sign in with your "
            "password and link it on your account page, or ask an admin for an account."
        )
    is_mapped = GroupMapping.objects.filter(provider_group__in=visitor.groups).exists()
    if conf().sign_on.create_users == "mapped" and not is_mapped:
        raise NotLinked(no_mapped_group(visitor))
    name = visitor.username
    if not is_usable_name(name) or name == SYSTEM.name:
        raise NotLinked(
            f"The provider calls you “{name[:60]}”, which cannot be the name of an account here. "
            "A name has letters, digits and @ . + - _ only, 150 at most. Ask an admin to set "
            "SSO_USERNAME_CLAIM to a claim that fits."
        )
    users = get_user_model().objects
    if users.filter(username__iexact=name).exists() or Job.objects.filter(owner=name).exists():
        raise NotLinked(
            f"There is an account {name} already, or work of one, and nothing shows that it is "
            "yours. If it is, sign in with its password and link it on your account page. If not, "
            "ask an admin."
        )
    user = users.create_user(username=name, email=visitor.email[:254])
    audit.record(by, "CreateUser", "User", name, after={"username": name, "by": BY_SIGN_ON})
    return user


def no_mapped_group(visitor: Visitor) -> str:
    if not visitor.is_groups_claim_there:
        return (
            f"The provider sent no claim “{conf().sign_on.groups_claim}”, so nobody knows your "
            "groups here. An admin finds out why on the page of single sign-on."
        )
    if not visitor.groups:
        return "The provider says that you are in no group. Roles here come with groups."
    named = ", ".join(visitor.groups[:20])
    return f"None of your groups has a role here. The provider sent: {named}."


def _new_identity(visitor: Visitor, user: Any, by: Actor) -> Identity:
    """Raises `NotLinked` if somebody else was quicker."""
    try:
        with transaction.atomic():
            identity = Identity.objects.create(
                user=user,
                issuer=visitor.issuer,
                subject=visitor.subject,
                signed_on_at=timezone.now(),
            )
    except IntegrityError:
        raise NotLinked(
            "This identity is linked to another account, or this account to another identity. "
            "Unlink that one first."
        ) from None
    audit.record(
        by,
        "LinkIdentity",
        "User",
        user.get_username(),
        after={"issuer": visitor.issuer, "subject": visitor.subject},
    )
    return identity


@transaction.atomic
def link(user: Any, visitor: Visitor, *, by: Actor) -> None:
    """By somebody who is signed in to the account and at the provider at once. `NotLinked`."""
    identity = Identity.objects.filter(issuer=visitor.issuer, subject=visitor.subject).first()
    if identity is None or identity.user_id != user.pk:
        identity = _new_identity(visitor, user, by)
    _apply_groups(identity, visitor, by)


@transaction.atomic
def unlink(identity: Identity, *, by: Actor) -> None:
    """The roles that came with it end. Refused where it is the only way in."""
    if not identity.user.has_usable_password():
        message = "This account has no password, so signing on is the only way in."
        fix = "ask an admin to set a password first"
        raise Rejected([Violation("only_way_in", "", "identity", message, fix)], by_state=True)
    _follow_mappings(identity.user, (), by)
    audit.record(
        by,
        "UnlinkIdentity",
        "User",
        identity.user.get_username(),
        before={"issuer": identity.issuer, "subject": identity.subject},
    )
    identity.delete()


def end_old_sign_ons() -> int:
    """Roles of those who did not sign on for so long: nobody knows whether they have them still.

    Tokens of programs lose them too. How many accounts.
    """
    hours = conf().sign_on.rights_hours
    if not hours:
        return 0
    since = timezone.now() - timedelta(hours=hours)
    old = get_user_model().objects.filter(
        identities__signed_on_at__lt=since, grants__mapping__isnull=False
    )
    ended = 0
    for user in old.exclude(identities__signed_on_at__gte=since).distinct():
        with transaction.atomic():
            _follow_mappings(user, (), SYSTEM)
            audit.record(SYSTEM, "EndSignOn", "User", user.get_username())
        ended += 1
    return ended
