"""What people set for themselves: the look of pages, views of tables, the password."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from django.contrib.auth import password_validation
from django.core.exceptions import ValidationError
from django.db import transaction

from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import Access
from scheduler.domain.calendar import is_time_zone
from scheduler.models import Preference, Queue, SavedView
from scheduler.selectors.accounts.access import access_of
from scheduler.selectors.accounts.preferences import preference_of, views_for
from scheduler.services.accounts.actors import Actor
from scheduler.services.records import audit

THEMES = ("light", "dark", "system")
MOST_VIEWS = 100
MOST_FOLDED = 5000
MOST_LEVELS = 1000
MOST_PINNED = 20
MOST_TILES = 8


def set_preferences(
    user: Any,
    *,
    time_zone: str | None = None,
    theme: str | None = None,
    calendar_notices: bool | None = None,
    by: Actor,
) -> Preference:
    """What is None stays as it is. Raises `Rejected`."""
    given = {"time_zone": time_zone, "theme": theme, "calendar_notices": calendar_notices}
    values = {name: value for name, value in given.items() if value is not None}
    if time_zone and not is_time_zone(time_zone):
        raise Rejected(
            [
                _violation_at(
                    "timeZone",
                    f"There is no time zone “{time_zone[:60]}”.",
                    "choose one like Europe/Berlin, or UTC",
                )
            ]
        )
    if theme and theme not in THEMES:
        raise Rejected(
            [
                _violation_at(
                    "theme",
                    f"There is no theme “{theme[:20]}”.",
                    f"choose one of {', '.join(THEMES)}",
                )
            ]
        )
    with transaction.atomic():
        stored = Preference.objects.select_for_update().filter(user=user).first()
        preference = stored or Preference(user=user)
        before = describe_preference(preference)
        for name, value in values.items():
            setattr(preference, name, value)
        preference.save()
        after = describe_preference(preference)
        if after != before:
            audit.record(
                by,
                "ChangePreferences",
                "User",
                user.get_username(),
                before=before,
                after=after,
            )
    return preference


def describe_preference(preference: Preference) -> dict[str, Any]:
    return {
        "timeZone": preference.time_zone,
        "theme": preference.theme or "system",
        "calendarNotices": preference.calendar_notices,
    }


def set_folding(
    user: Any,
    *,
    folded: Iterable[str] | None = None,
    unfolded: Iterable[str] | None = None,
    levels: int | None = None,
) -> Preference:
    """How far the tree is open for this reader.

    Down to a level (0 is all of them), and which queues they folded and unfolded by hand.

    What is None stays as it is; names of queues that they do not see are left out. What is kept.
    """
    lists = {"folded": folded, "unfolded": unfolded}
    given: dict[str, Any] = {}
    for name, names in lists.items():
        if names is not None:
            given[name] = _queues_named(names, access_of(user))
    if levels is not None:
        given["tree_levels"] = min(max(0, levels), MOST_LEVELS)
    return Preference.objects.update_or_create(user=user, defaults=given)[0]


def pin_queue(user: Any, name: str, *, is_pinned: bool) -> Preference:
    """The last one pinned comes last. Raises `Rejected` where there are too many."""
    pinned = preference_of(user).pinned_queues
    names = [other for other in pinned if other != name]
    if is_pinned:
        names.append(name)
    return set_pins(user, names)


def set_pins(user: Any, names: Iterable[str]) -> Preference:
    """The queues on top of the page of queues, in this order.

    Names of queues that they do not see are left out. Raises `Rejected` where there are too many.
    """
    wanted = list(dict.fromkeys(names))
    if len(wanted) > MOST_PINNED:
        message = f"You can pin {MOST_PINNED} queues."
        raise Rejected([_violation_at("pinned", message, "take one away first")])
    found = set(_queues_named(wanted, access_of(user)))
    kept = [name for name in wanted if name in found]
    return Preference.objects.update_or_create(user=user, defaults={"pinned_queues": kept})[0]


def pin_view(user: Any, number: int, access: Access, *, is_pinned: bool) -> Preference:
    """As a tile of the overview. Raises `Rejected` where there are too many."""
    pinned = [other for other in preference_of(user).pinned_views if other != number]
    if is_pinned:
        pinned.append(number)
    return set_pinned_views(user, pinned, access)


def set_pinned_views(user: Any, numbers: Iterable[int], access: Access) -> Preference:
    """Views that they may not open are left out. Raises `Rejected` where there are too many."""
    wanted = list(dict.fromkeys(numbers))
    offered = views_for(user, access).filter(pk__in=wanted[: 2 * MOST_VIEWS])
    found = set(offered.values_list("pk", flat=True))
    kept = [number for number in wanted if number in found]
    if len(kept) > MOST_TILES:
        message = f"You can pin {MOST_TILES} views to the overview."
        raise Rejected([_violation_at("pinnedViews", message, "take one away first")])
    return Preference.objects.update_or_create(user=user, defaults={"pinned_views": kept})[0]


def _queues_named(names: Iterable[str], access: Access) -> list[str]:
    wanted = set(itertools.islice(names, MOST_FOLDED))
    found = set(Queue.objects.filter(name__in=wanted).values_list("name", flat=True))
    if access.visible is not None:
        found &= access.visible
    return sorted(found)


def _violation_at(field: str, message: str, fix: str) -> Violation:
    return Violation("invalid_value", "", field, message, fix)


@transaction.atomic
def save_view(
    user: Any,
    page: str,
    name: str,
    query: str,
    *,
    shared: bool = False,
    by: Actor,
) -> SavedView:
    """Under this name; what its owner had kept under it before is replaced. Raises `Rejected`."""
    name = " ".join(name.split())
    if not name or len(name) > 80 or not name.isprintable():
        raise Rejected(
            [
                _violation_at(
                    "name",
                    "A view needs a name of at most 80 characters.",
                    "name it after what it shows",
                )
            ]
        )
    if len(query) > 1024 or "\x00" in query:
        raise Rejected(
            [
                _violation_at(
                    "query", "This filter is too long to be kept, or is not text.", "shorten it"
                )
            ]
        )
    views = SavedView.objects.filter(owner=user, page=page)
    old = views.filter(name=name).first()
    if old is None and views.count() >= MOST_VIEWS:
        raise Rejected(
            [_violation_at("name", f"You have {MOST_VIEWS} views already.", "delete one first")]
        )
    view = SavedView.objects.update_or_create(
        owner=user,
        page=page,
        name=name,
        defaults={"query": query, "shared": shared},
    )[0]
    if old:
        before = describe_view(old)
    else:
        before = None
    if before != describe_view(view):
        audit.record(by, "SaveView", "View", name, before=before, after=describe_view(view))
    return view


def describe_view(view: SavedView) -> dict[str, Any]:
    return {"page": view.page, "name": view.name, "query": view.query, "shared": view.shared}


@transaction.atomic
def delete_view(user: Any, view_id: int, *, by: Actor, dry_run: bool = False) -> bool:
    """One's own only. False if there is none."""
    view = SavedView.objects.filter(pk=view_id, owner=user).first()
    if view is None:
        return False
    audit.record(by, "DeleteView", "View", view.name, before=describe_view(view))
    view.delete()
    transaction.set_rollback(dry_run)
    return True


class WrongPassword(Rejected):
    """The old password is not the user's. Callers count it: nobody may guess for ever."""


def change_password(user: Any, old: str, new: str, *, by: Actor) -> None:
    """The user's own password.

    Raises `WrongPassword`, and `Rejected` with every rule that the new one breaks.
    """
    if not user.check_password(old):
        raise WrongPassword(
            [_violation_at("old", "The old password is not right.", "try again; capitals count")]
        )
    try:
        password_validation.validate_password(new, user)
    except ValidationError as problem:
        raise Rejected(
            [_violation_at("new", " ".join(problem.messages), "choose a longer, less common one")]
        ) from None
    with transaction.atomic():
        user.set_password(new)
        user.save(update_fields=["password"])
        audit.record(by, "ChangePassword", "User", user.get_username())
