"""Accounts and groups: made, changed and switched off by cluster admins.

A password by its owner too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth import get_user_model, password_validation
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import transaction

from scheduler.admission.reading.reader import Reader
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import SignInNeeded
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.records import audit

_USER_FIELDS = (
    "username",
    "email",
    "firstName",
    "lastName",
    "isActive",
    "isClusterAdmin",
    "password",
    "groups",
)
LONGEST_NAME = 150
_PLAIN = {"email": "email", "firstName": "first_name", "lastName": "last_name"}


def save_user(
    given: object,
    *,
    by: Actor = SYSTEM,
    username: str = "",
    dry_run: bool = False,
) -> Any:
    """Make an account, or change the one named; what is left out stays.

    Raises the model's `DoesNotExist` and `Rejected`.
    """
    access.require_cluster(by, doing="manage users")
    reader = Reader()
    fields = _read_fields(reader, given)
    with transaction.atomic():
        _alone_with_admins()
        user = _found_or_new(reader, fields, username)
        access.require_to_touch_account(by, user, "change the account of a superuser")
        if user.pk:
            before = describe_user(user)
        else:
            before = None
        was_superuser = user.is_superuser
        _fill_user(reader, user, fields)
        _refuse_if_wrong(reader)
        _require_to_empower(by, user, was_superuser)
        _require_to_set_password(by, user, fields)
        user.save()
        if "groups" in fields:
            user.groups.set(_named_groups(reader, fields["groups"]))
            _refuse_if_wrong(reader)
        audit.record(
            by,
            "UpdateUser" if before else "CreateUser",
            "User",
            user.get_username(),
            before=before,
            after=describe_user(user),
        )
        transaction.set_rollback(dry_run)
    return user


def _require_to_empower(by: Actor, user: Any, was_superuser: bool) -> None:
    """Whoever makes a superuser has all that one may: only one of them gives that away."""
    if not user.is_superuser or was_superuser:
        return
    access.require_to_touch_account(by, user, "make somebody a superuser")
    if by.token_ends_at is not None:
        raise SignInNeeded(
            "The token in use has an end; a superuser that it makes would outlive it."
        )


def _require_to_set_password(by: Actor, user: Any, fields: Mapping[str, Any]) -> None:
    """A password is a way in that stays.

    So a token that expires cannot set one, and no token can set that of its own account.
    """
    if by.token is None or not fields.get("password"):
        return
    if by.user is not None and by.user.pk == user.pk:
        raise SignInNeeded(
            "A token does not set the password of its own account: change it with the old one."
        )
    if by.token_ends_at is not None:
        raise SignInNeeded("The token in use has an end; a password that it sets would outlive it.")


def _read_fields(reader: Reader, given: object) -> dict[str, Any]:
    whole = reader.mapping(given, "the object")
    if not isinstance(given, Mapping):
        reader.wrong_type("", given, "an object")
    fields = {**reader.mapping(whole.get("spec"), "spec")} or dict(whole)
    metadata = reader.mapping(whole.get("metadata"), "metadata")
    if metadata.get("name") is not None:
        fields.setdefault("username", metadata["name"])
    _refuse_if_wrong(reader)
    for key in fields:
        if key not in (*_USER_FIELDS, "apiVersion", "kind", "metadata", "spec", "status"):
            reader.refuse(
                "unknown_field",
                key,
                f"{key} is not a field of a user.",
                f"one of {', '.join(_USER_FIELDS)}",
            )
    _refuse_if_wrong(reader)
    known: dict[str, Any] = {}
    for key, value in fields.items():
        if key in _USER_FIELDS:
            known[key] = value
    return known


def _found_or_new(reader: Reader, fields: Mapping[str, Any], username: str) -> Any:
    model = get_user_model()
    if username:
        given = fields.get("username", username)
        if given != username:
            reader.refuse(
                "immutable_field_changed",
                "username",
                f"The user {username} cannot be renamed.",
                f"write {username}",
            )
        return model.objects.select_for_update().get(username=username)
    name = reader.text(fields.get("username"), "username", longest=LONGEST_NAME)
    if not is_usable_name(name):
        reader.refuse(
            "invalid_name",
            "username",
            "A user's name has letters, digits and @ . + - _ only, 150 at most.",
            "choose another",
        )
    elif model.objects.filter(username=name).exists():
        raise Rejected(
            [
                Violation(
                    "already_exists",
                    "",
                    "username",
                    f"There is already a user {name}.",
                    "choose another",
                )
            ],
            by_state=True,
        )
    return model(username=name, is_active=True)


def is_usable_name(name: str) -> bool:
    """Whether an account can be called that: the name is part of addresses."""
    if not name.strip(".") or len(name) > LONGEST_NAME:
        return False
    return all(character.isalnum() or character in "@.+-_" for character in name)


def _fill_user(reader: Reader, user: Any, fields: Mapping[str, Any]) -> None:
    for key, column in _PLAIN.items():
        if key in fields:
            longest = 254 if key == "email" else 150
            setattr(user, column, reader.text(fields[key], key, longest=longest))
    user.is_active = reader.truth(fields.get("isActive"), "isActive", user.is_active)
    user.is_superuser = user.is_staff = reader.truth(
        fields.get("isClusterAdmin"), "isClusterAdmin", user.is_superuser
    )
    if user.pk and not (user.is_active and user.is_superuser):
        _keep_an_admin(user, "isActive" if user.is_superuser else "isClusterAdmin")
    _set_password(reader, user, fields)


def _set_password(reader: Reader, user: Any, fields: Mapping[str, Any]) -> None:
    password = reader.text(fields.get("password"), "password", longest=1024)
    if password:
        try:
            password_validation.validate_password(password, user)
        except ValidationError as error:
            reader.refuse(
                "weak_password",
                "password",
                " ".join(error.messages),
                "choose a longer one",
            )
        user.set_password(password)
    elif user.pk is None:
        user.set_unusable_password()


def _named_groups(reader: Reader, names: object) -> Iterable[Group]:
    wanted = []
    for index, name in enumerate(reader.items(names, "groups")):
        wanted.append(reader.text(name, f"groups[{index}]"))
    found = {}
    for group in Group.objects.filter(name__in=wanted):
        found[group.name] = group
    for name in wanted:
        if name not in found:
            reader.refuse(
                "group_not_found", "groups", f"There is no group {name}.", "create the group first"
            )
    return found.values()


def _refuse_if_wrong(reader: Reader) -> None:
    if reader.violations:
        raise Rejected(reader.violations)


def describe_user(user: Any) -> dict[str, Any]:
    groups: list[str] = []
    if user.pk:
        groups = sorted(user.groups.values_list("name", flat=True))
    return {
        "username": user.get_username(),
        "email": user.email,
        "isActive": user.is_active,
        "isClusterAdmin": user.is_superuser,
        "groups": groups,
    }


def _alone_with_admins() -> None:
    """Take turns with everybody who changes admins.

    Two who remove each other at the same moment would leave nobody. The second waits, and sees what
    the first did.
    """
    admins = get_user_model().objects.filter(is_superuser=True).order_by("pk")
    list(admins.select_for_update().values_list("pk", flat=True))


def _keep_an_admin(user: Any, field: str) -> None:
    """The last user who can sign in as a cluster admin stays one."""
    admins = get_user_model().objects.filter(is_superuser=True, is_active=True)
    is_admin = admins.filter(pk=user.pk).exists()
    if is_admin and not admins.exclude(pk=user.pk).exists():
        message = f"{user.get_username()} is the last cluster admin."
        raise Rejected(
            [Violation("last_admin", "", field, message, "make somebody else one first")],
            by_state=True,
        )


@transaction.atomic
def delete_user(username: str, *, by: Actor = SYSTEM, dry_run: bool = False) -> None:
    """The account, its grants and tokens; jobs, events and the audit log keep its name."""
    access.require_cluster(by, doing="manage users")
    _alone_with_admins()
    user = get_user_model().objects.select_for_update().get(username=username)
    access.require_to_touch_account(by, user, "delete the account of a superuser")
    _keep_an_admin(user, "username")
    audit.record(by, "DeleteUser", "User", username, before=describe_user(user))
    user.delete()
    transaction.set_rollback(dry_run)


@transaction.atomic
def save_group(
    given: object,
    *,
    by: Actor = SYSTEM,
    name: str = "",
    dry_run: bool = False,
) -> Group:
    """A group and, where given, its members by name."""
    access.require_cluster(by, doing="manage groups")
    reader = Reader()
    whole = reader.mapping(given, "the object")
    fields = {**reader.mapping(whole.get("spec"), "spec")} or dict(whole)
    metadata = reader.mapping(whole.get("metadata"), "metadata")
    wanted = reader.text(fields.get("name") or metadata.get("name"), "name", longest=150) or name
    if not wanted or not wanted.isprintable():
        reader.refuse("name_required", "name", "A group needs a name.", "give metadata.name")
    elif "/" in wanted or not wanted.strip("."):
        reader.refuse(
            "invalid_name",
            "name",
            "A group's name has no / in it and is more than dots: it is part of an address.",
            "choose another",
        )
    _refuse_if_wrong(reader)
    if name and wanted != name:
        raise Rejected(
            [
                Violation(
                    "immutable_field_changed",
                    "",
                    "name",
                    f"The group {name} cannot be renamed.",
                    f"write {name}",
                )
            ]
        )
    if not name and Group.objects.filter(name=wanted).exists():
        raise Rejected(
            [
                Violation(
                    "already_exists",
                    "",
                    "name",
                    f"There is already a group {wanted}.",
                    "choose another",
                )
            ],
            by_state=True,
        )
    if name:
        group = Group.objects.get(name=name)
    else:
        group = Group.objects.create(name=wanted)
    if name:
        before = describe_group(group)
    else:
        before = None
    if fields.get("members") is not None:
        group.user_set.set(_named_members(reader, fields["members"]))
        _refuse_if_wrong(reader)
    audit.record(
        by,
        "UpdateGroup" if name else "CreateGroup",
        "Group",
        wanted,
        before=before,
        after=describe_group(group),
    )
    transaction.set_rollback(dry_run)
    return group


def _named_members(reader: Reader, names: object) -> Iterable[Any]:
    wanted = []
    for index, name in enumerate(reader.items(names, "members")):
        wanted.append(reader.text(name, f"members[{index}]"))
    found = {}
    for user in get_user_model().objects.filter(username__in=wanted):
        found[user.get_username()] = user
    for name in wanted:
        if name not in found:
            reader.refuse(
                "user_not_found", "members", f"There is no user {name}.", "create the user first"
            )
    return found.values()


def describe_group(group: Group) -> dict[str, Any]:
    members = group.user_set.values_list("username", flat=True)
    return {"name": group.name, "members": sorted(members)}


@transaction.atomic
def delete_group(name: str, *, by: Actor = SYSTEM, dry_run: bool = False) -> None:
    access.require_cluster(by, doing="manage groups")
    group = Group.objects.select_for_update().get(name=name)
    audit.record(by, "DeleteGroup", "Group", name, before=describe_group(group))
    group.delete()
    transaction.set_rollback(dry_run)
