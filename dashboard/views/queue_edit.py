"""Create and change a queue, by form or by YAML. The usual rules check it while it is typed."""

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

from dashboard.forms.queue import QueueForm, differences, judge
from dashboard.forms.queue_family import family
from dashboard.forms.queue_input import (
    MOST_YAML,
    form_from_manifest,
    form_from_post,
    form_of_reading,
    manifest_from_yaml,
)
from dashboard.forms.queue_words import field_words, in_form_words
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, may_create_below, no_such_queue, page, require_edit
from dashboard.present.queues import page_resources
from dashboard.present.terminal import copies_of_manifest
from dashboard.views.changes import collect_queue, manifest_in_set
from dashboard.views.changes import page_of as change_set_page
from dashboard.views.common import actor, given_fields, wants_fragment
from scheduler.admission.reading.queue import queue_manifest, read_queue
from scheduler.admission.violations import Rejected, Verdict, Violation
from scheduler.domain.access import Forbidden, Permission
from scheduler.domain.queues import ROOT, QueueSpec, QueueTree
from scheduler.domain.three_way import FieldChange
from scheduler.models import Queue
from scheduler.selectors.change_sets.listing import drafts_of
from scheduler.selectors.queues.facts import admission_scene, cluster_total, queue_tree, spec_of
from scheduler.selectors.queues.listing import queue_rows
from scheduler.services.cluster.kubectl_lines import queue_apply_lines
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
    example = QueueForm(name="my-queue", parent=parent).manifest()
    context = {
        "form": QueueForm(parent=parent),
        "yaml": yaml.safe_dump(example, sort_keys=False),
    }
    return _render(request, "", context)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def edit(request: HttpRequest, name: str) -> HttpResponse:
    tree = queue_tree()
    if name not in tree:
        return no_such_queue(request, name)
    require_edit(request, name, "change it")
    if request.method == "POST":
        return _save(request, name)
    manifest = manifest_in_set(request, name) or queue_manifest(tree[name])
    context = {
        "form": form_from_manifest(manifest),
        "yaml": _as_yaml(manifest),
        "manifest": manifest,
        "opened": manifest,
    }
    return _render(request, name, context)


def _possible_parents(request: HttpRequest, name: str = "", now: str = "") -> list[str]:
    """The queues below which the reader may put this one, and its parent `now`, in tree order."""
    names = []
    for row in queue_rows().rows:
        if row.name == name:
            continue
        if row.name == now or may_create_below(request, row.name):
            names.append(row.name)
    return names


def _siblings_figures(request: HttpRequest, form: QueueForm, tree: QueueTree) -> list[Context]:
    """For users who may see the parent."""
    if not access(request).may(Permission.VIEW, form.parent or ROOT):
        return []
    return family(form, tree, cluster_total())


def _as_yaml(manifest: object) -> str:
    return yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True)


def _render(request: HttpRequest, name: str, context: Context, status: int = 200) -> HttpResponse:
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
        "parents": _possible_parents(request, name, parent),
        "lines": form.rows(page_resources(board)),
        "last_line": form.last_line(),
        "family": _siblings_figures(request, form, queue_tree()),
        "copies": _terminal_copies(request, name, manifest),
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
    opened = context.get("opened") or _opened_manifest(request)
    version = context.get("version") or request.POST.get("version")
    if stored is not None:
        opened = opened or queue_manifest(spec_of(stored))
        version = version or stored.resource_version
    state = {"version": version or "", "opened": ""}
    if opened:
        state["opened"] = json.dumps(opened)
    return state


def _opened_manifest(request: HttpRequest) -> dict[str, Any] | None:
    """None where the form did not carry it along, or it is not a queue."""
    try:
        opened = json.loads(request.POST.get("opened", "")[:MOST_YAML])
    except (ValueError, RecursionError):
        return None
    reading = read_queue(opened)
    if reading.value is None or reading.violations:
        return None
    return opened  # type: ignore[no-any-return]


def _terminal_copies(request: HttpRequest, name: str, manifest: object) -> dict[str, str]:
    """The same for a terminal: what is typed so far, as a file to apply and as a request."""
    apply = ["apply", "-f", "-"]
    text = _as_yaml(manifest)
    if name:
        lines = copies_of_manifest(request, text, apply, f"queues/{quote(name)}/", "PUT")
    else:
        lines = copies_of_manifest(request, text, apply, "queues/", "POST")
    return {**lines, "kubectl": queue_apply_lines(manifest)}


def _given_queue(request: HttpRequest, name: str) -> tuple[QueueForm, object, str]:
    """The form as typed, its manifest, and why there is no manifest."""
    if request.POST.get("as") == "yaml":
        manifest, problem = manifest_from_yaml(request.POST.get("yaml", ""))
        return QueueForm(name=name), manifest, problem
    base = _manifest_to_change(request, name)
    if base:
        start = form_from_manifest(base)
    else:
        start = QueueForm()
    form = form_from_post(request.POST, start)
    return form, form.manifest(base), ""


