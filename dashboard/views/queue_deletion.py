"""Delete a queue at once, or close it now and delete it when it has drained.

The page lists what prevents it, and what would be gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.http.access import may_operate, no_such_queue, page, require_edit
from dashboard.present.terminal import copies
from dashboard.views.common import actor, given_fields, wants_fragment
from scheduler.admission.rules.queue_deletion import PROTECTED
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.lifecycle import NotAllowed
from scheduler.models import PlannedDeletion, Queue
from scheduler.services.cluster.kubectl_lines import queue_delete_line
from scheduler.services.queues.deletion import delete_queue
from scheduler.services.queues.planned_deletion import (
    PASSING,
    CloseThenDelete,
    close_then_delete,
    keep_queue,
)

Context = dict[str, Any]


@require_http_methods(["GET", "HEAD", "POST"])
@page
def delete(request: HttpRequest, name: str) -> HttpResponse:
    require_edit(request, name, "delete it")
    is_order = request.method == "POST"
    cascade = given_fields(request).get("cascade") == "on"
    context: Context = {
        "name": name,
        "cascade": cascade,
        "has_children": Queue.objects.filter(parent__name=name).exists(),
        "copies": _in_a_terminal(request, name, cascade=cascade),
    }
    shown = request.POST.getlist("queue") or None
    try:
        deleted = delete_queue(
            name,
            cascade=cascade,
            by=actor(request),
            dry_run=not is_order,
            shown=shown,
        )
    except Queue.DoesNotExist:
        return no_such_queue(request, name)
    except Rejected as refusal:
        return _answer(request, "delete", context | _blocked(request, name, refusal), status=409)
    if is_order:
        messages.success(request, deleted.message)
        return _redirect(request, reverse("queues"))
    return _answer(request, "delete", context | {"deleted": deleted})


def _in_a_terminal(request: HttpRequest, name: str, *, cascade: bool) -> dict[str, str]:
    words = ["queue", "delete", name]
    url = f"queues/{quote(name)}/"
    if cascade:
        words.append("--cascade")
        url += "?cascade=true"
        return copies(request, words, url, method="DELETE")
    lines = copies(request, words, url, method="DELETE")
    return {**lines, "kubectl": queue_delete_line(name)}


def _blocked(request: HttpRequest, name: str, refusal: Rejected) -> Context:
    """What prevents it. Some of it can be waited for: it passes once the queue is closed."""
    state = Queue.objects.values_list("state", flat=True).get(name=name)
    planned = PlannedDeletion.objects.filter(queue__name=name).first()
    passing = (*PASSING, "has_children")
    passes = all(blocker.rule_id in passing for blocker in refusal.violations)
    is_protected = name in PROTECTED
    can_be_closed = not is_protected and state in ("Open", "Suspended")
    return {
        "blockers": refusal.violations,
        "state": state,
        "planned": planned,
        "never": is_protected,
        "may_close": can_be_closed and may_operate(request, name),
        "may_close_first": passes and planned is None and may_operate(request, name),
    }


@require_http_methods(["GET", "HEAD", "POST"])
@page
def close_first(request: HttpRequest, name: str) -> HttpResponse:
    """Close it now, delete it when it has drained.

    A GET shows exactly what would be gone; a POST says what was shown.
    """
    require_edit(request, name, "delete it")
    is_order = request.method == "POST"
    shown = None
    if is_order:
        shown = request.POST.getlist("queue")
    reason = request.POST.get("reason", "")
    try:
        planned = close_then_delete(
            name,
            shown=shown,
            by=actor(request),
            reason=reason,
            dry_run=not is_order,
        )
    except Queue.DoesNotExist:
        return no_such_queue(request, name)
    except Rejected as refusal:
        return _not_closed(request, name, refusal.violations)
    except NotAllowed as refusal:
        blocker = Violation(refusal.rule_id, name, "status.state", refusal.message, refusal.fix)
        return _not_closed(request, name, [blocker])
    if not is_order:
        context = {
            "name": name,
            "plan": planned,
            "copies": _close_first_in_a_terminal(request, planned),
        }
        return _answer(request, "close_first", context)
    messages.success(request, planned.message)
    if planned.is_gone:
        return _redirect(request, reverse("queues"))
    return _redirect(request, reverse("queue", args=[name]))


def _not_closed(request: HttpRequest, name: str, blockers: Sequence[Violation]) -> HttpResponse:
    context = {"name": name, "blockers": blockers}
    return _answer(request, "close_first", context, status=409)


def _close_first_in_a_terminal(request: HttpRequest, planned: CloseThenDelete) -> dict[str, str]:
    name = planned.queues[-1]
    words = ["queue", "delete", name, "--close-first"]
    url = f"queues/{quote(name)}/?close_first=true"
    if len(planned.queues) > 1:
        words.append("--cascade")
        url += "&cascade=true"
    return copies(request, words, url, method="DELETE")


@require_POST
@page
def keep(request: HttpRequest, name: str) -> HttpResponse:
    require_edit(request, name, "keep it")
    try:
        kept = keep_queue(name, by=actor(request))
    except Queue.DoesNotExist:
        return no_such_queue(request, name)
    words = f"Nobody was going to delete {name}."
    if kept:
        words = f"{name} is kept: it will not be deleted."
    messages.info(request, words)
    return HttpResponseRedirect(reverse("queue", args=[name]))


def _answer(request: HttpRequest, what: str, context: Context, status: int = 200) -> HttpResponse:
    """Dialogs take only answers with 200. A page's status says that nothing was done."""
    if wants_fragment(request):
        return render(request, f"queues/_{what}.html", context)
    if request.method != "POST":
        status = 200
    return render(request, f"queues/{what}.html", context, status=status)


def _redirect(request: HttpRequest, url: str) -> HttpResponse:
    if wants_fragment(request):
        answer = HttpResponse()
        answer["X-Go-To"] = url
        return answer
    return HttpResponseRedirect(url)
