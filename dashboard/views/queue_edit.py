"""Create and change a queue: by form or by YAML, judged while typing by the rules that judge every door."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import yaml
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.forms.queue import (
    MOST_YAML,
    QueueForm,
    differences,
    family,
    field_words,
    form_from_manifest,
    form_from_post,
    form_of_reading,
    in_form_words,
    judge,
    manifest_from_yaml,
)
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, may_create_below, no_such_queue, page, require_edit
from dashboard.present.queues import page_resources
from dashboard.present.terminal import copies_of_manifest
from dashboard.views.common import actor, wants_fragment
from scheduler.admission.reading.queue import queue_manifest, read_queue
from scheduler.admission.violations import Rejected, Verdict, Violation
from scheduler.domain.access import Forbidden, Permission
from scheduler.domain.queues import ROOT, QueueSpec, QueueTree
from scheduler.domain.three_way import FieldChange
from scheduler.models import Queue
from scheduler.selectors.queues.facts import admission_scene, cluster_total, queue_tree, spec_of
from scheduler.selectors.queues.listing import queue_rows
from scheduler.services.queues.create_update import (
    EditConflict,
    Saved,
    StaleVersion,
    create_queue,
    merged_edit,
    update_queue,
)

Context = dict[str, Any]


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new(request: HttpRequest) -> HttpResponse:
    parent = request.GET.get("parent") or next(iter(_possible_parents(request)), ROOT)
    access(request).require(Permission.ADMINISTER, parent, "create a queue below it")
    if request.method == "POST":
        return _save(request, "")
    return _render(
        request,
        "",
        {
            "form": QueueForm(parent=parent),
            "yaml": yaml.safe_dump(
                QueueForm(name="my-queue", parent=parent).manifest(), sort_keys=False
            ),
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
@page
def edit(request: HttpRequest, name: str) -> HttpResponse:
    tree = queue_tree()
    if name not in tree:
        return no_such_queue(request, name)
    require_edit(request, name, "change it")
    if request.method == "POST":
        return _save(request, name)
    manifest = queue_manifest(tree[name])
    return _render(
        request,
        name,
        {"form": form_from_manifest(manifest), "yaml": _as_yaml(manifest), "manifest": manifest},
    )


def _possible_parents(request: HttpRequest, name: str = "", now: str = "") -> list[str]:
    """In the order of the tree, the queues below which the reader may put this one, and the one below which it is now."""
    return [
        row.name
        for row in queue_rows().rows
        if row.name != name and (row.name == now or may_create_below(request, row.name))
    ]


def _family(request: HttpRequest, form: QueueForm, tree: QueueTree) -> list[Context]:
    """The siblings' figures, for who may see where they hang."""
    return (
        family(form, tree, cluster_total())
        if access(request).may(Permission.VIEW, form.parent or ROOT)
        else []
    )


def _as_yaml(manifest: object) -> str:
    return yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True)


def _render(request: HttpRequest, name: str, context: Context, status: int = 200) -> HttpResponse:
    board = queue_rows()
    stored = Queue.objects.select_related("parent").filter(name=name).first()
    form: QueueForm = context["form"]
    context |= {
        "name": name,
        "as_yaml": context.get(
            "as_yaml",
            (request.POST if request.method == "POST" else request.GET).get("as") == "yaml",
        ),
        **_opened_as(request, context, stored),
        "parents": _possible_parents(
            request, name, stored.parent.name if stored and stored.parent else ""
        ),
        "lines": form.rows(page_resources(board)),
        "last_line": form.last_line(),
        "family": _family(request, form, queue_tree()),
        "copies": _in_a_terminal(request, name, context.pop("manifest", None) or form.manifest()),
    }
    if "verdict" in context and not context["as_yaml"]:
        context["verdict"] = in_form_words(context["verdict"])
    in_drawer = bool(name) and wants_fragment(request)
    return render(
        request, "queues/_drawer.html" if in_drawer else "queues/form.html", context, status=status
    )


def _opened_as(request: HttpRequest, context: Context, stored: Queue | None) -> Context:
    """The version that the reader began with and how the queue was then: it goes along, however often the form is shown again."""
    opened = (
        context.get("opened")
        or _opened(request)
        or (queue_manifest(spec_of(stored)) if stored else None)
    )
    version = (
        context.get("version")
        or request.POST.get("version")
        or (stored.resource_version if stored else "")
    )
    return {"version": version, "opened": json.dumps(opened) if opened else ""}