def _manifest_to_change(request: HttpRequest, name: str) -> Any:
    """The queue as the reader started with it, or as it is stored; None for a new one."""
    if not name:
        return None
    opened = _opened_manifest(request)
    if opened:
        return opened
    tree = queue_tree()
    if name not in tree:
        return None
    return queue_manifest(tree[name])


def _save(request: HttpRequest, name: str) -> HttpResponse:
    form, manifest, problem = _given_queue(request, name)
    if "mend" in request.POST:
        return _apply_advice(request, name, form)
    if "show" in request.POST:
        return _switch_view(request, name, form, manifest, problem)
    context: Context = {
        "form": form,
        "yaml": request.POST.get("yaml", ""),
        "manifest": manifest,
        "unsaved": True,
    }
    if problem:
        context |= {"verdict": _unreadable(problem), "refused": True}
        return _render(request, name, context, 400)
    if form.problems():
        verdict = _full_verdict(request, name, form, manifest)
        return _render(request, name, context | {"verdict": verdict, "refused": True}, 400)
    try:
        return _stored_response(request, name, manifest)
    except Rejected as refusal:
        context |= {"verdict": Verdict(refusal.violations, refusal.notices), "refused": True}
        status = 400
        if refusal.by_state:
            status = 409
        return _render(request, name, context, status)
    except EditConflict as conflict:
        return _conflict(request, name, context, conflict)
    except StaleVersion as conflict:
        return _conflict_without_base(request, name, context, manifest, conflict)
    except Queue.DoesNotExist:
        return no_such_queue(request, name)


def _stored_response(request: HttpRequest, name: str, manifest: object) -> HttpResponse:
    if "collect" in request.POST:
        return _collected(request, name, manifest)
    saved = _store(request, name, manifest)
    _add_messages(request, saved, name)
    return _saved_response(request, saved.queue.name)


def _collected(request: HttpRequest, name: str, manifest: object) -> HttpResponse:
    """Kept for later: the rules judge it together with the rest of the change set."""
    change_set = collect_queue(request, name, manifest, _opened_manifest(request))
    messages.success(request, f"Added to the change set {change_set.name}. Nothing is applied yet.")
    for notice in read_queue(manifest).notices:
        if notice.code == "unknown_field":
            messages.warning(request, f"{notice.message}.")
    if not wants_fragment(request):
        return HttpResponseRedirect(change_set_page(change_set))
    answer = render(request, "parts/messages.html")
    answer["X-Outcome"] = "saved"
    return answer


def _store(request: HttpRequest, name: str, manifest: object) -> Saved:
    if not name:
        return create_queue(manifest, by=actor(request))
    return update_queue(
        name,
        manifest,
        by=actor(request),
        expected_version=whole_number(request.POST.get("version", "")),
        opened=_opened_manifest(request),
    )


def _add_messages(request: HttpRequest, saved: Saved, name: str) -> None:
    message = saved.message
    if name and saved.changed:
        message = f"Saved {name}. {saved.message}"
    messages.success(request, message)
    if saved.kept:
        kept = _changes_in_words(saved.kept)
        messages.info(request, f"Changed by others meanwhile, and kept: {kept}.")
    for notice in saved.notices:
        messages.warning(request, notice.message)


def _changes_in_words(changes: Iterable[FieldChange]) -> str:
    words = []
    for change in changes:
        field = field_words(change.field)
        words.append(f"{field} from {_value_words(change.base)} to {_value_words(change.theirs)}")
    return ", ".join(words)


def _value_words(value: object) -> str:
    if value is None:
        return "unset"
    return str(value)


def _full_verdict(request: HttpRequest, name: str, form: QueueForm, manifest: object) -> Verdict:
    """What the form finds wrong, and what the rules say."""
    tree, facts = admission_scene()
    stored_name = ""
    if name in tree:
        stored_name = name
    verdict = judge(manifest, tree, facts, stored_name, actor(request))
    return Verdict(form.problems()) + verdict


def _saved_response(request: HttpRequest, name: str) -> HttpResponse:
    """A drawer closes, and the page below says what was done; a form leads to the queue's page."""
    if not wants_fragment(request):
        return HttpResponseRedirect(_page_of(name))
    answer = render(request, "parts/messages.html")
    answer["X-Outcome"] = "saved"
    return answer


def _page_of(name: str) -> str:
    """One that was just sent to a real cluster may not have a page yet."""
    if Queue.objects.filter(name=name).exists():
        return reverse("queue", args=[name])
    return reverse("queues")


