"""/nodes/: how full each node is, as a table or a map; one node's pods, and commands to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import quote

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.choices import UnknownWord, checked_word, refusal_of
from dashboard.http.access import access, page, visibility_of
from dashboard.present.amounts import (
    in_page_order,
    resource_choices,
    short_name,
    shown,
    with_unit,
)
from dashboard.present.bars import BAR_WIDTH, Span, bar_html, figures_text, rectangles, scaled
from dashboard.present.jobs import amounts_text
from dashboard.present.node_map import free_words, label_keys, present_groups
from dashboard.present.object_yaml import object_document
from dashboard.present.room import present_spread, resources_of, spreads
from dashboard.present.terminal import copies
from dashboard.views.common import actor, render_page_or_part, show_result, watched_only
from scheduler.admission.violations import Rejected, in_words
from scheduler.domain.access import Permission
from scheduler.domain.queues import ROOT
from scheduler.models import Node, Pod
from scheduler.selectors.cluster.nodes import (
    NodeRow,
    node_events,
    node_rows,
    pods_on,
)
from scheduler.selectors.files.manifests import stored_node
from scheduler.services.cluster.kubectl_lines import node_line
from scheduler.services.cluster.mirrored import how_to_change, may_be_changed_here
from scheduler.services.cluster.nodes import cordon_node, drain_node, uncordon_node
from scheduler.services.cluster.simulation import bring_back_node, lose_node, nodes_are_simulated

Context = dict[str, Any]
PAGE = 100
VIEWS = {"table": "Table", "map": "Map"}
VERBS = {
    "cordon": cordon_node,
    "uncordon": uncordon_node,
    "drain": drain_node,
    "lose": lose_node,
    "return": bring_back_node,
}
TITLES = {"return": "Bring back"}  # where it is not the verb
STATES = ("Ready", "Cordoned", "Not ready")


def require_sight(request: HttpRequest) -> None:
    """Machines belong to no queue: whoever may see any queue may see them."""
    access(request).require_anywhere(Permission.VIEW, "see the nodes")


@require_safe
@page
def nodes(request: HttpRequest) -> HttpResponse:
    require_sight(request)
    rows = node_rows()
    resources = resources_of(rows)
    resource = request.GET.get("resource", "")
    if resource not in resources:
        resource = next(iter(resources), "")
    view = checked_word(request.GET, "view", VIEWS) or "table"
    order = request.GET.get("sort", "name")
    found = in_order(_matching(rows, request), order)
    free_room = [present_spread(found) for found in spreads(rows)]
    states = []
    for state in STATES:
        states.append((state, sum(row.state == state for row in rows)))
    context = {
        "view": view,
        "views": VIEWS,
        "resource": resource,
        "resources": resource_choices(resources),
        "count": len(found),
        "whole": len(rows),
        "rows": [],
        "further": "",
        "groups": [],
        "label": "",
        "labels": [],
        "free_room": free_room,
        "states": states,
        "state": request.GET.get("state", ""),
        "kinds": sorted({row.kind for row in rows if row.kind}),
        "kind": request.GET.get("kind", ""),
        "q": request.GET.get("q", ""),
        "sort": order,
        "orders": _orders(resources, order),
    }
    if view == "table":
        context |= _table_page(found, resources, request.GET.get("after", ""))
    if view == "map":
        context |= _map(rows, found, resource, request)
    return render(request, "cluster/nodes.html", context)


def _map(
    rows: Sequence[NodeRow], found: Sequence[NodeRow], resource: str, request: HttpRequest
) -> Context:
    """Grouped by the label that is asked for; without a word, by the first that there is."""
    labels = label_keys(rows)
    label = request.GET.get("group")
    if label is None:
        label = next(iter(labels), "")
    if label and label not in labels:
        raise UnknownWord(refusal_of("label", label, labels or ("none",)))
    return {
        "groups": present_groups(found, label, resource),
        "label": label,
        "labels": labels,
        "resource_title": short_name(resource),
    }


def _table_page(found: Sequence[NodeRow], resources: Sequence[str], after: str) -> Context:
    start = _start(found, after)
    end = start + PAGE
    further = ""
    if len(found) > end:
        further = found[end - 1].name
    rows = []
    for row in found[start:end]:
        rows.append(present_node(row, resources))
    return {
        "rows": rows,
        "further": further,
    }


def _matching(rows: Sequence[NodeRow], request: HttpRequest) -> list[NodeRow]:
    state = checked_word(request.GET, "state", STATES)
    kind = checked_word(request.GET, "kind", sorted({row.kind for row in rows if row.kind}))
    text = request.GET.get("q", "").strip()
    found = [row for row in rows if text in row.name]
    if state:
        found = [row for row in found if row.state == state]
    if kind:
        found = [row for row in found if row.kind == kind]
    return found


def in_order(rows: Sequence[NodeRow], wanted: str) -> list[NodeRow]:
    """By name, state, pods, or use of a resource; a minus reverses it.

    Nodes without the resource come last in any case.
    """
    field = wanted.removeprefix("-")
    descending = wanted.startswith("-")
    keys: dict[str, Callable[[NodeRow], Any]] = {
        "name": lambda row: row.name,
        "state": lambda row: STATES.index(row.state),
        "pods": lambda row: row.pods,
    }
    if field in keys:
        return sorted(rows, key=keys[field], reverse=descending)
    having = [row for row in rows if row.allocatable.get(field)]
    lacking = [row for row in rows if not row.allocatable.get(field)]
    having.sort(key=lambda row: _share_in_use(row, field), reverse=descending)
    return having + lacking


def _share_in_use(row: NodeRow, resource: str) -> float:
    return row.used.amount(resource) / row.allocatable[resource]


def _orders(resources: Iterable[str], chosen: str) -> dict[str, str]:
    """What to sort by on a phone, where the table has no heads; it always has the chosen one."""
    most = {f"-{name}": f"most {short_name(name)} in use" for name in resources}
    offered = {"name": "name", "state": "state", **most, "-pods": "most pods"}
    if chosen in offered:
        return offered
    return {**offered, chosen: chosen.removeprefix("-")}


def _start(rows: Sequence[NodeRow], after: str) -> int:
    """After the last node of the page before; from the start if that node is gone."""
    return next((place + 1 for place, row in enumerate(rows) if row.name == after), 0)


def present_node(row: NodeRow, resources: Iterable[str]) -> Context:
    return {
        "name": row.name,
        "kind": row.kind,
        "state": row.state,
        "pods": row.pods,
        "others": row.taken.amount("pods"),
        "limit": row.allocatable.amount("pods"),
        "bars": [_bar(row, name) for name in resources],
    }


def _bar(row: NodeRow, resource: str) -> Context:
    title = short_name(resource)
    has = row.allocatable.get(resource)
    if not has:
        return {"title": title, "none": True}
    used = row.used.amount(resource)
    promised = row.promised.amount(resource)
    words = f"{shown(resource, used)} of {with_unit(resource, has)}"
    taken = ""
    if row.taken.amount(resource):
        taken = with_unit(resource, row.taken.amount(resource))
    kept = ""
    if promised:
        kept = shown(resource, promised)
    free = free_words(row, resource)
    also = ""
    if kept:
        also = f", {kept} promised"
    return {
        "title": title,
        "resource": resource,
        "promised": kept,
        "taken": taken,
        "words": words,
        "free": free,
        "bar": bar_html(
            _rectangles(used, promised, has),
            label=f"{title}: {words} in use{also}, {free}.",
            figures=figures_text(title, (words, kept, "", "", "", ""), (free,)),
        ),
    }


def _rectangles(used: int, promised: int, has: int) -> str:
    """What is promised follows what is in use; where others have to leave first, it covers them."""
    in_use = scaled(used, has)
    kept = scaled(promised, has)
    start = min(in_use, BAR_WIDTH - kept)
    return rectangles([Span("use", 0, in_use), Span("promise", start, kept)])


# One machine


@require_safe
@page
def node(request: HttpRequest, name: str) -> HttpResponse:
    require_sight(request)
    found = node_rows([name])
    if not found:
        return no_such_node(request, name)
    row = found[0]
    pods = pods_on(name)
    seen = []
    for pod in pods:
        if visibility_of(request).sees(pod.podgroup.queue.place):
            seen.append(pod)
    resources = in_page_order(row.allocatable)
    context = {
        "node": row,
        "row": present_node(row, resources),
        "pods": [_pod(pod) for pod in seen],
        "hidden": len(pods) - len(seen),
        "events": node_events(name),
        "how_to_change": how_to_change("Node", name),
        "kubectl": _kubectl_lines(row),
        "may_operate": access(request).may(Permission.OPERATE, ROOT),
        "may_lose": nodes_are_simulated() and access(request).may(Permission.ADMINISTER, ROOT),
    }
    return render(request, "cluster/node.html", context)


@require_safe
@page
def node_yaml(request: HttpRequest, name: str) -> HttpResponse:
    require_sight(request)
    stored = Node.objects.filter(name=name).first()
    if stored is None:
        return no_such_node(request, name)
    document = object_document("Node", name, stored=stored_node(stored), with_values=True)
    return render(request, "cluster/node_yaml.html", {"name": name, "documents": [document]})


def no_such_node(request: HttpRequest, name: str) -> HttpResponse:
    return render(
        request,
        "404.html",
        {"missing": f"There is no node {name}. It may have been removed."},
        status=404,
    )


def _kubectl_lines(row: NodeRow) -> str:
    """What operators do to a node of a real cluster, where the page has no buttons for it."""
    first = "uncordon" if row.unschedulable else "cordon"
    return "\n".join(filter(None, (node_line(first, row.name), node_line("drain", row.name))))


def _pod(pod: Pod) -> Context:
    group = pod.podgroup
    return {
        "name": pod.name,
        "namespace": pod.namespace,
        "group": group.name,
        "queue": group.queue.name,
        "owner": group.owner,
        "phase": pod.phase,
        "request": amounts_text(pod.pod_class.requests),
        "since": pod.started_at or pod.bound_at or pod.created_at,
        "borrowed": pod.borrowed,
    }


@require_http_methods(["GET", "HEAD", "POST"])
@page
def command(request: HttpRequest, name: str, verb: str) -> HttpResponse:
    require_sight(request)
    kubectl = node_line(verb, name)
    if request.method != "POST" and not may_be_changed_here("Node"):
        title = f"{TITLES.get(verb, verb.capitalize())} {name}"
        sentence = how_to_change("Node", name)
        return watched_only(request, title, sentence, reverse("node", args=[name]), kubectl)
    try:
        if request.method == "POST":
            result = VERBS[verb](name, by=actor(request), reason=request.POST.get("reason", ""))
            show_result(request, result.message, changed=result.changed)
            return redirect("node", name)
        tried = VERBS[verb](name, by=actor(request), dry_run=True)
    except Node.DoesNotExist:
        return no_such_node(request, name)
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
        return redirect("node", name)
    context = {
        "name": name,
        "verb": verb,
        "title": TITLES.get(verb, verb.capitalize()),
        "tried": tried,
    }
    lines = copies(request, ["node", verb, name], f"nodes/{quote(name)}/{verb}/", {"reason": ""})
    context["copies"] = {**lines, "kubectl": kubectl}
    return render_page_or_part(
        request, "cluster/node_command.html", "cluster/_node_command.html", context
    )
