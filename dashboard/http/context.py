"""What every page has around its content: the navigation, the cluster's name, the theme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from dashboard.http.access import access
from dashboard.http.json_links import json_address
from dashboard.live.notices import notices_for, site_notices
from scheduler.conf import conf, is_kubernetes, is_shadow
from scheduler.domain.access import Permission
from scheduler.domain.plans import counted
from scheduler.domain.taken_over import REPLACED_NAME, TakenOver
from scheduler.models import Preference
from scheduler.selectors.accounts.preferences import preference_of
from scheduler.selectors.cluster.mirror import taken_over
from scheduler.selectors.cluster.summary import cluster_name
from scheduler.selectors.notices.inbox import count_unread

THEMES = ("light", "dark", "system")
THEME_COOKIE = "theme"


@dataclass(frozen=True, slots=True)
class Place:
    """One entry of the navigation. `url_name` may not exist yet: then the entry is left out."""

    title: str
    url_name: str
    icon: str
    prefix: str
    group: str = ""  # the entry of the navigation below which it is shown
    about: str = ""  # for the page of its group


INSIGHTS = "insights"
PLACES = (
    Place("Overview", "overview", "overview", "/"),
    Place("Queues", "queues", "queues", "/queues/"),
    Place("Jobs", "jobs", "jobs", "/jobs/"),
    Place("Nodes", "nodes", "nodes", "/nodes/"),
    Place("Sessions", "sessions", "sessions", "/sessions/"),
    Place("Comparison", "comparison", "half", "/comparison/"),
    Place("Changes", "change-sets", "changes", "/changes/"),
    Place("Insights", INSIGHTS, "usage", "/insights/"),
    Place(
        "Usage",
        "usage",
        "usage",
        "/insights/usage/",
        INSIGHTS,
        "Who used what: resource-hours by queue, user, namespace and job, and what they cost.",
    ),
    Place(
        "Fairness",
        "fairness",
        "fairness",
        "/insights/fairness/",
        INSIGHTS,
        "Who had less than their share, whose loans that was, how long jobs waited, and where the "
        "room went.",
    ),
    Place(
        "Loans",
        "loans",
        "loans",
        "/insights/loans/",
        INSIGHTS,
        "Who borrows from whom now, and how it was.",
    ),
    Place(
        "Forecasts",
        "forecasts",
        "clock",
        "/insights/forecasts/",
        INSIGHTS,
        "When waiting jobs are expected to start, and how right that was.",
    ),
    Place(
        "Timeline",
        "cluster-timeline",
        "activity",
        "/insights/timeline/",
        INSIGHTS,
        "What happened in the cluster, on one axis: states, quotas, evictions, nodes, policy.",
    ),
    Place(
        "Statements",
        "statement",
        "policy",
        "/insights/usage/statement/",
        INSIGHTS,
        "What a queue used and cost in a month.",
    ),
    Place(
        "Prices",
        "prices",
        "half",
        "/insights/usage/prices/",
        INSIGHTS,
        "What a resource costs for an hour.",
    ),
    Place("Activity", "activity", "activity", "/activity/"),
    Place("Policy", "policy", "policy", "/policy/"),
    Place("Users", "users", "user", "/users/"),
)
FOR_ADMINS = ("users",)
FOR_VIEWERS = (
    INSIGHTS,
    "statement",
    "prices",
    "forecasts",
    "loans",
    "usage",
    "cluster-timeline",
    "fairness",
    "nodes",
    "sessions",
    "comparison",
    "change-sets",
)  # users with no role at all are told to ask for one
BESIDE_ANOTHER = ("comparison",)  # only where another scheduler decides
ALSO = {"activity": ("/audit/",)}  # other addresses that belong to an entry


def console(request: HttpRequest) -> dict[str, Any]:
    preference = _preference_of_reader(request)
    theme = request.COOKIES.get(THEME_COOKIE) or preference.theme
    if theme not in THEMES:
        theme = "system"
    return {
        "theme": theme,
        "time_zone": preference.time_zone,
        "as_of": getattr(request, "as_of", ""),
        "json_url": json_address(request),
        "places": _navigation(request),
        # Functions: only pages that show them ask the database.
        "cluster_name": cluster_name,
        "unread_notices": lambda: _unread_notices(request),
        "cluster_mode": lambda: _mode_of_cluster(request),
        "site_notices": lambda: notices_for(access(request).visible, site_notices()),
    }


def _unread_notices(request: HttpRequest) -> int:
    if not _is_signed_in(request):
        return 0
    return count_unread(request.user, access(request))


def _mode_of_cluster(request: HttpRequest) -> dict[str, str] | None:
    """A badge beside the name of a real cluster; nothing for the simulated one."""
    if not is_kubernetes():
        return None
    if is_shadow():
        return _WATCHING
    sees_all = _is_signed_in(request) and access(request).visible is None
    return _scheduling(taken_over(), sees_all=sees_all)


def _scheduling(ours: TakenOver, *, sees_all: bool) -> dict[str, str]:
    """Beside another scheduler it says how much is taken over. Who sees all queues reads what."""
    names = ", ".join(conf().kubernetes.scheduler_names)
    title = f"Sessions place the pods of this cluster whose schedulerName is {names}."
    serves_all = REPLACED_NAME in conf().kubernetes.scheduler_names
    if not ours or serves_all:
        return {"words": "Kubernetes · scheduling", "title": title}
    parts = []
    for noun, taken in (("namespace", ours.namespaces), ("queue", ours.queues)):
        if taken:
            parts.append(counted(len(taken), noun))
    if sees_all:
        title += f" New work of {ours.in_words()} is given to Fumarole."
    return {"words": f"Kubernetes · scheduling {', '.join(parts)}", "title": title}


_WATCHING = {
    "words": "Kubernetes · watching",
    "title": (
        "This console watches a Kubernetes cluster. Another scheduler places its pods; "
        "reasons and figures are what this one finds."
    ),
}


def _is_signed_in(request: HttpRequest) -> bool:
    user = getattr(request, "user", None)
    return user is not None and user.is_authenticated


def _preference_of_reader(request: HttpRequest) -> Preference:
    if not _is_signed_in(request):
        return Preference()
    return preference_of(request.user)


def _navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The entries, those of a group as `below` of the entry that leads to their page."""
    entries: list[dict[str, Any]] = []
    groups: dict[str, list[dict[str, Any]]] = {}
    for place in open_places(request):
        url = _address_of(place)
        if not url:
            continue
        below = groups.setdefault(place.url_name, [])
        here = _is_here(place, url, request.path)
        entry: dict[str, Any] = {"title": place.title, "url": url, "icon": place.icon, "here": here}
        entry |= {"about": place.about, "below": below}
        groups.get(place.group, entries).append(entry)
    for below in groups.values():
        _keep_the_nearest(below)
    for entry in entries:
        is_below = any(inner["here"] for inner in entry["below"])
        entry["current"] = "true" if is_below else "page"
    return entries


def _keep_the_nearest(entries: list[dict[str, Any]]) -> None:
    """Of addresses that begin alike, one is where the reader is: the longest."""
    here = [entry for entry in entries if entry["here"]]
    nearest = max(here, key=lambda entry: len(entry["url"]), default=None)
    for entry in here:
        entry["here"] = entry is nearest


def open_places(request: HttpRequest) -> list[Place]:
    """Without those that the reader could not open."""
    mine = None
    if _is_signed_in(request):
        mine = access(request)
    closed: tuple[str, ...] = ()
    if mine is None or not mine.may_anywhere(Permission.ADMINISTER):
        closed += FOR_ADMINS
    if mine is None or not mine.may_anywhere(Permission.VIEW):
        closed += FOR_VIEWERS
    if not is_shadow():
        closed += BESIDE_ANOTHER
    return [place for place in PLACES if place.url_name not in closed]


def _address_of(place: Place) -> str:
    try:
        return reverse(place.url_name)
    except NoReverseMatch:
        return ""


def _is_here(place: Place, url: str, path: str) -> bool:
    if place.prefix == "/":
        return path == url
    return path.startswith((place.prefix, *ALSO.get(place.url_name, ())))
