"""The form of a queue is sent: save it, or show it again with what stands against it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from dashboard.forms.queue import QueueForm, differences, judge
from dashboard.forms.queue_input import form_of_reading
from dashboard.forms.typed import whole_number
from dashboard.http.access import no_such_queue
from dashboard.views.common import actor, wants_fragment
from dashboard.views.queue_collect import collected_response
from dashboard.views.queue_conflicts import changes_in_words, conflict_page, conflict_without_base
from dashboard.views.queue_form_page import render_form
from dashboard.views.queue_typed import (
    full_verdict,
    given_queue,
    opened_manifest,
    unreadable,
)
from scheduler.admission.reading.queue import queue_manifest
from scheduler.admission.violations import Rejected, Verdict
from scheduler.domain.queues import QueueSpec
from scheduler.models import Queue
from scheduler.selectors.queues.facts import admission_scene
from scheduler.services.queues.create_update import (
    EditConflict,
    Saved,
    StaleVersion,
    create_queue,
    update_queue,
)
from scheduler.yaml_texts import to_yaml

Context = dict[str, Any]


def save(request: HttpRequest, name: str) -> HttpResponse:
    form, manifest, problem = given_queue(request, name)
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
        context |= {"verdict": unreadable(problem), "refused": True}
        return render_form(request, name, context, 400)
    if form.problems():
        verdict = full_verdict(request, name, form, manifest)
        return render_form(request, name, context | {"verdict": verdict, "refused": True}, 400)
    try:
        return _stored_response(request, name, manifest)
    except Rejected as refusal:
        context |= {"verdict": Verdict(refusal.violations, refusal.notices), "refused": True}
        status = 400
        if refusal.by_state:
            status = 409
        return render_form(request, name, context, status)
    except EditConflict as conflict:
        return conflict_page(request, name, context, conflict)
    except StaleVersion as conflict:
        return conflict_without_base(request, name, context, manifest, conflict)
    except Queue.DoesNotExist:
        return no_such_queue(request, name)


def _stored_response(request: HttpRequest, name: str, manifest: object) -> HttpResponse:
    if "collect" in request.POST:
        return collected_response(request, name, manifest)
    saved = _store(request, name, manifest)
    _add_messages(request, saved, name)
    return _saved_response(request, saved.queue.name)


def _store(request: HttpRequest, name: str, manifest: object) -> Saved:
    if not name:
        return create_queue(manifest, by=actor(request))
    return update_queue(
        name,
        manifest,
        by=actor(request),
        expected_version=whole_number(request.POST.get("version", "")),
        opened=opened_manifest(request),
    )


def _add_messages(request: HttpRequest, saved: Saved, name: str) -> None:
    message = saved.message
    if name and saved.changed:
        message = f"Saved {name}. {saved.message}"
    messages.success(request, message)
    if saved.kept:
        kept = changes_in_words(saved.kept)
        messages.info(request, f"Changed by others meanwhile, and kept: {kept}.")
    for notice in saved.notices:
        messages.warning(request, notice.message)


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
    wants_yaml = request.POST["show"] == "yaml"
    obstacles = form.problems()
    if problem:
        obstacles = unreadable(problem).violations
    elif was_yaml and not wants_yaml:
        turned, obstacles = form_of_reading(manifest, old)
        form = turned or form
    if obstacles:
        verdict = Verdict(obstacles)
        as_yaml = was_yaml
    else:
        verdict = judge(manifest, tree, facts, name, actor(request))
        as_yaml = wants_yaml
    if was_yaml:
        text = request.POST.get("yaml", "")
    else:
        text = to_yaml(manifest)
    context = {
        "form": form,
        "yaml": text,
        "manifest": manifest,
        "as_yaml": as_yaml,
        "verdict": verdict,
        "unsaved": _is_unsaved(manifest, old),
    }
    return render_form(request, name, context)


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
    return render_form(request, name, context)
