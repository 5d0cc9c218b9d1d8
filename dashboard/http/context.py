"""What every page needs around its content: the navigation, the cluster's name, the reader's theme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from dashboard.http.access import access
from dashboard.http.json_links import as_json
from dashboard.live.notices import notices_for, site_notices
from scheduler.domain.access import Permission
from scheduler.models import Preference
from scheduler.selectors.accounts.preferences import preference_of
from scheduler.selectors.cluster.summary import cluster_name

THEMES = ("light", "dark", "system")
THEME_COOKIE = "theme"


@dataclass(frozen=True, slots=True)
class Place:
    """One entry of the navigation. `url_name` may not exist yet: then the entry is left out."""

    title: str
    url_name: str
    icon: str
    prefix: str


PLACES = (
    Place("Overview", "overview", "overview", "/"),
    Place("Queues", "queues", "queues", "/queues/"),
    Place("Jobs", "jobs", "jobs", "/jobs/"),
    Place("Nodes", "nodes", "nodes", "/nodes/"),
    Place("Sessions", "sessions", "sessions", "/sessions/"),
    Place("Activity", "activity", "activity", "/activity/"),
    Place("Policy", "policy", "policy", "/policy/"),
    Place("Users", "users", "user", "/users/"),
)
FOR_ADMINS = ("users",)
FOR_VIEWERS = ("nodes", "sessions")  # of some queue: who has no role at all is told to ask for one
ALSO = {"activity": ("/audit/",)}  # other addresses that belong to an entry


def console(request: HttpRequest) -> dict[str, Any]:
    preference = _preference(request)
    theme = request.COOKIES.get(THEME_COOKIE) or preference.theme
    return {
        "theme": theme if theme in THEMES else "system",
        "time_zone": preference.time_zone,
        "json_url": as_json(request),
        "places": [entry for place in _places(request) if (entry := _entry(place, request.path))],
        # Functions: only pages that show them ask the database.
        "cluster_name": cluster_name,
        "site_notices": lambda: notices_for(access(request).visible, site_notices()),
    }


def _preference(request: HttpRequest) -> Preference:
    user = getattr(request, "user", None)
    return preference_of(user) if user is not None and user.is_authenticated else Preference()


def _places(request: HttpRequest) -> list[Place]:
    """Those that the reader could not open are left out."""
    user = getattr(request, "user", None)
    mine = access(request) if user and user.is_authenticated else None
    closed: tuple[str, ...] = ()
    if mine is None or not mine.may_anywhere(Permission.ADMINISTER):
        closed += FOR_ADMINS
    if mine is None or not mine.may_anywhere(Permission.VIEW):
        closed += FOR_VIEWERS
    return [place for place in PLACES if place.url_name not in closed]


def _entry(place: Place, path: str) -> dict[str, Any] | None:
    try:
        url = reverse(place.url_name)
    except NoReverseMatch:
        return None
    here = (
        path == url
        if place.prefix == "/"
        else path.startswith((place.prefix, *ALSO.get(place.url_name, ())))
    )
    return {"title": place.title, "url": url, "icon": place.icon, "here": here}