def _opened(request: HttpRequest) -> dict[str, Any] | None:
    """None where it did not come along, or is no queue."""
    try:
        opened = json.loads(request.POST.get("opened", "")[:MOST_YAML])
    except (ValueError, RecursionError):
        return None
    reading = read_queue(opened)
    return None if reading.value is None or reading.violations else opened


def _in_a_terminal(request: HttpRequest, name: str, manifest: object) -> dict[str, str]:
    """The same for a terminal: what is typed so far, as a file to apply and as a request."""
    path, method = (f"queues/{quote(name)}/", "PUT") if name else ("queues/", "POST")
    return copies_of_manifest(request, _as_yaml(manifest), ["apply", "-f", "-"], path, method)


def _given(request: HttpRequest, name: str) -> tuple[QueueForm, object, str]:
    """The form as typed, the manifest it stands for, and why there is none."""
    if request.POST.get("as") == "yaml":
        manifest, problem = manifest_from_yaml(request.POST.get("yaml", ""))
        return QueueForm(name=name), manifest, problem
    base = (
        _opened(request) or (queue_manifest(tree[name]) if name in (tree := queue_tree()) else None)
        if name
        else None
    )
    form = form_from_post(request.POST, form_from_manifest(base) if base else QueueForm())
    return form, form.manifest(base), ""


def _save(request: HttpRequest, name: str) -> HttpResponse:
    form, manifest, problem = _given(request, name)
    if "mend" in request.POST:
        return _mend(request, name, form)
    if "show" in request.POST:
        return _turn(request, name, form, manifest, problem)
    context: Context = {
        "form": form,
        "yaml": request.POST.get("yaml", ""),
        "manifest": manifest,
        "unsaved": True,
    }
    if problem or form.problems():
        verdict = _unreadable(problem) if problem else _judged(request, name, form, manifest)
        return _render(request, name, context | {"verdict": verdict, "refused": True}, 400)
    try:
        saved = _stored(request, name, manifest)
    except Rejected as refusal:
        verdict = Verdict(refusal.violations, refusal.notices)
        return _render(
            request,
            name,
            context | {"verdict": verdict, "refused": True},
            409 if refusal.by_state else 400,
        )
    except EditConflict as conflict:
        return _conflict(request, name, context, conflict)
    except StaleVersion as conflict:
        return _conflict_without_base(request, name, context, manifest, conflict)
    except Queue.DoesNotExist:
        return no_such_queue(request, name)
    _tell(request, saved, name)
    return _saved(request, saved.queue.name)


def _stored(request: HttpRequest, name: str, manifest: object) -> Saved:
    if not name:
        return create_queue(manifest, by=actor(request))
    version = whole_number(request.POST.get("version", ""))
    return update_queue(
        name, manifest, by=actor(request), expected_version=version, opened=_opened(request)
    )


def _tell(request: HttpRequest, saved: Saved, name: str) -> None:
    messages.success(
        request, f"Saved {name}. {saved.message}" if name and saved.changed else saved.message
    )
    if saved.kept:
        messages.info(request, f"Changed by others meanwhile, and kept: {_in_words(saved.kept)}.")
    for notice in saved.notices:
        messages.warning(request, notice.message)


def _in_words(changes: Iterable[FieldChange]) -> str:
    return ", ".join(
        f"{field_words(change.field)} from {_said(change.base)} to {_said(change.theirs)}"
        for change in changes
    )


def _said(value: object) -> str:
    return "unset" if value is None else str(value)


def _judged(request: HttpRequest, name: str, form: QueueForm, manifest: object) -> Verdict:
    tree, facts = admission_scene()
    return Verdict(form.problems()) + judge(
        manifest, tree, facts, name if name in tree else "", actor(request)
    )


def _saved(request: HttpRequest, name: str) -> HttpResponse:
    """A drawer closes, and the page below it says what was done; a page leads to the queue, which says it."""
    if not wants_fragment(request):
        return HttpResponseRedirect(reverse("queue", args=[name]))
    answer = render(request, "parts/messages.html")
    answer["X-Outcome"] = "saved"
    return answer


