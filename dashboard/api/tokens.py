"""/api/v1/tokens/: tokens with which programs sign in."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.body_fields import given_fields, given_text, given_texts
from dashboard.api.framework.collection import Objects, Rows
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.objects import iso_time, record_object
from dashboard.api.records import Records
from dashboard.api.schema.openapi import Operation, Operations
from scheduler.models import ApiToken
from scheduler.services.accounts import tokens as token_service

_MOST_SCOPES = 20


class Tokens(Records):
    noun = "token"
    secrets = ("token",)
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "create": permissions.may_write_own,
        "destroy": permissions.signed_in,  # a token for reading can still be used to revoke itself
    }
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.Token, many=True, summary="Your own tokens; for cluster admins everybody's"
        ),
        "retrieve": Operation(schema.Token),
        "create": Operation(schema.NewToken, schema.GivenToken, 201),
        "destroy": Operation(schema.Gone, summary="Revoke a token"),
    }

    def visible_rows(self) -> QuerySet[Any]:
        tokens = ApiToken.objects.select_related("user")
        if self.access.is_cluster_admin:
            return tokens
        return tokens.filter(user=self.request.user.pk)

    def as_objects(self, rows: Rows) -> Objects:
        return [token_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        body = request.data
        with self.undone_in_dry_run():
            made = token_service.create_token(
                self._owner_named(given_text(body, "user")),
                given_text(body, "name", required=True),
                _given_scopes(body),
                by=self.actor,
                expires_at=_given_moment(given_text(body, "expiresAt")),
            )
            if self.dry_run:
                secret = ""
            else:
                secret = made.secret
            answer = {**token_object(made.token), "token": secret}
        return self.created_response(answer, location=f"/api/v1/tokens/{made.token.pk}/")

    def _owner_named(self, name: str) -> Any:
        if not name or name == self.request.user.get_username():
            return self.request.user
        user = None
        if self.access.is_cluster_admin:
            user = get_user_model().objects.filter(username=name).first()
        if user is None:
            message = "A token is for yourself; only a cluster admin makes one for another user."
            raise bad_parameter("spec.user", message)
        return user

    def destroy(self, request: Request, name: str) -> Response:
        token = self.row_or_404()
        token_service.revoke_token(token, by=self.actor, dry_run=self.dry_run)
        message = f"The token {token.name} was revoked."
        return self.response_with({"message": message, "dryRun": self.dry_run})


def _given_scopes(body: Any) -> list[str]:
    scopes = given_texts(given_fields(body).get("scopes"), _MOST_SCOPES)
    if scopes is None:
        raise bad_parameter("spec.scopes", 'scopes must be a list such as ["read"].')
    return scopes


def _given_moment(text: str) -> datetime | None:
    if not text:
        return None
    moment = _parsed_moment(text)
    if moment is None:
        fix = "write it as 2027-01-31T12:00:00Z"
        raise bad_parameter("spec.expiresAt", "expiresAt is not a moment.", fix)
    if timezone.is_aware(moment):
        return moment
    try:
        return timezone.make_aware(moment)
    except OverflowError:
        raise bad_parameter("spec.expiresAt", "expiresAt is too far away.") from None


def _parsed_moment(text: str) -> datetime | None:
    try:
        return parse_datetime(text)
    except ValueError:
        return None


def token_object(token: ApiToken) -> dict[str, Any]:
    spec = {
        "name": token.name,
        "user": token.user.get_username(),
        "scopes": token.scopes,
        "expiresAt": iso_time(token.expires_at),
    }
    status = {
        "prefix": token.prefix,
        "lastUsedAt": iso_time(token.last_used_at),
        "revokedAt": iso_time(token.revoked_at),
    }
    return record_object("Token", str(token.pk), token.created_at, spec, status)
