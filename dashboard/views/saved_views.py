"""/jobs/-/views/: views of the table of jobs that users keep, for themselves or for everybody."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard.forms.view_counts import count_of_view
from dashboard.http.access import access, page
from dashboard.views.common import actor, next_url
from scheduler.admission.violations import Rejected, in_words
from scheduler.models import SavedView
from scheduler.selectors.accounts.preferences import preference_of, views_for
from scheduler.services.accounts.preferences import delete_view, pin_view, save_view

Context = dict[str, Any]


def view_links(request: HttpRequest) -> list[Context]:
    """The kept views that this user may open."""
    columns = ",".join(request.GET.getlist("cols"))
    here = _query_string(request.GET.get("q", ""), columns, request.GET.get("sort", ""))
    pinned = preference_of(request.user).pinned_views
    links: list[Context] = []
    for view in views_for(request.user, access(request)).filter(page="jobs"):
        link = _view_link(request, view, here)
        links.append({**link, "pinned": view.pk in pinned})
    return links


def _view_link(request: HttpRequest, view: SavedView, here: str) -> Context:
    return {
        "id": view.pk,
        "name": view.name,
        "url": f"{reverse('jobs')}?{view.query}",
        "own": view.owner_id == request.user.pk,
        "owner": view.owner.get_username(),
        "shared": view.shared,
        "here": view.query == here,
    }


def _query_string(query: str, columns: str, sort: str) -> str:
    given = {"q": query, "cols": columns, "sort": sort}
    return urlencode({name: value for name, value in given.items() if value})


@require_POST
@page
def keep_view(request: HttpRequest) -> HttpResponse:
    given = request.POST
    query = _query_string(given.get("q", ""), given.get("cols", ""), given.get("sort", ""))
    try:
        view = save_view(
            request.user,
            "jobs",
            given.get("name", ""),
            query,
            shared=given.get("shared") == "1",
            by=actor(request),
        )
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
    else:
        everybody = ""
        if view.shared:
            everybody = ", and everybody can use it"
        messages.success(request, f"The view “{view.name}” is kept{everybody}.")
    return HttpResponseRedirect(f"{reverse('jobs')}?{query}")


@require_POST
@page
def pin(request: HttpRequest, view: int) -> HttpResponse:
    """As a tile of the overview, or no longer."""
    is_pinned = request.POST.get("pinned") == "1"
    if not views_for(request.user, access(request)).filter(pk=view).exists():
        messages.error(request, "There is no such view.")
        return redirect("jobs")
    try:
        pin_view(request.user, view, access(request), is_pinned=is_pinned)
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
    else:
        words = "The view is not on the overview any more."
        if is_pinned:
            words = "The view is a tile of your overview."
        messages.success(request, words)
    return HttpResponseRedirect(next_url(request, reverse("jobs")))


def view_tiles(request: HttpRequest) -> list[Context]:
    """The pinned views with what they find now, as far as they may be opened."""
    numbers = preference_of(request.user).pinned_views
    views = views_for(request.user, access(request)).filter(page="jobs", pk__in=numbers)
    tiles = []
    for view in sorted(views, key=lambda view: numbers.index(view.pk)):
        found = count_of_view(view, request.user.get_username(), access(request))
        tile = {
            "id": view.pk,
            "name": view.name,
            "url": f"{reverse('jobs')}?{view.query}",
            "count": found.words,
            "oldest": found.oldest,
            "owner": "" if view.owner_id == request.user.pk else view.owner.get_username(),
        }
        tiles.append(tile)
    return tiles


@require_POST
@page
def forget_view(request: HttpRequest, view: int) -> HttpResponse:
    if delete_view(request.user, view, by=actor(request)):
        messages.success(request, "The view is deleted.")
    else:
        messages.error(request, "There is no such view of yours.")
    return redirect("jobs")