def _switch_view(
    request: HttpRequest,
    name: str,
    form: QueueForm,
    manifest: object,
    problem: str,
) -> HttpResponse:
    """What is typed so far, as form or as YAML. Nothing is saved and nothing is lost.

    A queue with fields that the form does not have stays YAML.
    """
    tree, facts = admission_scene()
    old = tree.queues.get(name)
    was_yaml = request.POST.get("as") == "yaml"
    to_yaml = request.POST["show"] == "yaml"
    obstacles = form.problems()
    if problem:
        obstacles = _unreadable(problem).violations
    elif was_yaml and not to_yaml:
        turned, obstacles = form_of_reading(manifest, old)
        form = turned or form
    if obstacles:
        verdict = Verdict(obstacles)
        as_yaml = was_yaml
    else:
        verdict = judge(manifest, tree, facts, name, actor(request))
        as_yaml = to_yaml
    if was_yaml:
        text = request.POST.get("yaml", "")
    else:
        text = _as_yaml(manifest)
    context = {
        "form": form,
        "yaml": text,
        "manifest": manifest,
        "as_yaml": as_yaml,
        "verdict": verdict,
        "unsaved": _is_unsaved(manifest, old),
    }
    return _render(request, name, context)


def _is_unsaved(manifest: object, stored: QueueSpec | None) -> bool:
    if stored is None or not isinstance(manifest, dict):
        return True
    return bool(differences(manifest, queue_manifest(stored)))


def _apply_advice(request: HttpRequest, name: str, form: QueueForm) -> HttpResponse:
    """The form with one value as the rules advise, and their verdict on it. Nothing is saved."""
    mended = form.mended(request.POST["mend"])
    tree, facts = admission_scene()
    base = None
    if name in tree:
        base = queue_manifest(tree[name])
    manifest = mended.manifest(base)
    verdict = Verdict(mended.problems()) + judge(manifest, tree, facts, name, actor(request))
    context = {
        "form": mended,
        "yaml": "",
        "manifest": manifest,
        "verdict": verdict,
        "unsaved": True,
    }
    return _render(request, name, context)


def _unreadable(problem: str) -> Verdict:
    return Verdict((Violation("unreadable", "", "yaml", problem, "correct the text"),))


def _conflict(
    request: HttpRequest,
    name: str,
    context: Context,
    conflict: EditConflict,
) -> HttpResponse:
    """Two users changed the same field.

    The form has what is stored now, with this user's input over it. Sent again, only that is
    written.
    """
    merged = conflict.merged
    shown = {
        "conflict": conflict.queue,
        "both": [_three_values(change) for change in merged.both],
        "kept": [_three_values(change) for change in merged.kept],
        "form": form_from_manifest(merged.value),
        "yaml": _as_yaml(merged.value),
        "manifest": merged.value,
        "opened": queue_manifest(spec_of(conflict.queue)),
        "version": conflict.queue.resource_version,
        "verdict": _full_verdict(request, name, QueueForm(), merged.value),
    }
    return _render(request, name, context | shown, 412)


def _three_values(change: FieldChange) -> Context:
    return {
        "field": field_words(change.field),
        "base": _value_words(change.base),
        "mine": _value_words(change.mine),
        "theirs": _value_words(change.theirs),
    }


def _conflict_without_base(
    request: HttpRequest,
    name: str,
    context: Context,
    manifest: object,
    conflict: StaleVersion,
) -> HttpResponse:
    """Where it is not known what the reader started with, both versions are shown.

    Sent again, what was typed replaces what is stored.
    """
    theirs = queue_manifest(queue_tree()[name])
    mine: Context = {}
    if isinstance(manifest, dict):
        mine = manifest
    both = []
    for line in differences(mine, theirs):
        both.append({**line, "field": field_words(line["field"]), "base": "not known"})
    shown = {
        "conflict": conflict.queue,
        "both": both,
        "opened": theirs,
        "version": conflict.queue.resource_version,
    }
    return _render(request, name, context | shown, 412)


def _over_theirs(request: HttpRequest, manifest: object, stored: QueueSpec) -> object:
    """What saving would write: this reader's changes over what is stored now.

    As typed, where that cannot be read.
    """
    opened = _opened_manifest(request)
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
    form, manifest, problem = _given_queue(request, name)
    as_yaml = request.POST.get("as") == "yaml"
    if problem:
        verdict = _unreadable(problem)
    else:
        wanted = manifest
        if name:
            wanted = _over_theirs(request, manifest, tree[name])
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
        "family": _siblings_figures(request, form, tree),
        "live": True,
        "as_yaml": as_yaml,
        "copies": _terminal_copies(request, name, shown_manifest),
    }
    return render(request, "queues/_findings.html", context)


def _without_name_problems(verdict: Verdict) -> Verdict:
    """While the name of a new queue is still empty, nothing is said about it."""
    others = [item for item in verdict.violations if item.field != "metadata.name"]
    return Verdict(tuple(others), verdict.notices)
