"""/api/v1/views/, users/{name}/preferences/ and users/{name}/password/: what somebody keeps and sets for himself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib.auth import update_session_auth_hash
from django.db.models import Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import permissions, schema
from dashboard.api.base import Objects, Rows
from dashboard.api.errors import Refusal, bad_parameter
from dashboard.api.history import Records
from dashboard.api.objects import record_object
from dashboard.api.schema.openapi import Form
from dashboard.api.users import Users, given_fields, given_text
from scheduler.models import Preference, SavedView
from scheduler.selectors.accounts.preferences import preference_of
from scheduler.services.accounts import preferences as account_preferences

PAGES = ("jobs",)
"""The pages whose views can be kept."""


class Views(Records):
    kind = "view"
    search_fields = ("name", "query")
    orderings: ClassVar[Mapping[str, str]] = {"name": "name", "created": "id"}
    default_ordering = "name"
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(("list", "retrieve"), permissions.signed_in),
        **dict.fromkeys(("create", "partial_update", "destroy"), permissions.writes_for_himself),
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(
            schema.View,
            many=True,
            summary="Views of tables: one's own, and those that others share",
        ),
        "retrieve": Form(schema.View),
        "create": Form(
            schema.View,
            schema.GivenView,
            201,
            summary="Keep a view; one's own of that name is replaced",
        ),
        "partial_update": Form(schema.View, schema.GivenViewPatch),
        "destroy": Form(schema.Gone),
    }

    def query(self) -> QuerySet[Any]:
        return SavedView.objects.filter(
            Q(owner=self.request.user.pk) | Q(shared=True)
        ).select_related("owner")

    def present(self, rows: Rows) -> Objects:
        return [view_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        with self.rehearsal():
            view = self._saved(
                given_text(request.data, "name", required=True),
                {"page": PAGES[0], "query": "", "shared": False},
            )
            shown = view_object(view)
        return self.answer(
            shown, 200 if self.dry_run else 201, location=f"/api/v1/views/{view.pk}/"
        )

    def partial_update(self, request: Request, name: str) -> Response:
        view = self._own()
        if given_text(request.data, "name", view.name) != view.name:
            raise bad_parameter(
                "spec.name",
                f"The view {view.name} can not be renamed.",
                "keep it anew, and delete this one",
            )
        with self.rehearsal():
            shown = view_object(self._saved(view.name, account_preferences.describe_view(view)))
        return self.answer(shown)

    def _saved(self, name: str, otherwise: Mapping[str, Any]) -> SavedView:
        """What the body leaves out is as in `otherwise`."""
        body = self.request.data
        page, shared = (
            given_text(body, "page", otherwise["page"]),
            given_fields(body).get("shared", otherwise["shared"]),
        )
        if page not in PAGES:
            raise bad_parameter(
                "spec.page", f"There are no views of “{page[:20]}”.", f"write {' or '.join(PAGES)}"
            )
        if not isinstance(shared, bool):
            raise bad_parameter("spec.shared", "shared must be true or false.")
        query = given_text(body, "query", otherwise["query"], longest=1024)
        return account_preferences.save_view(
            self.request.user, page, name, query, shared=shared, by=self.actor
        )

    def destroy(self, request: Request, name: str) -> Response:
        view = self._own()
        account_preferences.delete_view(request.user, view.pk, by=self.actor, dry_run=self.dry_run)
        return self.answer(
            {"message": f"The view {view.name} was deleted.", "dryRun": self.dry_run}
        )

    def _own(self) -> SavedView:
        view: SavedView = self.found()
        if view.owner_id != self.request.user.pk:
            message = (
                f"The view {view.name} is {view.owner.get_username()}'s; only its owner changes it."
            )
            raise Refusal(message, code=403, kind="not-permitted")
        return view


def view_object(view: SavedView) -> dict[str, Any]:
    address = f"/{view.page}/" + (f"?{view.query}" if view.query else "")
    return record_object(
        "View",
        str(view.pk),
        view.created_at,
        account_preferences.describe_view(view),
        {"owner": view.owner.get_username(), "address": address},
    )


class Accounts(Users):
    """Accounts, with what each sets for himself."""

    basename = "users"
    verbs: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "preferences": {"get": "preferences", "patch": "change_preferences"},
        "password": {"post": "password"},
    }
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **Users.rules,
        "preferences": permissions.signed_in,
        "change_preferences": permissions.writes_for_himself,
        "password": permissions.administers_himself,
    }
    forms: ClassVar[Mapping[str, Form]] = {
        **Users.forms,
        "preferences": Form(
            schema.Preferences, summary="Time zone, theme and folded queues; one's own"
        ),
        "change_preferences": Form(
            schema.Preferences, schema.GivenPreferences, summary="Change some of one's own"
        ),
        "password": Form(
            schema.PasswordChanged,
            schema.GivenPassword,
            summary="Change one's own password, known by the old one",
        ),
    }

    def preferences(self, request: Request, name: str) -> Response:
        return self.answer(preferences_object(preference_of(self._himself())))

    def change_preferences(self, request: Request, name: str) -> Response:
        user, given = self._himself(), given_fields(request.data)
        unknown = sorted(
            set(given)
            - {
                "timeZone",
                "theme",
                "folded",
                "unfolded",
                "levels",
                "apiVersion",
                "kind",
                "metadata",
                "status",
            }
        )
        if unknown:
            raise bad_parameter(
                unknown[0][:80],
                f"{unknown[0][:80]} is not a preference.",
                "one of timeZone, theme, folded, unfolded, levels",
            )
        texts = {
            field: given_text(request.data, field)
            for field in ("timeZone", "theme")
            if field in given
        }
        with self.rehearsal():
            preference = account_preferences.set_preferences(
                user, time_zone=texts.get("timeZone"), theme=texts.get("theme"), by=self.actor
            )
            folding = {
                field: self._names(field, given[field])
                for field in ("folded", "unfolded")
                if field in given
            }
            if folding or "levels" in given:
                preference = account_preferences.set_folding(
                    user, **folding, levels=self._levels(given.get("levels"))
                )
            body = preferences_object(preference)
        return self.answer(body)

    def _levels(self, given: Any) -> int | None:
        if given is None:
            return None
        if (
            not isinstance(given, int)
            or isinstance(given, bool)
            or not 0 <= given <= account_preferences.MOST_LEVELS
        ):
            raise bad_parameter(
                "spec.levels",
                f"levels must be a whole number from 0, for all, to {account_preferences.MOST_LEVELS}.",
            )
        return given

    def _names(self, field: str, names: Any) -> list[str]:
        """Those that they may see: of the others they are not told whether they are there."""
        if (
            not isinstance(names, list)
            or len(names) > account_preferences.MOST_FOLDED
            or not all(isinstance(name, str) for name in names)
        ):
            raise bad_parameter(
                f"spec.{field}",
                f"{field} must be a list of at most {account_preferences.MOST_FOLDED} names of queues.",
            )
        seen = self.access.visible
        return [name for name in names if "\x00" not in name and (seen is None or name in seen)]

    def password(self, request: Request, name: str) -> Response:
        user = self._himself()
        old, new = (
            given_text(request.data, field, required=True, longest=1024) for field in ("old", "new")
        )
        with self.rehearsal():
            account_preferences.change_password(user, old, new, by=self.actor)
        if not self.dry_run and request.auth is None:
            update_session_auth_hash(request._request, user)
        return self.answer(
            {
                "changed": True,
                "message": "The password is changed; browsers have to sign in again.",
                "dryRun": self.dry_run,
            }
        )

    def _himself(self) -> Any:
        user = self.found()
        if user.pk != self.request.user.pk:
            raise Refusal(
                f"Only {user.get_username()} reads and changes that.",
                code=403,
                kind="not-permitted",
            )
        return self.request.user


def preferences_object(preference: Preference) -> dict[str, Any]:
    spec = {
        **account_preferences.describe_preference(preference),
        "folded": sorted(preference.folded),
        "unfolded": sorted(preference.unfolded),
        "levels": preference.tree_levels,
    }
    return record_object("Preferences", preference.user.get_username(), None, spec, {})
