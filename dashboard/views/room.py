"""/nodes/-/room/: the largest gang that would start now. /nodes/NAME/waiting/: which waiting gangs
could start on a node, and what keeps them.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.forms.choices import UnknownWord, checked_word, refusal_of
from dashboard.http.access import access, page, require_view
from dashboard.present.amounts import resource_choices
from dashboard.present.queue_page import chosen_resource
from dashboard.present.room import (
    BadShape,
    first_resource,
    fit_counts,
    present_largest,
    present_spread,
    read_shape,
    resources_of,
    spreads,
    usual_shapes,
    waiting_rows,
)
from dashboard.views.common import actor
from dashboard.views.nodes import no_such_node, require_sight
from scheduler.domain.node_fit import Fit
from scheduler.selectors.cluster.nodes import node_rows
from scheduler.services.cluster.room import largest_gangs, waiting_at

_LONGEST_SHAPE = 400
_LAST_START = 10**6


@require_safe
@page
def room(request: HttpRequest) -> HttpResponse:
    require_sight(request)
    queue = request.GET.get("queue", "").strip()[:253]
    if queue:
        require_view(request, queue)
    rows = node_rows()
    resources = resources_of(rows)
    resource = _resource(request, resources)
    shape = request.GET.get("shape", "").strip()[:_LONGEST_SHAPE]
    shapes = usual_shapes(resource) if resource else []
    if shape:
        try:
            shapes = [read_shape(shape, resources), *shapes]
        except BadShape as problem:
            raise UnknownWord(str(problem)) from None
    found = largest_gangs(shapes, queue, by=actor(request))
    context = {
        "queue": queue,
        "shape": shape,
        "resource": resource,
        "resources": resource_choices(resources),
        "gangs": [present_largest(one, queue) for one in found],
        "free_room": [present_spread(one) for one in spreads(rows)],
    }
    return render(request, "cluster/room.html", context)


def _resource(request: HttpRequest, resources: list[str]) -> str:
    wanted = request.GET.get("resource", "").strip()
    chosen = chosen_resource(wanted, resources)
    if wanted and not chosen:
        raise UnknownWord(refusal_of("resource", wanted, resources))
    return chosen or first_resource(resources)


@require_safe
@page
def node_waiting(request: HttpRequest, name: str) -> HttpResponse:
    require_sight(request)
    wanted = checked_word(request.GET, "fit", [fit.value for fit in Fit])
    found = waiting_at(
        name,
        access(request).visible,
        fit=Fit(wanted) if wanted else None,
        start=_start(request),
    )
    if found is None:
        return no_such_node(request, name)
    counts = fit_counts(found)
    context: dict[str, Any] = {
        "name": name,
        "rows": waiting_rows(found),
        "counts": counts,
        "fit": wanted,
        "waiting": sum(one["gangs"] for one in counts),
        "fitting": sum(one["gangs"] for one in counts if one["fit"] in (Fit.KEPT, Fit.FITS)),
        "found": found,
        "first": found.start + 1,
        "last": found.start + len(found.rows),
    }
    return render(request, "cluster/node_waiting.html", context)


def _start(request: HttpRequest) -> int:
    """Raises `UnknownWord` for what is no number."""
    text = request.GET.get("start", "").strip() or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 8 and int(text) <= _LAST_START):
        raise UnknownWord(f"start is “{text[:20]}”; it must be a number from 0 on.")
    return int(text)