def _turn(
    request: HttpRequest, name: str, form: QueueForm, manifest: object, problem: str
) -> HttpResponse:
    """What is typed so far, as form or as YAML. Nothing is saved, and nothing is lost: what the form has no place for stays YAML."""
    tree, facts = admission_scene()
    old, was_yaml, to_yaml = (
        tree.queues.get(name),
        request.POST.get("as") == "yaml",
        request.POST["show"] == "yaml",
    )
    obstacles = _unreadable(problem).violations if problem else form.problems()
    if was_yaml and not to_yaml and not problem:
        turned, obstacles = form_of_reading(manifest, old)
        form = turned or form
    context = {
        "form": form,
        "yaml": request.POST.get("yaml", "") if was_yaml else _as_yaml(manifest),
        "manifest": manifest,
        "as_yaml": was_yaml if obstacles else to_yaml,
        "verdict": Verdict(obstacles)
        if obstacles
        else judge(manifest, tree, facts, name, actor(request)),
        "unsaved": old is None
        or not isinstance(manifest, dict)
        or bool(differences(manifest, queue_manifest(old))),
    }
    return _render(request, name, context)


def _mend(request: HttpRequest, name: str, form: QueueForm) -> HttpResponse:
    """The form with one value as the rules advise, and what they say of it then. Nothing is saved."""
    mended = form.mended(request.POST["mend"])
    tree, facts = admission_scene()
    manifest = mended.manifest(queue_manifest(tree[name]) if name in tree else None)
    verdict = Verdict(mended.problems()) + judge(manifest, tree, facts, name, actor(request))
    return _render(
        request,
        name,
        {"form": mended, "yaml": "", "manifest": manifest, "verdict": verdict, "unsaved": True},
    )


def _unreadable(problem: str) -> Verdict:
    return Verdict((Violation("unreadable", "", "yaml", problem, "correct the text"),))


def _conflict(
    request: HttpRequest, name: str, context: Context, conflict: EditConflict
) -> HttpResponse:
    """Both changed a field. The form has what is stored by now, with what this reader typed over it; sent again only that is written."""
    merged = conflict.merged
    shown = {
        "conflict": conflict.queue,
        "both": [_three(change) for change in merged.both],
        "kept": [_three(change) for change in merged.kept],
        "form": form_from_manifest(merged.value),
        "yaml": _as_yaml(merged.value),
        "manifest": merged.value,
        "opened": queue_manifest(spec_of(conflict.queue)),
        "version": conflict.queue.resource_version,
        "verdict": _judged(request, name, QueueForm(), merged.value),
    }
    return _render(request, name, context | shown, 412)


def _three(change: FieldChange) -> Context:
    words = {"base": _said(change.base), "mine": _said(change.mine), "theirs": _said(change.theirs)}
    return {"field": field_words(change.field), **words}


def _conflict_without_base(
    request: HttpRequest, name: str, context: Context, manifest: object, conflict: StaleVersion
) -> HttpResponse:
    """What the reader began with is not known: both versions are shown, and what was typed replaces theirs when it is sent again."""
    theirs = queue_manifest(queue_tree()[name])
    found = differences(manifest if isinstance(manifest, dict) else {}, theirs)
    both = [{**line, "field": field_words(line["field"]), "base": "not known"} for line in found]
    shown = {
        "conflict": conflict.queue,
        "both": both,
        "opened": theirs,
        "version": conflict.queue.resource_version,
    }
    return _render(request, name, context | shown, 412)


def _over_theirs(request: HttpRequest, manifest: object, stored: QueueSpec) -> object:
    """What saving would write: this reader's changes over what is stored by now; as typed where that cannot be read."""
    opened = _opened(request)
    if opened is None:
        return manifest
    try:
        return merged_edit(opened, manifest, queue_manifest(stored)).value
    except Rejected:
        return manifest


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
    elif not access(request).may_anywhere(Permission.ADMINISTER):
        raise Forbidden(Permission.ADMINISTER, ROOT, "create queues")
    form, manifest, problem = _given(request, name)
    wanted = _over_theirs(request, manifest, tree[name]) if name else manifest
    verdict = (
        _unreadable(problem)
        if problem
        else Verdict(form.problems()) + judge(wanted, tree, facts, name, actor(request))
    )
    if not name and not form.name and request.POST.get("as") != "yaml":
        verdict = Verdict(
            tuple(
                violation for violation in verdict.violations if violation.field != "metadata.name"
            ),
            verdict.notices,
        )
    as_yaml = request.POST.get("as") == "yaml"
    context = {
        "verdict": verdict if as_yaml else in_form_words(verdict),
        "family": _family(request, form, tree),
        "live": True,
        "as_yaml": as_yaml,
        "copies": _in_a_terminal(
            request, name, manifest if manifest is not None else form.manifest()
        ),
    }
    return render(request, "queues/_findings.html", context)
