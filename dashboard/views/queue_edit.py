"""Create and change a queue, by form or by YAML. The usual rules check it while it is typed."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.forms.queue import QueueForm, judge
from dashboard.forms.queue_input import form_from_manifest
from dashboard.forms.queue_words import in_form_words
from dashboard.http.access import access, no_such_queue, page, require_edit
from dashboard.views.common import actor
from dashboard.views.queue_collect import manifest_in_set
from dashboard.views.queue_form_page import (
    possible_parents,
    render_form,
    siblings_figures,
    terminal_copies,
)
from dashboard.views.queue_save import save
from dashboard.views.queue_typed import given_queue, over_theirs, unreadable
from scheduler.admission.reading.queue import queue_manifest
from scheduler.admission.violations import Verdict
from scheduler.domain.access import Permission
from scheduler.domain.queues import ROOT
from scheduler.selectors.queues.facts import admission_scene, queue_tree
from scheduler.yaml_texts import to_yaml


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new(request: HttpRequest) -> HttpResponse:
    parent = request.GET.get("parent") or next(iter(possible_parents(request)), ROOT)
    access(request).require(Permission.ADMINISTER, parent, "create a queue below it")
    if request.method == "POST":
        return save(request, "")
    example = QueueForm(name="my-queue", parent=parent).manifest()
    context = {
        "form": QueueForm(parent=parent),
        "yaml": to_yaml(example),
    }
    return render_form(request, "", context)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def edit(request: HttpRequest, name: str) -> HttpResponse:
    tree = queue_tree()
    if name not in tree:
        return no_such_queue(request, name)
    require_edit(request, name, "change it")
    if request.method == "POST":
        return save(request, name)
    manifest = manifest_in_set(request, name) or queue_manifest(tree[name])
    context = {
        "form": form_from_manifest(manifest),
        "yaml": to_yaml(manifest),
        "manifest": manifest,
        "opened": manifest,
    }
    return render_form(request, name, context)


@require_POST
@page
def check(request: HttpRequest) -> HttpResponse:
    """What the rules say of what is typed so far, as a fragment for the side of the form."""
    name = request.POST.get("editing", "")
    tree, facts = admission_scene()
    if name and name not in tree:
        return no_such_queue(request, name)
    if name:
        require_edit(request, name, "change it")
    else:
        access(request).require_anywhere(Permission.ADMINISTER, "create queues")
    form, manifest, problem = given_queue(request, name)
    as_yaml = request.POST.get("as") == "yaml"
    if problem:
        verdict = unreadable(problem)
    else:
        wanted = manifest
        if name:
            wanted = over_theirs(request, manifest, tree[name])
        verdict = Verdict(form.problems()) + judge(wanted, tree, facts, name, actor(request))
    if not name and not form.name and not as_yaml:
        verdict = _without_name_problems(verdict)
    if not as_yaml:
        verdict = in_form_words(verdict)
    shown_manifest = manifest
    if manifest is None:
        shown_manifest = form.manifest()
    context = {
        "verdict": verdict,
        "family": siblings_figures(request, form, tree),
        "live": True,
        "as_yaml": as_yaml,
        "copies": terminal_copies(request, name, shown_manifest),
    }
    return render(request, "queues/_findings.html", context)


def _without_name_problems(verdict: Verdict) -> Verdict:
    """While the name of a new queue is still empty, nothing is said about it."""
    others = [item for item in verdict.violations if item.field != "metadata.name"]
    return Verdict(tuple(others), verdict.notices)
