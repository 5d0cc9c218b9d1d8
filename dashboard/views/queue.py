"""/queues/NAME/ and its tabs: what it has, what waits in it and why, what happened to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.forms.choices import checked_word
from dashboard.forms.job import TAKES_JOBS
from dashboard.http.access import (
    access,
    has_edit_role,
    may_create_below,
    may_edit,
    may_operate,
    may_submit_to,
    no_such_queue,
    page,
    require_view,
)
from dashboard.http.exports import as_csv, streamed
from dashboard.http.visibility import Visibility
from dashboard.present.amounts import resource_choices, short_name
from dashboard.present.charts import HISTORY_COLUMNS, chart, table
from dashboard.present.limits import limit_lines, namespace_lines
from dashboard.present.object_yaml import object_document
from dashboard.present.queue_page import (
    chosen_resource,
    columns,
    division,
    idle_words,
    resource_lines,
)
from dashboard.present.queues import page_resources, page_texts, present_queues
from dashboard.present.row_html import TableOptions, blank_queue_row, queue_table_rows
from scheduler.admission.reading.queue import queue_manifest
from scheduler.domain.access import Permission
from scheduler.models import ClusterState, PlannedDeletion, Queue
from scheduler.selectors.accounts.access import effective_grants, whom_to_ask
from scheduler.selectors.change_sets.windows import open_window_over
from scheduler.selectors.jobs.listing import REASON_CODES
from scheduler.selectors.queues.backlogs import (
    limits_now,
    limits_on_the_way,
    namespaces_with_default,
)
from scheduler.selectors.queues.facts import spec_of
from scheduler.selectors.queues.listing import QueueBoard, QueueRow, queue_rows
from scheduler.selectors.queues.page import (
    command_obstacles,
    gang_rows,
    last_command,
    min_run_time,
    queue_activity,
    waiting_by_reason,
    waits,
)
from scheduler.selectors.records.history import SPANS, UnknownSpan, queue_history
from scheduler.services.cluster.mirrored import how_to_change
from scheduler.services.sessions.policies import min_run_seconds

Context = dict[str, Any]
TABS = {
    "jobs": "Jobs",
    "children": "Children",
    "history": "History",
    "activity": "Activity",
    "access": "Access",
    "yaml": "YAML",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """What each tab may need: who asks, the queue with all below it, and the whole tree."""

    request: HttpRequest
    name: str
    below: list[str]
    board: QueueBoard
    rows: Mapping[str, Context]


@require_safe
@page
def queue(request: HttpRequest, name: str, tab: str = "") -> HttpResponse:
    board = queue_rows()
    rows = present_queues(board)
    if name not in rows:
        return no_such_queue(request, name)
    require_view(request, name)
    below = _below(board, name)
    if not tab:
        tab = _first_tab(below)
    context = _header(request, board, rows, name)
    context |= _now(name, below)
    context |= {"tab": tab, "tabs": _tabs(request, name, rows[name])}
    context |= TAB_CONTEXT[tab](Scene(request, name, below, board, rows))
    return render(request, "queues/queue.html", context)


def _first_tab(below: list[str]) -> str:
    if len(below) > 1:
        return "children"
    return "jobs"


def _below(board: QueueBoard, name: str) -> list[str]:
    """The queue and all below it, in the order of the tree."""
    inside = {name}
    for row in board.rows:
        if row.parent in inside:
            inside.add(row.name)
    names_below: list[str] = []
    for row in board.rows:
        if row.name in inside:
            names_below.append(row.name)
    return names_below


def _tabs(request: HttpRequest, name: str, row: Context) -> list[Context]:
    """The chosen resource goes with the reader from tab to tab."""
    kept = request.GET.get("resource", "")
    query = ""
    if kept:
        query = f"?{urlencode({'resource': kept})}"
    keys = list(TABS)
    if not row["leaf"]:
        keys.remove("children")
        keys.insert(0, "children")
    tabs = []
    for key in keys:
        url = reverse("queue-tab", args=[name, key]) + query
        tabs.append({"key": key, "title": TABS[key], "url": url})
    return tabs


def _header(
    request: HttpRequest,
    board: QueueBoard,
    rows: Mapping[str, Context],
    name: str,
) -> Context:
    row = rows[name]
    mine = access(request)
    stored = Queue.objects.get(name=name)
    resource = chosen_resource(request.GET.get("resource", ""), page_resources(board))
    source = row["closedBy"] or row["suspendedBy"] or name
    last = None
    if row["state"] != "Open":
        last = last_command(source)
    path = _path(rows, name)
    obstacles = {}
    for command, why in command_obstacles(name).items():
        obstacles[command.verb] = why
    invalid = []
    for each in stored.conditions:
        if each.get("type") == "HierarchyInvalid":
            invalid.append(each)
    return {
        "row": row,
        "queue": stored,
        "texts": page_texts(stored),
        "min_run": _min_run_words(name, path),
        "limits": limit_lines(
            name, limits_now(name, request.user.get_username()), Visibility(mine.visible)
        ),
        "path": [(above, mine.may(Permission.VIEW, above)) for above in path],
        **resource_lines(board, row, resource, mine.visible),
        "obstacles": obstacles,
        "source": source,
        "last": last,
        "held_by": _held_by(request, name, path),
        "invalid": invalid,
        "deletion": PlannedDeletion.objects.filter(queue=stored).first(),
        "how_to_change": how_to_change("Queue", name),
        "may_operate": may_operate(request, name),
        "may_edit": may_edit(request, name),
        "may_create": may_create_below(request, name),
        "may_submit": may_submit_to(request, name),
        "may_grant": has_edit_role(request, name),
        "takes_jobs": row["leaf"] and row["state"] in TAKES_JOBS,
        "whom": whom_to_ask(name),
        "is_cluster_admin": mine.is_cluster_admin,
    }


def _held_by(request: HttpRequest, name: str, path: list[str]) -> Context | None:
    """The safe window over it. Whoever may not see its queue is not told whose it is."""
    window = open_window_over(name, path)
    if window is None:
        return None
    return {"window": window, "is_seen": access(request).may(Permission.VIEW, window.queue)}


def _path(rows: Mapping[str, Context], name: str) -> list[str]:
    """The queues above it, the root first."""
    path: list[str] = []
    above = rows[name]["parent"]
    while above in rows and above not in path:
        path.insert(0, above)
        above = rows[above]["parent"]
    return path


def _min_run_words(name: str, path: list[str]) -> str:
    """ "minimum running time 120 s, inherited from team"; nothing where there is none."""
    state = ClusterState.objects.select_related("policy").get(pk=1)
    found = min_run_time([name, *reversed(path)], min_run_seconds(state))
    words = f"minimum running time {found.seconds} s"
    if found.named_by == name:
        return words
    if found.named_by:
        return f"{words}, inherited from {found.named_by}"
    if found.seconds:
        return f"{words}, as the policy says"
    return ""


def _now(name: str, below: list[str]) -> Context:
    return {
        "waits": waits(below),
        "reasons": waiting_by_reason(below),
        "is_parent": len(below) > 1 or name == "root",
    }


def _jobs(scene: Scene) -> Context:
    reason = checked_word(scene.request.GET, "reason", REASON_CODES)
    return {
        "gangs": gang_rows(scene.below, reason),
        "reason": reason,
        "idle": idle_words(scene.board, scene.name, access(scene.request).visible),
    }


def _children(scene: Scene) -> Context:
    children = []
    for row in scene.rows.values():
        if row["parent"] == scene.name:
            children.append(row)
    resources = page_resources(scene.board)
    asked = scene.request.GET.get("resource", "")
    shown = columns(asked, resources)
    chosen = chosen_resource(asked, resources)
    scale = scene.request.GET.get("scale", "limit")
    options = TableOptions(shown, detailed=bool(chosen), absolute=scale == "absolute")
    flat = [{**row, "depth": 0} for row in children]
    divisions = []
    for resource in shown:
        divisions.append(division(scene.board, scene.name, resource))
    return {
        "children": queue_table_rows(flat, options),
        "child_count": len(children),
        "columns": [{"resource": resource, "title": short_name(resource)} for resource in shown],
        "blank": blank_queue_row(options),
        "scale": scale,
        "divisions": divisions,
    }


def _history(scene: Scene) -> Context:
    period = scene.request.GET.get("period", "")
    if period not in SPANS:
        period = "1h"
    resources = page_resources(scene.board)
    drawn = chosen_resource(scene.request.GET.get("resource", ""), resources)
    if not drawn:
        drawn = _worth_drawing(scene, resources, period)
    return {
        "period": period,
        "periods": list(SPANS),
        "chart_resource": drawn,
        "chart_title": short_name(drawn),
        "chart_resources": resource_choices(resources),
    }


def _worth_drawing(scene: Scene, resources: list[str], period: str) -> str:
    """The first resource that the queue uses or waits for now.

    Else one that it had in this period, or that its quotas name.
    """
    row = scene.board.row(scene.name)
    series = queue_history(scene.name, period).series
    in_use = [name for name in resources if _is_in_use(row, name)]
    in_period = []
    for name in resources:
        if _had_any(series.get(name, {})):
            in_period.append(name)
    quotas = {*row.deserved, *row.guarantee, *row.capability}
    in_quotas = [name for name in resources if name in quotas]
    return next(iter([*in_use, *in_period, *in_quotas, *resources]), "")


def _is_in_use(row: QueueRow, resource: str) -> bool:
    now = row.figures
    if not now:
        return False
    amounts = (now.allocated, now.promised, now.asked)
    return any(amount.amount(resource) for amount in amounts)


def _had_any(series: Mapping[str, list[int | None]]) -> bool:
    return any(series.get("allocated", ())) or any(series.get("pending", ()))


def _activity(scene: Scene) -> Context:
    return {"entries": queue_activity([scene.name])}


def _yaml(scene: Scene) -> Context:
    stored = Queue.objects.select_related("parent").get(name=scene.name)
    manifest = queue_manifest(spec_of(stored))
    document = object_document("Queue", scene.name, stored=manifest, with_values=True)
    return {"documents": [document]}


def _access(scene: Scene) -> Context:
    mine = access(scene.request)
    grants = []
    for grant, inherited in effective_grants(scene.name):
        is_visible = mine.may(Permission.VIEW, grant.queue.name)
        grants.append((grant, inherited, is_visible))
    path = limits_on_the_way([scene.name]).get(scene.name, ())
    return {
        "grants": grants,
        "granted_namespaces": namespace_lines(scene.name, path),
        "default_of": namespaces_with_default(scene.name),
    }


TAB_CONTEXT: dict[str, Callable[[Scene], Context]] = {
    "jobs": _jobs,
    "children": _children,
    "history": _history,
    "activity": _activity,
    "access": _access,
    "yaml": _yaml,
}


@require_safe
@page
def history_data(request: HttpRequest, name: str) -> HttpResponse:
    """The points of one chart: /queues/NAME/history.json?resource=cpu&period=1h"""
    require_view(request, name)
    try:
        history = queue_history(name, request.GET.get("period", "1h"))
    except UnknownSpan as problem:
        return JsonResponse({"detail": str(problem)}, status=400)
    return JsonResponse(chart(history, request.GET.get("resource", "cpu")))


@require_safe
@page
def history_csv(request: HttpRequest, name: str) -> HttpResponseBase:
    """The same for a spreadsheet, of one resource or all.

    /queues/NAME/history.csv?resource=cpu&period=1h
    """
    require_view(request, name)
    if not Queue.objects.filter(name=name).exists():
        return no_such_queue(request, name)
    try:
        history = queue_history(name, request.GET.get("period", "1h"))
    except UnknownSpan as problem:
        return JsonResponse({"detail": str(problem)}, status=400)
    wanted = request.GET.get("resource", "")
    rows = []
    for row in table(history):
        if wanted in ("", row["resource"]):
            rows.append(row)
    return streamed(
        request, as_csv(rows, HISTORY_COLUMNS), "text/csv", f"{name}-{history.span}.csv"
    )
