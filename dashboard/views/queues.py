"""/queues/: all queues as a tree, as a flat table that can be sorted, or as a map of shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from dashboard.access import access, may_create_below, page
from dashboard.amounts import short_name
from dashboard.fragments import blank_queue_row, queue_table_rows
from dashboard.icicle import icicle
from dashboard.presenters import page_resources, present_queues
from dashboard.views.queue_commands import PROGRESS
from scheduler.domain.access import Permission
from scheduler.selectors.queues import QueueBoard, queue_rows

_ROWS = mark_safe("<!-- rows -->")
VIEWS = {"tree": "Tree", "table": "Table", "map": "Map"}
Row = Mapping[str, Any]


@require_safe
@page
def queues(request: HttpRequest) -> HttpResponse:
    board = queue_rows()
    resources = page_resources(board)
    chosen = _chosen(request.GET.get("resource", ""), resources)
    view = request.GET.get("view") if request.GET.get("view") in VIEWS else "tree"
    context = {
        "view": view,
        "views": VIEWS,
        "verbs": PROGRESS,
        "query": request.GET.get("q", ""),
        "resources": [{"name": name, "title": short_name(name)} for name in resources],
        "resource": chosen,
        "may_create": may_create_below(request, "root"),
        **(
            _map(board.visible_to(access(request).visible), chosen or (resources[0] if resources else ""))
            if view == "map"
            else _table(request, board, view, resources, chosen)
        ),
    }
    return render(request, "queues/map.html", context) if view == "map" else _render_table(request, context)


def _render_table(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """The page around a mark, and the rows put in its place at the end: a template would copy megabytes from block to block."""
    rows = context["rows"]
    page = render_to_string("queues/tree.html", context | {"rows": _ROWS if rows else ""}, request)
    head, _, tail = page.partition(_ROWS)
    return HttpResponse(b"".join((head.encode(), rows.encode(), tail.encode())))


def _chosen(wanted: str, resources: list[str]) -> str:
    """By its name or by what people call it: ?resource=gpu."""
    return next((name for name in resources if wanted and wanted.lower() in (name.lower(), short_name(name).lower())), "")


def _map(board: QueueBoard, resource: str) -> dict[str, Any]:
    return {
        "map": icicle(board, resource) if resource else "",
        "resource": resource,
        "title": short_name(resource),
        "count": len(board.rows),
    }


def _table(request: HttpRequest, board: QueueBoard, view: str | None, resources: list[str], chosen: str) -> dict[str, Any]:
    seen = access(request).visible
    rows: list[Row] = [row for name, row in present_queues(board).items() if seen is None or name in seen]
    shown = [chosen] if chosen else resources
    wanted = matching(rows, request.GET.get("q", ""), keep_ancestors=view == "tree")
    if view == "table":
        wanted = sorted_rows(board, wanted, request.GET.get("sort", "name"), shown)
    selectable = access(request).may_anywhere(Permission.OPERATE)
    return {
        "columns": [{"resource": name, "title": short_name(name)} for name in shown],
        "rows": queue_table_rows(wanted, shown, selectable=selectable, detailed=bool(chosen)),
        "blank": blank_queue_row(shown, selectable=selectable, detailed=bool(chosen)),
        "count": len(rows),
        "found": len(wanted),
        "sort": request.GET.get("sort", "name"),
    }


def matching(rows: list[Row], query: str, *, keep_ancestors: bool) -> list[Row]:
    """Rows whose name contains every word; `state:closed` looks at the state. In a tree what leads to them stays too."""
    words = query.lower().split()
    if not words:
        return rows
    names = {row["name"] for row in rows if all(_matches(row, word) for word in words)}
    if keep_ancestors:
        parents = {row["name"]: row["parent"] for row in rows}
        for name in list(names):
            while (name := parents.get(name, "")) and name not in names:
                names.add(name)
    return [row for row in rows if row["name"] in names]


def _matches(row: Row, word: str) -> bool:
    field, colon, value = word.partition(":")
    if colon and field == "state":
        return str(row["state"]).lower().startswith(value)
    return word in str(row["name"]).lower()


def sorted_rows(board: QueueBoard, rows: list[Row], wanted: str, resources: list[str]) -> list[Row]:
    """By name, state, weight, running, waiting, or by what is allocated of a resource; a minus turns it round."""
    field, descending = wanted.removeprefix("-"), wanted.startswith("-")
    figures = {row.name: row.figures for row in board.rows}
    keys: dict[str, Callable[[Row], Any]] = {
        "name": lambda row: row["name"],
        "state": lambda row: (row["state"], row["name"]),
        "weight": lambda row: row["weight"],
        "running": lambda row: row["subtree"]["running"],
        "waiting": lambda row: row["subtree"]["pending"] + row["subtree"]["inqueue"],
    }
    if field in resources:
        return sorted(rows, key=lambda row: figure.allocated.amount(field) if (figure := figures[row["name"]]) else -1, reverse=descending)
    return sorted(rows, key=keys.get(field, keys["name"]), reverse=descending)


@require_safe
@page
def names(request: HttpRequest) -> HttpResponse:
    """For the palette: the names of all queues that the reader may see."""
    return JsonResponse({"queues": [row.name for row in queue_rows().visible_to(access(request).visible).rows]})
