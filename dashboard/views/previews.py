"""Previews: changes, jobs and lost nodes are tried out on a copy of the cluster."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.forms.queue_input import MOST_YAML
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, page
from dashboard.present.previews import named_gangs, named_queues, shown_preview
from dashboard.present.terminal import copies_of_manifest
from dashboard.views.common import actor
from scheduler.admission.violations import Rejected, Violation
from scheduler.documents import DocumentError, read_documents
from scheduler.domain.access import Permission
from scheduler.domain.change_sets import POLICY
from scheduler.models import Preview
from scheduler.selectors.change_sets.still_there import gangs_still_there, queues_still_there
from scheduler.services.change_sets.preview_runs import cancel_preview, start_preview
from scheduler.yaml_texts import to_yaml_documents

Context = dict[str, Any]
_NEWEST = 20


@require_http_methods(["GET", "HEAD", "POST"])
@page
def previews(request: HttpRequest) -> HttpResponse:
    """The reader's own, and a form for another."""
    mine = access(request)
    mine.require_anywhere(Permission.SUBMIT, "try anything out")
    if request.method != "POST":
        return _render_form(request, {"lost": request.GET.get("lose", "")[:253]})
    try:
        made = start_preview(
            by=actor(request),
            documents=typed_documents(request),
            lost_nodes=_typed_nodes(request),
            minutes=typed_minutes(request),
        )
    except Rejected as refusal:
        context = {"violations": refusal.violations, "lost": request.POST.get("lost", "")}
        return _render_form(request, context, 400)
    except DocumentError as problem:
        context = {"problem": str(problem), "lost": request.POST.get("lost", "")}
        return _render_form(request, context, 400)
    return HttpResponseRedirect(reverse("preview", args=[made.pk]))


def typed_documents(request: HttpRequest) -> list[Any]:
    """Raises `DocumentError`, also for a text that is too long: a part of it may mean another."""
    text = request.POST.get("yaml", "")
    if not text.strip():
        return []
    return list(read_documents(text, MOST_YAML))


def typed_minutes(request: HttpRequest) -> int:
    """Raises `Rejected` for what is no number."""
    typed = request.POST.get("minutes", "").strip()
    minutes = whole_number(typed or "60")
    if minutes is None:
        message = f"“{typed[:20]}” is not a number of minutes."
        raise Rejected([Violation("invalid_value", "", "minutes", message, "write one like 60")])
    return minutes


def _typed_nodes(request: HttpRequest) -> list[str]:
    return request.POST.get("lost", "").replace(",", " ").split()


def _render_form(request: HttpRequest, context: Context, status: int = 200) -> HttpResponse:
    rows = Preview.objects.filter(owner_id=request.user.pk).select_related("change_set")
    context |= {
        "given": request.POST,
        "entries": [{"row": row, "words": question_words(row)} for row in rows[:_NEWEST]],
        "may_operate": access(request).may_anywhere(Permission.OPERATE),
    }
    return render(request, "previews/list.html", context, status=status)


def question_words(row: Preview) -> str:
    """ "job default/train, without node-1, change set 7"."""
    words = []
    if row.change_set is not None:
        words.append(row.change_set.name)
    elif row.items:
        words += [_item_words(item) for item in row.items[:3]]
    for job in row.jobs[:3]:
        words.append(f"job {job['metadata']['name']}")
    for name in row.lost_nodes[:3]:
        words.append(f"without {name}")
    asked = len(row.jobs) + len(row.lost_nodes)
    if row.change_set is None:
        asked += len(row.items)
    else:
        asked += 1
    if asked > len(words):
        words.append(f"{asked - len(words)} more")
    return ", ".join(words)


def _item_words(item: dict[str, Any]) -> str:
    if item["kind"] == POLICY:
        return "the policy"  # there is one
    return f"{item['kind']} {item['name']}"


def preview_context(preview: Preview | None) -> Context:
    told = None
    if preview is not None and preview.result is not None:
        told = shown_preview(preview.result)
        told["falls_short"] = _falls_short(preview)
        told["known_queues"] = queues_still_there(named_queues(told))
        told["known_gangs"] = gangs_still_there(named_gangs(told))
    return {"preview": preview, "told": told}


def _falls_short(preview: Preview) -> bool:
    """Whether the time ran out on the way to the begin that it is about."""
    if preview.begins_at is None or preview.result is None:
        return False
    return datetime.fromisoformat(preview.result["asOf"]) < preview.begins_at


@require_safe
@page
def preview(request: HttpRequest, number: int) -> HttpResponse:
    row = _row(request, number)
    if row is None:
        return _no_such_preview(request, number)
    documents = [*_item_documents(row), *row.jobs]
    text = to_yaml_documents(documents)
    line = ["whatif", "--minutes", str(row.minutes)]
    if documents:
        line += ["-f", "-"]
    for name in row.lost_nodes:
        line += ["--lose", name]
    context: Context = {
        **preview_context(row),
        "words": question_words(row),
        "documents": text if documents else "",
        "cancel_url": reverse("preview-cancel", args=[row.pk]),
    }
    if documents:
        context["copies"] = copies_of_manifest(request, text, line, "previews/")
    return render(request, "previews/preview.html", context)


def _item_documents(row: Preview) -> list[Any]:
    found = []
    for item in row.items:
        if item["wanted"] is None:
            name = {"name": item["name"]}
            found.append({"kind": item["kind"], "metadata": name, "$patch": "delete"})
        elif item["kind"] == "Policy":
            found.append({"kind": "Policy", "spec": item["wanted"]})
        else:
            found.append({"kind": item["kind"], **item["wanted"]})
    return found


def _row(request: HttpRequest, number: int) -> Preview | None:
    mine = Preview.objects.filter(owner_id=request.user.pk)
    return mine.select_related("change_set").filter(pk=number).first()


def _no_such_preview(request: HttpRequest, number: int) -> HttpResponse:
    missing = f"There is no preview {number} of yours. Previews are kept for a while only."
    return render(request, "404.html", {"missing": missing}, status=404)


@require_POST
@page
def cancel(request: HttpRequest, number: int) -> HttpResponse:
    row = _row(request, number)
    if row is None:
        return _no_such_preview(request, number)
    if cancel_preview(row):
        messages.info(request, "The preview was cancelled.")
    return HttpResponseRedirect(reverse("preview", args=[number]))
