"""The form of a queue as a page or a drawer."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.forms.queue import QueueForm
from dashboard.forms.queue_family import family
from dashboard.forms.queue_words import in_form_words
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, may_create_below
from dashboard.present.queues import page_resources
from dashboard.present.terminal import copies_of_manifest
from dashboard.views.common import given_fields, wants_fragment
from dashboard.views.queue_typed import opened_manifest
from scheduler.admission.reading.queue import queue_manifest
from scheduler.domain.access import Permission
from scheduler.domain.queues import ROOT, QueueTree
from scheduler.models import Queue
from scheduler.selectors.change_sets.listing import drafts_of
from scheduler.selectors.queues.facts import cluster_total, queue_tree, spec_of
from scheduler.selectors.queues.listing import queue_rows
from scheduler.services.cluster.kubectl_lines import queue_apply_lines
from scheduler.yaml_texts import to_yaml

Context = dict[str, Any]


def render_form(
    request: HttpRequest, name: str, context: Context, status: int = 200
) -> HttpResponse:
    board = queue_rows()
    stored = Queue.objects.select_related("parent").filter(name=name).first()
    form: QueueForm = context["form"]
    given = given_fields(request)
    parent = ""
    if stored and stored.parent:
        parent = stored.parent.name
    manifest = context.pop("manifest", None) or form.manifest()
    context |= {
        "name": name,
        "as_yaml": context.get("as_yaml", given.get("as") == "yaml"),
        **_opened_state(request, context, stored),
        "parents": possible_parents(request, name, parent),
        "lines": form.rows(page_resources(board)),
        "last_line": form.last_line(),
        "family": siblings_figures(request, form, queue_tree()),
        "copies": terminal_copies(request, name, manifest),
        "drafts": drafts_of(access(request), request.user.get_username()),
        "chosen_set": whole_number(given.get("change_set", "")),
    }
    if "verdict" in context and not context["as_yaml"]:
        context["verdict"] = in_form_words(context["verdict"])
    template = "queues/form.html"
    if name and wants_fragment(request):
        template = "queues/_drawer.html"
    return render(request, template, context, status=status)


def _opened_state(request: HttpRequest, context: Context, stored: Queue | None) -> Context:
    """The version that the reader started with, and the queue as it was then.

    The form carries both along, however often it is shown again.
    """
    opened = context.get("opened") or opened_manifest(request)
    version = context.get("version") or request.POST.get("version")
    if stored is not None:
        opened = opened or queue_manifest(spec_of(stored))
        version = version or stored.resource_version
    state = {"version": version or "", "opened": ""}
    if opened:
        state["opened"] = json.dumps(opened)
    return state


def possible_parents(request: HttpRequest, name: str = "", now: str = "") -> list[str]:
    """The queues below which the reader may put this one, and its parent `now`, in tree order."""
    names = []
    for row in queue_rows().rows:
        if row.name == name:
            continue
        if row.name == now or may_create_below(request, row.name):
            names.append(row.name)
    return names


def siblings_figures(request: HttpRequest, form: QueueForm, tree: QueueTree) -> list[Context]:
    """For users who may see the parent."""
    if not access(request).may(Permission.VIEW, form.parent or ROOT):
        return []
    return family(form, tree, cluster_total())


def terminal_copies(request: HttpRequest, name: str, manifest: object) -> dict[str, str]:
    """The same for a terminal: what is typed so far, as a file to apply and as a request."""
    apply = ["apply", "-f", "-"]
    text = to_yaml(manifest)
    if name:
        lines = copies_of_manifest(request, text, apply, f"queues/{quote(name)}/", "PUT")
    else:
        lines = copies_of_manifest(request, text, apply, "queues/", "POST")
    return {**lines, "kubectl": queue_apply_lines(manifest)}
