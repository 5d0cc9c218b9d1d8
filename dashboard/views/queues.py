"""/queues/: all queues as a tree, as a flat table that can be sorted, or as a map of shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_POST, require_safe

from dashboard.forms.queue_query import (
    FIELDS,
    QUALITIES,
    STATES,
    TEXTS,
    Search,
    matching,
    read_search,
    with_ancestors,
)
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, may_create_below, page, require_view
from dashboard.present.amounts import resource_choices, short_name, with_unit
from dashboard.present.folding import (
    ALL_LEVELS,
    Folding,
    collapsed_level,
    fitting_levels,
    offered_levels,
)
from dashboard.present.queue_comparison import MOST
from dashboard.present.queue_page import chosen_resource, columns
from dashboard.present.queue_sorting import is_sortable, sorted_rows, sorted_tree
from dashboard.present.queues import page_resources, present_queues
from dashboard.present.row_html import TableOptions, below_folds, blank_queue_row, queue_table_rows
from dashboard.present.share_map import icicle
from dashboard.views.common import actor, next_url, status_for
from dashboard.views.queue_commands import PROGRESS
from scheduler.admission.rules.queue_deletion import PROTECTED
from scheduler.admission.violations import Rejected, in_words
from scheduler.domain.access import Permission
from scheduler.domain.queues import ROOT
from scheduler.selectors.accounts.preferences import preference_of
from scheduler.selectors.queues.changes import queues_changed_since
from scheduler.selectors.queues.listing import QueueBoard, queue_rows
from scheduler.services.accounts.preferences import pin_queue, set_folding
from scheduler.services.cluster.mirrored import how_to_change, may_be_changed_here
from scheduler.services.demo.sample import load_sample_tree

_ROWS = mark_safe("<!-- rows -->")
_LONG_NAME = 24  # characters that the column of names takes in one line
VIEWS = {"tree": "Tree", "table": "Table", "map": "Map"}
CHANGED_SPANS: Final = {"15m": 900, "1h": 3600, "24h": 86_400}
Row = Mapping[str, Any]


@require_safe
@page
def queues(request: HttpRequest) -> HttpResponse:
    board = queue_rows()
    resources = page_resources(board)
    chosen = chosen_resource(request.GET.get("resource", ""), resources)
    view = request.GET.get("view", "tree")
    if view not in VIEWS:
        view = "tree"
    context = {
        "view": view,
        "views": VIEWS,
        "verbs": PROGRESS,
        "how_to_change": how_to_change("Queue"),
        "query": request.GET.get("q", ""),
        "resources": resource_choices(resources),
        "resource": chosen,
        "shows_all": request.GET.get("resource") == "all",
        "scale": request.GET.get("scale", "limit"),
        "may_create": _may_create(request),
    }
    if view == "map":
        visible = board.visible_to(access(request).visible)
        context |= _map_context(visible, chosen or next(iter(resources), ""))
        return render(request, "queues/map.html", context)
    context |= _table_context(request, board, view, resources, chosen)
    return _render_table(request, context)


def _may_create(request: HttpRequest) -> bool:
    if not may_be_changed_here("Queue"):
        return False
    return access(request).may_anywhere(Permission.ADMINISTER)


def _render_table(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """The page with a mark where the rows go in at the end.

    A template would copy megabytes from block to block.
    """
    rows = context["rows"]
    page = render_to_string("queues/tree.html", {**context, "rows": _ROWS}, request)
    head, _, tail = page.partition(_ROWS)
    parts = (head.encode(), rows.encode(), tail.encode())
    return HttpResponse(b"".join(parts), status=status_for(context["problems"]))


def _map_context(board: QueueBoard, resource: str) -> dict[str, Any]:
    drawn = ""
    if resource:
        drawn = icicle(board, resource)
    return {
        "map": drawn,
        "resource": resource,
        "title": short_name(resource),
        "count": len(board.rows),
    }


def _table_context(
    request: HttpRequest,
    board: QueueBoard,
    view: str | None,
    resources: list[str],
    chosen: str,
) -> dict[str, Any]:
    """In a tree the rows that are shown now. The live connection gives the script the others.

    Where somebody chose the order, the script could not put them in it, so they are all here.
    """
    seen = access(request).visible
    presented = present_queues(board)
    rows: list[Row] = list(presented.values())
    if seen is not None:
        rows = [row for name, row in presented.items() if name in seen]
    shown = columns(request.GET.get("resource", ""), resources)
    search = read_search(request.GET.get("q", ""), [row["name"] for row in rows])
    found = matching(rows, search)
    changed = _changed_lately(request, rows)
    if changed.names is not None:
        rows = [row for row in rows if row["name"] in changed.shown]
        found &= changed.names
    sort = request.GET.get("sort", "name")
    if not is_sortable(sort, resources):
        sort = "name"
    folding = Folding(ALL_LEVELS)
    if view == "tree":
        folding = _folding(request, rows)
    folded = folding.folded_rows(rows)
    hidden = _hidden(rows, search, found, folded, is_tree=view == "tree")
    options = TableOptions(
        resources=shown,
        selectable=access(request).may_anywhere(Permission.OPERATE),
        detailed=bool(chosen),
        absolute=request.GET.get("scale") == "absolute",
    )
    ordered = _in_order(board, rows, view, sort)
    if view == "tree" and sort == "name":
        ordered = [row for row in ordered if row["name"] not in hidden]
    text_words = []
    for field in TEXTS:
        text_words.append(FIELDS[field].split(", ", 1))
    return {
        "columns": [{"resource": name, "title": short_name(name)} for name in shown],
        "rows": queue_table_rows(ordered, options, folded, hidden),
        "blank": blank_queue_row(options),
        "selectable": options.selectable,
        "count": len(rows),
        "found": len(found),
        "problems": search.problems,
        "words": QUALITIES,
        "text_words": text_words,
        "known": {
            "is": list(QUALITIES),
            "state": list(STATES),
            "texts": list(TEXTS),
            "fields": FIELDS,
        },
        "folding": folding,
        "levels": offered_levels(rows),
        "collapsed": collapsed_level(rows),
        "has_long_names": any(len(row["name"]) > _LONG_NAME for row in rows),
        "has_branches": any(not row["leaf"] for row in rows),
        "may_begin": may_create_below(request, ROOT),
        "is_empty": {row["name"] for row in rows} <= set(PROTECTED),
        "holds": _holdings(board, resources),
        "sort": sort,
        **_pinned_context(request, presented, options),
        "changed": changed,
        "spans": CHANGED_SPANS,
    }


def _in_order(board: QueueBoard, rows: list[Row], view: str | None, sort: str) -> list[Row]:
    if view == "table":
        return sorted_rows(board, rows, sort)
    if sort != "name":
        return sorted_tree(board, rows, sort)
    return rows


def _holdings(board: QueueBoard, resources: list[str]) -> str:
    held = [name for name in resources if name in board.total]
    return ", ".join(with_unit(name, board.total[name]) for name in held)


@dataclass(frozen=True, slots=True)
class ChangedLately:
    """`span` is "" where everything is shown. `shown` are those that changed and what is above."""

    span: str = ""
    names: frozenset[str] | None = None
    shown: frozenset[str] = frozenset()


def _changed_lately(request: HttpRequest, rows: list[Row]) -> ChangedLately:
    span = request.GET.get("changed", "")
    if span not in CHANGED_SPANS:
        return ChangedLately()
    since = timezone.now() - timedelta(seconds=CHANGED_SPANS[span])
    changed = queues_changed_since(since)
    names = frozenset(row["name"] for row in rows if row["name"] in changed)
    return ChangedLately(span, names, frozenset(with_ancestors(rows, set(names))))


def _pinned_context(
    request: HttpRequest, presented: Mapping[str, Row], options: TableOptions
) -> dict[str, Any]:
    """The queues that this reader keeps on top, as far as they may be seen."""
    seen = access(request).visible
    rows = []
    for name in preference_of(request.user).pinned_queues:
        if name in presented and (seen is None or name in seen):
            rows.append({**presented[name], "leaf": True, "depth": 0})
    names = [row["name"] for row in rows]
    compared = urlencode({"q": names[:MOST]}, doseq=True)
    return {
        "pinned": names,
        "compare_url": f"{reverse('queue-compare')}?{compared}",
        "pinned_rows": queue_table_rows(rows, replace(options, selectable=False)),
    }


def _hidden(
    rows: list[Row],
    search: Search,
    found: set[str],
    folded: set[str],
    *,
    is_tree: bool,
) -> set[str]:
    """What a search does not find, except for ancestors in a tree; else what folds hide."""
    if not search.terms and not search.problems:
        return below_folds(rows, folded)
    kept = found
    if is_tree:
        kept = with_ancestors(rows, found)
    return {row["name"] for row in rows} - kept


def _folding(request: HttpRequest, rows: list[Row]) -> Folding:
    """As the address says, ?levels=2; else as this reader left it; else as much as fits."""
    asked = whole_number(request.GET.get("levels", ""))
    if asked is not None:
        return Folding(max(ALL_LEVELS, asked))
    kept = preference_of(request.user)
    if kept.tree_levels is None:
        levels = fitting_levels(rows)
    else:
        levels = kept.tree_levels
    return Folding(levels, frozenset(kept.folded), frozenset(kept.unfolded))


@require_POST
@page
def sample(request: HttpRequest) -> HttpResponse:
    """The sample tree, for a cluster that has no queues of its own yet."""
    access(request).require(Permission.ADMINISTER, ROOT, "create queues below it")
    try:
        made = load_sample_tree(by=actor(request))
    except Rejected as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"{len(made)} queues were created: {', '.join(made)}.")
    return HttpResponseRedirect(reverse("queues"))


@require_POST
@page
def folded(request: HttpRequest) -> HttpResponse:
    """How far this reader has opened the tree: it stays so, in every browser."""
    posted = request.POST
    set_folding(
        request.user,
        folded=posted.getlist("queue"),
        unfolded=posted.getlist("unfolded"),
        levels=whole_number(posted.get("levels", "")),
    )
    return HttpResponse(status=204)


@require_POST
@page
def pinned(request: HttpRequest) -> HttpResponse:
    """Keep a queue on top of this reader's list, or let it go from there."""
    name = request.POST.get("queue", "")
    require_view(request, name)
    is_pinned = request.POST.get("pinned") == "1"
    try:
        pin_queue(request.user, name, is_pinned=is_pinned)
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
    return HttpResponseRedirect(next_url(request, reverse("queues")))


@require_safe
@page
def live_rows(request: HttpRequest) -> HttpResponse:
    """For a tree whose live connection is not there yet: the rows that it will bring."""
    seen = access(request).visible
    rows = []
    for name, row in present_queues(queue_rows()).items():
        if seen is None or name in seen:
            rows.append(row)
    return JsonResponse({"rows": rows})


@require_safe
@page
def names(request: HttpRequest) -> HttpResponse:
    """For the palette: the names of all queues that the reader may see."""
    mine = access(request)
    queues = []
    for row in queue_rows().visible_to(mine.visible).rows:
        queues.append(row.name)
    return JsonResponse({"queues": queues, "mayCreate": _may_create(request)})
