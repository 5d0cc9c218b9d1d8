"""/api/v1/views/, users/{name}/preferences/ and password/: what users set themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib.auth import update_session_auth_hash
from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.body_fields import (
    given_fields,
    given_text,
    given_texts,
    refuse_unknown,
)
from dashboard.api.framework.collection import Objects, Orderings, Rows, Verbs
from dashboard.api.framework.errors import Refusal, bad_parameter
from dashboard.api.objects import iso_time, record_object
from dashboard.api.records import Records
from dashboard.api.schema.openapi import Operation, Operations
from dashboard.api.users import Users
from dashboard.forms.view_counts import count_of_view
from dashboard.http.lockout import count_wrong_password, is_locked_out, minutes_locked
from scheduler.models import Preference, SavedView
from scheduler.selectors.accounts.preferences import preference_of, views_for
from scheduler.selectors.jobs.listing import COUNTED_AT_MOST
from scheduler.services.accounts import preferences as account_preferences
from scheduler.services.accounts.second_factors import remove_second_factor

PAGES = ("jobs",)
"""The pages whose views can be kept."""

_PREFERENCES = (
    "timeZone",
    "theme",
    "calendarNotices",
    "folded",
    "unfolded",
    "levels",
    "pinned",
    "pinnedViews",
)
_OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata", "status")


class Views(Records):
    noun = "view"
    search_fields = ("name", "query")
    orderings: ClassVar[Orderings] = {"name": "name", "created": "id"}
    default_ordering = "name"
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "create": permissions.may_write_own,
        "partial_update": permissions.may_write_own,
        "destroy": permissions.may_write_own,
        "count": permissions.signed_in,
    }
    verbs: ClassVar[Verbs] = {"count": {"get": "count"}}
    operations: ClassVar[Operations] = {
        "count": Operation(
            schema.ViewCount, summary="How many jobs a view finds, and the longest wait of them"
        ),
        "list": Operation(
            schema.View,
            many=True,
            summary="Views of tables: your own, and those that others share with you",
        ),
        "retrieve": Operation(schema.View),
        "create": Operation(
            schema.View,
            schema.GivenView,
            201,
            summary="Keep a view; your own of that name is replaced",
        ),
        "partial_update": Operation(schema.View, schema.GivenViewPatch),
        "destroy": Operation(schema.Gone),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return views_for(self.request.user, self.access)

    def as_objects(self, rows: Rows) -> Objects:
        return [view_object(row) for row in rows]

    def count(self, request: Request, name: str) -> Response:
        view = self.row_or_404()
        found = count_of_view(view, self.request.user.get_username(), self.access)
        body = {
            "jobs": min(found.jobs, COUNTED_AT_MOST),
            "isMore": found.jobs > COUNTED_AT_MOST,
            "oldestWaitSince": iso_time(found.oldest),
        }
        return self.response_with(body)

    def create(self, request: Request) -> Response:
        name = given_text(request.data, "name", required=True)
        with self.undone_in_dry_run():
            view = self._save_view(name, {"page": PAGES[0], "query": "", "shared": False})
            body = view_object(view)
        return self.created_response(body, location=f"/api/v1/views/{view.pk}/")

    def partial_update(self, request: Request, name: str) -> Response:
        view = self._own_view()
        if given_text(request.data, "name", view.name) != view.name:
            message = f"The view {view.name} cannot be renamed."
            raise bad_parameter("spec.name", message, "make a new one, and delete this one")
        with self.undone_in_dry_run():
            saved = self._save_view(view.name, account_preferences.describe_view(view))
            body = view_object(saved)
        return self.response_with(body)

    def _save_view(self, name: str, otherwise: Mapping[str, Any]) -> SavedView:
        """What the body leaves out is as in `otherwise`."""
        body = self.request.data
        page = given_text(body, "page", otherwise["page"])
        if page not in PAGES:
            message = f"There are no views of “{page[:20]}”."
            raise bad_parameter("spec.page", message, f"write {' or '.join(PAGES)}")
        shared = given_fields(body).get("shared", otherwise["shared"])
        if not isinstance(shared, bool):
            raise bad_parameter("spec.shared", "shared must be true or false.")
        query = given_text(body, "query", otherwise["query"], longest=1024)
        return account_preferences.save_view(
            self.request.user,
            page,
            name,
            query,
            shared=shared,
            by=self.actor,
        )

    def destroy(self, request: Request, name: str) -> Response:
        view = self._own_view()
        account_preferences.delete_view(request.user, view.pk, by=self.actor, dry_run=self.dry_run)
        message = f"The view {view.name} was deleted."
        return self.response_with({"message": message, "dryRun": self.dry_run})

    def _own_view(self) -> SavedView:
        view: SavedView = self.row_or_404()
        if view.owner_id != self.request.user.pk:
            owner = view.owner.get_username()
            message = f"The view {view.name} is {owner}'s; only its owner changes it."
            raise Refusal(message, code=403, problem_type="not-permitted")
        return view


def view_object(view: SavedView) -> dict[str, Any]:
    address = f"/{view.page}/"
    if view.query:
        address += f"?{view.query}"
    spec = account_preferences.describe_view(view)
    status = {"owner": view.owner.get_username(), "address": address}
    return record_object("View", str(view.pk), view.created_at, spec, status)


class Accounts(Users):
    """Accounts, with what each user sets themselves."""

    basename = "users"
    verbs: ClassVar[Verbs] = {
        "preferences": {"get": "preferences", "patch": "change_preferences"},
        "password": {"post": "password"},
        "reset-second-factor": {"post": "reset_second_factor"},
    }
    rules: ClassVar[permissions.Rules] = {
        **Users.rules,
        "preferences": permissions.signed_in,
        "change_preferences": permissions.may_write_own,
        "password": permissions.may_change_own_account,
        "reset_second_factor": permissions.CLUSTER_ADMIN,
    }
    operations: ClassVar[Operations] = {
        **Users.operations,
        "preferences": Operation(
            schema.Preferences,
            summary="Your own time zone, theme, folded queues, and whether the calendar tells you",
        ),
        "change_preferences": Operation(
            schema.Preferences, schema.GivenPreferences, summary="Change some of your own"
        ),
        "password": Operation(
            schema.PasswordChanged,
            schema.GivenPassword,
            summary="Change your own password, with the old one",
        ),
        "reset_second_factor": Operation(
            schema.Gone,
            schema.Reason,
            optional_body=True,
            summary="Remove the second factor of somebody who lost it",
        ),
    }

    def preferences(self, request: Request, name: str) -> Response:
        return self.response_with(preferences_object(preference_of(self._own_account())))

    def change_preferences(self, request: Request, name: str) -> Response:
        user = self._own_account()
        refuse_unknown(
            given_fields(request.data),
            (*_PREFERENCES, *_OF_EVERY_OBJECT),
            "{} is not a preference.",
            f"one of {', '.join(_PREFERENCES)}",
        )
        with self.undone_in_dry_run():
            preference = self._set_display(user)
            preference = self._set_folding(user) or preference
            preference = self._set_pins(user) or preference
            body = preferences_object(self._set_pinned_views(user) or preference)
        return self.response_with(body)

    def _set_display(self, user: Any) -> Preference:
        return account_preferences.set_preferences(
            user,
            time_zone=self._text_or_none("timeZone"),
            theme=self._text_or_none("theme"),
            calendar_notices=self._flag_or_none("calendarNotices"),
            by=self.actor,
        )

    def _flag_or_none(self, field: str) -> bool | None:
        given = given_fields(self.request.data)
        if field not in given:
            return None
        flag = given[field]
        if not isinstance(flag, bool):
            raise bad_parameter(f"spec.{field}", f"{field} must be true or false.")
        return flag

    def _text_or_none(self, field: str) -> str | None:
        if field not in given_fields(self.request.data):
            return None
        return given_text(self.request.data, field)

    def _set_folding(self, user: Any) -> Preference | None:
        """None where the body does not speak of it."""
        given = given_fields(self.request.data)
        folding = {}
        for field in ("folded", "unfolded"):
            if field in given:
                folding[field] = self._queue_names(field, given[field])
        if not folding and "levels" not in given:
            return None
        levels = _checked_levels(given.get("levels"))
        return account_preferences.set_folding(user, **folding, levels=levels)

    def _set_pins(self, user: Any) -> Preference | None:
        """None where the body does not speak of them."""
        given = given_fields(self.request.data)
        if "pinned" not in given:
            return None
        return account_preferences.set_pins(user, self._queue_names("pinned", given["pinned"]))

    def _set_pinned_views(self, user: Any) -> Preference | None:
        """None where the body does not speak of them."""
        given = given_fields(self.request.data)
        if "pinnedViews" not in given:
            return None
        numbers = given_texts(given["pinnedViews"], account_preferences.MOST_VIEWS)
        if numbers is None or not all(re.fullmatch(r"\d{1,18}", one) for one in numbers):
            message = 'pinnedViews must be a list of names of views, such as ["12"].'
            raise bad_parameter("spec.pinnedViews", message)
        wanted = [int(number) for number in numbers]
        return account_preferences.set_pinned_views(user, wanted, self.access)

    def _queue_names(self, field: str, given: Any) -> list[str]:
        """Those that they may see: of others they are not told whether they exist."""
        most = account_preferences.MOST_FOLDED
        names = given_texts(given, most)
        if names is None:
            message = f"{field} must be a list of at most {most} names of queues."
            raise bad_parameter(f"spec.{field}", message)
        seen = self.access.visible
        usable = [name for name in names if "\x00" not in name]
        if seen is None:
            return usable
        return [name for name in usable if name in seen]

    def password(self, request: Request, name: str) -> Response:
        user = self._own_account()
        old = given_text(request.data, "old", required=True, longest=1024)
        new = given_text(request.data, "new", required=True, longest=1024)
        self._refuse_if_locked_out(user)
        try:
            with self.undone_in_dry_run():
                account_preferences.change_password(user, old, new, by=self.actor)
        except account_preferences.WrongPassword:
            count_wrong_password(request._request, user.get_username())
            self._refuse_if_locked_out(user)
            raise
        if not self.dry_run and request.auth is None:
            update_session_auth_hash(request._request, user)
        body = {
            "changed": True,
            "message": "The password is changed; browsers have to sign in again.",
            "dryRun": self.dry_run,
        }
        return self.response_with(body)

    def reset_second_factor(self, request: Request, name: str) -> Response:
        user = self.row_or_404()
        if user.pk == self.request.user.pk:
            message = "Your own second factor is removed on the account page, with a code."
            raise Refusal(message, code=403, problem_type="not-permitted")
        removed = remove_second_factor(user, by=self.commander, dry_run=self.dry_run)
        message = f"{user.get_username()} has no second factor."
        if removed:
            message = f"The second factor of {user.get_username()} was removed."
        return self.response_with({"message": message, "dryRun": self.dry_run})

    def _refuse_if_locked_out(self, user: Any) -> None:
        if is_locked_out(self.request._request, user.get_username()):
            minutes = minutes_locked(self.request._request)
            message = f"There were too many wrong passwords. Try again in {minutes} minutes."
            raise Refusal(message, code=429, problem_type="too-many-requests")

    def _own_account(self) -> Any:
        user = self.row_or_404()
        if user.pk != self.request.user.pk:
            message = f"Only {user.get_username()} reads and changes that."
            raise Refusal(message, code=403, problem_type="not-permitted")
        return self.request.user


def _checked_levels(given: Any) -> int | None:
    if given is None:
        return None
    most = account_preferences.MOST_LEVELS
    is_number = isinstance(given, int) and not isinstance(given, bool)
    if not is_number or not 0 <= given <= most:
        message = f"levels must be a whole number from 0, for all, to {most}."
        raise bad_parameter("spec.levels", message)
    return int(given)


def preferences_object(preference: Preference) -> dict[str, Any]:
    spec = {
        **account_preferences.describe_preference(preference),
        "folded": sorted(preference.folded),
        "unfolded": sorted(preference.unfolded),
        "levels": preference.tree_levels,
        "pinned": preference.pinned_queues,
        "pinnedViews": [str(number) for number in preference.pinned_views],
    }
    return record_object("Preferences", preference.user.get_username(), None, spec, {})
