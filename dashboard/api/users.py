"""/api/v1/users/ and groups/: accounts and groups of accounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.collection import EndpointSet, Objects, Orderings, Rows
from dashboard.api.objects import iso_time, record_object
from dashboard.api.schema.openapi import Operation, Operations
from scheduler.services.accounts import users

_THE_CALLER = "~"
"""`users/~/` is whoever asks; no account can have that name."""
_RULES: permissions.Rules = {
    "list": permissions.signed_in,
    "retrieve": permissions.signed_in,
    "create": permissions.CLUSTER_ADMIN,
    "partial_update": permissions.CLUSTER_ADMIN,
    "destroy": permissions.CLUSTER_ADMIN,
}


class Users(EndpointSet):
    noun = "user"
    search_fields = ("username", "email", "first_name", "last_name")
    orderings: ClassVar[Orderings] = {"name": "username", "joined": "date_joined"}
    rules: ClassVar[permissions.Rules] = _RULES
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.User,
            many=True,
            summary="Accounts: all of them for cluster admins, else your own",
        ),
        "retrieve": Operation(schema.User),
        "create": Operation(schema.User, schema.GivenUser, 201),
        "partial_update": Operation(schema.User, schema.GivenUser),
        "destroy": Operation(schema.Gone),
    }

    def visible_rows(self) -> QuerySet[Any]:
        everybody = (
            get_user_model().objects.select_related("second_factor").prefetch_related("groups")
        )
        if self.access.is_cluster_admin:
            return everybody
        return everybody.filter(username=self.request.user.get_username())

    def lookup_values(self, where: Mapping[str, str]) -> dict[str, Any]:
        name = where["name"]
        if name == _THE_CALLER:
            name = self.request.user.get_username()
        return {"username": name}

    def as_objects(self, rows: Rows) -> Objects:
        return [user_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        with self.undone_in_dry_run():
            user = users.save_user(request.data, by=self.actor)
            body = user_object(user)
        location = f"/api/v1/users/{quote(user.get_username())}/"
        return self.created_response(body, location=location)

    def partial_update(self, request: Request, name: str) -> Response:
        self.row_or_404()
        with self.undone_in_dry_run():
            body = user_object(users.save_user(request.data, by=self.actor, username=name))
        return self.response_with(body)

    def destroy(self, request: Request, name: str) -> Response:
        self.row_or_404()
        users.delete_user(name, by=self.actor, dry_run=self.dry_run)
        message = f"The user {name} was deleted."
        return self.response_with({"message": message, "dryRun": self.dry_run})


def user_object(user: Any) -> dict[str, Any]:
    groups = []
    for group in user.groups.all():
        groups.append(group.name)
    spec = {
        "username": user.get_username(),
        "email": user.email,
        "firstName": user.first_name,
        "lastName": user.last_name,
        "isActive": user.is_active,
        "isClusterAdmin": user.is_superuser,
        "groups": sorted(groups),
    }
    status = {
        "lastLogin": iso_time(user.last_login),
        "secondFactor": hasattr(user, "second_factor"),
    }
    return record_object("User", user.get_username(), user.date_joined, spec, status)


class Groups(EndpointSet):
    noun = "group"
    search_fields = ("name",)
    orderings: ClassVar[Orderings] = {"name": "name"}
    rules: ClassVar[permissions.Rules] = _RULES
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.Group,
            many=True,
            summary="Groups: all of them for cluster admins, else your own",
        ),
        "retrieve": Operation(schema.Group),
        "create": Operation(schema.Group, schema.GivenGroup, 201),
        "partial_update": Operation(schema.Group, schema.GivenGroup),
        "destroy": Operation(schema.Gone),
    }

    def visible_rows(self) -> QuerySet[Any]:
        groups = Group.objects.prefetch_related("user_set")
        if self.access.is_cluster_admin:
            return groups
        return groups.filter(user=self.request.user.pk)

    def as_objects(self, rows: Rows) -> Objects:
        return [group_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        with self.undone_in_dry_run():
            group = users.save_group(request.data, by=self.actor)
            body = group_object(group)
        return self.created_response(body, location=f"/api/v1/groups/{quote(group.name)}/")

    def partial_update(self, request: Request, name: str) -> Response:
        self.row_or_404()
        with self.undone_in_dry_run():
            body = group_object(users.save_group(request.data, by=self.actor, name=name))
        return self.response_with(body)

    def destroy(self, request: Request, name: str) -> Response:
        self.row_or_404()
        users.delete_group(name, by=self.actor, dry_run=self.dry_run)
        message = f"The group {name} was deleted."
        return self.response_with({"message": message, "dryRun": self.dry_run})


def group_object(group: Group) -> dict[str, Any]:
    members = sorted(user.get_username() for user in group.user_set.all())
    return record_object("Group", group.name, None, {"name": group.name, "members": members}, {})
