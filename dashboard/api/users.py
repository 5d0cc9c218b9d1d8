"""/api/v1/users/, groups/, grants/ and tokens/: accounts, what they may do, and the keys of their programs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import quote

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import permissions, schema
from dashboard.api.base import EndpointSet, Objects, Rows, visible
from dashboard.api.errors import Refusal, bad_parameter
from dashboard.api.filters import GrantFilters
from dashboard.api.history import Records
from dashboard.api.objects import record_object, stamp
from dashboard.api.schema.openapi import Form
from scheduler.domain.queues import ROOT
from scheduler.models import ApiToken, Grant
from scheduler.services.accounts import access as access_service
from scheduler.services.accounts import users


def given_text(
    body: Any, name: str, default: str = "", *, required: bool = False, longest: int = 253
) -> str:
    fields = given_fields(body)
    value = fields.get(name, default)
    if value is None:
        value = default
    if not isinstance(value, str) or len(value) > longest or "\x00" in value:
        raise bad_parameter(
            f"spec.{name}", f"{name} must be a text of at most {longest} characters."
        )
    if required and not value:
        raise bad_parameter(f"spec.{name}", f"{name} must be given.")
    return value


def given_fields(body: Any) -> Mapping[str, Any]:
    """Flat, or below `spec` as everything else."""
    if not isinstance(body, Mapping):
        raise Refusal("The body must be an object.", kind="invalid-request")
    spec = body.get("spec")
    return spec if isinstance(spec, Mapping) else body


class Users(EndpointSet):
    kind = "user"
    search_fields = ("username", "email", "first_name", "last_name")
    orderings: ClassVar[Mapping[str, str]] = {"name": "username", "joined": "date_joined"}
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(("list", "retrieve"), permissions.signed_in),
        **dict.fromkeys(("create", "partial_update", "destroy"), permissions.CLUSTER_ADMIN),
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(
            schema.User,
            many=True,
            summary="Accounts; all of them for cluster admins, else one's own",
        ),
        "retrieve": Form(schema.User),
        "create": Form(schema.User, schema.GivenUser, 201),
        "partial_update": Form(schema.User, schema.GivenUser),
        "destroy": Form(schema.Gone),
    }

    def query(self) -> QuerySet[Any]:
        everybody = get_user_model().objects.prefetch_related("groups")
        return (
            everybody
            if self.access.is_cluster_admin
            else everybody.filter(username=self.request.user.get_username())
        )

    def lookup(self, where: Mapping[str, str]) -> dict[str, Any]:
        """`users/~/` is whoever asks; no account can have that name."""
        return {
            "username": self.request.user.get_username() if where["name"] == "~" else where["name"]
        }

    def present(self, rows: Rows) -> Objects:
        return [user_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        with self.rehearsal():
            user = users.save_user(request.data, by=self.actor)
            body = user_object(user)
        return self.answer(
            body,
            200 if self.dry_run else 201,
            location=f"/api/v1/users/{quote(user.get_username())}/",
        )

    def partial_update(self, request: Request, name: str) -> Response:
        self.found()
        with self.rehearsal():
            body = user_object(users.save_user(request.data, by=self.actor, username=name))
        return self.answer(body)

    def destroy(self, request: Request, name: str) -> Response:
        self.found()
        users.delete_user(name, by=self.actor, dry_run=self.dry_run)
        return self.answer({"message": f"The user {name} was deleted.", "dryRun": self.dry_run})


def user_object(user: Any) -> dict[str, Any]:
    spec = {
        "username": user.get_username(),
        "email": user.email,
        "firstName": user.first_name,
        "lastName": user.last_name,
        "isActive": user.is_active,
        "isClusterAdmin": user.is_superuser,
        "groups": sorted(group.name for group in user.groups.all()),
    }
    return record_object(
        "User", user.get_username(), user.date_joined, spec, {"lastLogin": stamp(user.last_login)}
    )


class Groups(EndpointSet):
    kind = "group"
    search_fields = ("name",)
    orderings: ClassVar[Mapping[str, str]] = {"name": "name"}
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(("list", "retrieve"), permissions.signed_in),
        **dict.fromkeys(("create", "partial_update", "destroy"), permissions.CLUSTER_ADMIN),
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(
            schema.Group,
            many=True,
            summary="Groups; all of them for cluster admins, else one's own",
        ),
        "retrieve": Form(schema.Group),
        "create": Form(schema.Group, schema.GivenGroup, 201),
        "partial_update": Form(schema.Group, schema.GivenGroup),
        "destroy": Form(schema.Gone),
    }

    def query(self) -> QuerySet[Any]:
        groups = Group.objects.prefetch_related("user_set")
        return groups if self.access.is_cluster_admin else groups.filter(user=self.request.user.pk)

    def present(self, rows: Rows) -> Objects:
        return [group_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        with self.rehearsal():
            group = users.save_group(request.data, by=self.actor)
            body = group_object(group)
        return self.answer(
            body, 200 if self.dry_run else 201, location=f"/api/v1/groups/{quote(group.name)}/"
        )

    def partial_update(self, request: Request, name: str) -> Response:
        self.found()
        with self.rehearsal():
            body = group_object(users.save_group(request.data, by=self.actor, name=name))
        return self.answer(body)

    def destroy(self, request: Request, name: str) -> Response:
        self.found()
        users.delete_group(name, by=self.actor, dry_run=self.dry_run)
        return self.answer({"message": f"The group {name} was deleted.", "dryRun": self.dry_run})


def group_object(group: Group) -> dict[str, Any]:
    members = sorted(user.get_username() for user in group.user_set.all())
    return record_object("Group", group.name, None, {"name": group.name, "members": members}, {})


class Grants(Records):
    kind = "grant"
    filter_class = GrantFilters
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(("list", "retrieve"), permissions.signed_in),
        **dict.fromkeys(("create", "destroy"), permissions.ADMIN),
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(schema.Grant, many=True),
        "retrieve": Form(schema.Grant),
        "create": Form(schema.Grant, schema.GivenGrant, 201),
        "destroy": Form(schema.Gone),
    }

    def query(self) -> QuerySet[Any]:
        return visible(Grant.objects.select_related("user", "group", "queue"), self.access)

    def present(self, rows: Rows) -> Objects:
        return [grant_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        body = request.data
        with self.rehearsal():
            grant = access_service.grant_role(
                user=given_text(body, "user"),
                group=given_text(body, "group"),
                role=given_text(body, "role", required=True),
                queue=given_text(body, "queue", ROOT) or ROOT,
                by=self.actor,
            )
            shown = grant_object(grant)
        return self.answer(
            shown, 200 if self.dry_run else 201, location=f"/api/v1/grants/{grant.pk}/"
        )

    def destroy(self, request: Request, name: str) -> Response:
        grant = self.found()
        access_service.revoke_grant(grant, by=self.actor, dry_run=self.dry_run)
        return self.answer({"message": "The grant was revoked.", "dryRun": self.dry_run})


def grant_object(grant: Grant) -> dict[str, Any]:
    spec = access_service.describe_grant(grant)
    return record_object(
        "Grant", str(grant.pk), grant.created_at, spec, {"createdBy": grant.created_by}
    )


class Tokens(Records):
    kind = "token"
    secrets = ("token",)
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(
            ("list", "retrieve", "destroy"), permissions.signed_in
        ),  # with a token for reading one may still revoke that one
        "create": permissions.writes_for_himself,
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(
            schema.Token, many=True, summary="One's own tokens; for cluster admins everybody's"
        ),
        "retrieve": Form(schema.Token),
        "create": Form(schema.NewToken, schema.GivenToken, 201),
        "destroy": Form(schema.Gone, summary="Revoke a token"),
    }

    def query(self) -> QuerySet[Any]:
        tokens = ApiToken.objects.select_related("user")
        return tokens if self.access.is_cluster_admin else tokens.filter(user=self.request.user.pk)

    def present(self, rows: Rows) -> Objects:
        return [token_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        body = request.data
        with self.rehearsal():
            made = access_service.create_token(
                self._owner(given_text(body, "user")),
                given_text(body, "name", required=True),
                _scopes(body),
                by=self.actor,
                expires_at=_moment(given_text(body, "expiresAt")),
            )
            shown = {**token_object(made.token), "token": "" if self.dry_run else made.secret}
        return self.answer(
            shown, 200 if self.dry_run else 201, location=f"/api/v1/tokens/{made.token.pk}/"
        )

    def _owner(self, name: str) -> Any:
        if not name or name == self.request.user.get_username():
            return self.request.user
        user = (
            get_user_model().objects.filter(username=name).first()
            if self.access.is_cluster_admin
            else None
        )
        if user is None:
            raise bad_parameter(
                "spec.user",
                "A token is for yourself; only a cluster admin makes one for another user.",
            )
        return user

    def destroy(self, request: Request, name: str) -> Response:
        token = self.found()
        access_service.revoke_token(token, by=self.actor, dry_run=self.dry_run)
        return self.answer(
            {"message": f"The token {token.name} was revoked.", "dryRun": self.dry_run}
        )


def _scopes(body: Any) -> list[str]:
    scopes = given_fields(body).get("scopes")
    if (
        not isinstance(scopes, list)
        or len(scopes) > 20
        or not all(isinstance(scope, str) for scope in scopes)
    ):
        raise bad_parameter("spec.scopes", 'scopes must be a list such as ["read"].')
    return scopes


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise bad_parameter(
            "spec.expiresAt", "expiresAt is not a moment.", "write it as 2027-01-31T12:00:00Z"
        )
    try:
        return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
    except OverflowError:
        raise bad_parameter("spec.expiresAt", "expiresAt is too far away.") from None


def token_object(token: ApiToken) -> dict[str, Any]:
    spec = {
        "name": token.name,
        "user": token.user.get_username(),
        "scopes": token.scopes,
        "expiresAt": stamp(token.expires_at),
    }
    status = {
        "prefix": token.prefix,
        "lastUsedAt": stamp(token.last_used_at),
        "revokedAt": stamp(token.revoked_at),
    }
    return record_object("Token", str(token.pk), token.created_at, spec, status)
