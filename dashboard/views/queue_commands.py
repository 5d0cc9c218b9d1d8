"""Open, close, suspend, resume. A GET shows what would happen, a POST does it.

Both work without JavaScript.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.job import TAKES_JOBS
from dashboard.http.access import access, may_edit, may_operate, no_such_queue, page, require_view
from dashboard.present.terminal import copies, together
from dashboard.views.common import actor, next_url, wants_fragment
from scheduler.admission.rules.queues import PROTECTED
from scheduler.domain.access import Permission
from scheduler.domain.lifecycle import NotAllowed, QueueCommand, command_named
from scheduler.domain.plans import NO_LOAD, Load
from scheduler.models import PlannedDeletion, Queue
from scheduler.selectors.queues.loads import queue_loads
from scheduler.selectors.queues.page import command_obstacles
from scheduler.services.queues.commands import (
    CommandOutcome,
    QueueOrder,
    command_queue,
    command_queues,
)

Context = dict[str, Any]

MEANING = {
    "open": "Takes jobs and schedules them.",
    "close": "Takes no new jobs; what is in it drains, then it is Closed.",
    "suspend": "Takes jobs but starts none; what runs goes on running.",
    "resume": "Ends the suspension: what waits may start.",
}
PROGRESS = {"open": "Open", "close": "Close", "suspend": "Suspend", "resume": "Resume"}


@require_safe
@page
def actions(request: HttpRequest, name: str) -> HttpResponse:
    """All that can be done to a queue now; what cannot says why."""
    require_view(request, name)
    queue = Queue.objects.filter(name=name).first()
    if queue is None:
        return no_such_queue(request, name)
    obstacles = {command.verb: why for command, why in command_obstacles(name).items()}
    context = {
        "name": name,
        "next": request.GET.get("next", ""),
        "entries": [
            {
                "verb": verb,
                "title": PROGRESS[verb],
                "meaning": MEANING[verb],
                "why": obstacles[verb],
                "url": reverse("queue-command", args=[name, verb]),
            }
            for verb in PROGRESS
        ],
        "may_operate": may_operate(request, name),
        "may_edit": may_edit(request, name),
        "may_delete": may_edit(request, name) and name not in PROTECTED,
        "may_submit": access(request).may(Permission.SUBMIT, name)
        and queue.state in TAKES_JOBS
        and not queue.children.exists(),
    }
    return render(
        request,
        "queues/_actions.html" if wants_fragment(request) else "queues/actions.html",
        context,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@page
def command(request: HttpRequest, name: str, verb: str) -> HttpResponse:
    order = command_named(verb)
    assert order is not None  # the URL takes only the four verbs
    if request.method == "POST":
        return _carry_out(request, name, order)
    try:
        planned = command_queue(name, order, by=actor(request), dry_run=True)
        return _show(request, name, order, {"outcome": planned})
    except Queue.DoesNotExist:
        return no_such_queue(request, name)
    except NotAllowed as refusal:
        return _show(request, name, order, {"refusal": refusal})


def _show(
    request: HttpRequest, name: str, order: QueueCommand, context: Context, status: int = 200
) -> HttpResponse:
    context |= {
        "name": name,
        "verb": order.verb,
        "title": PROGRESS[order.verb],
        "meaning": MEANING[order.verb],
        "next": next_url(request, reverse("queue", args=[name])),
        "copies": _in_a_terminal(request, name, order.verb),
        "drops": PlannedDeletion.objects.filter(queue__name=name).first()
        if order is not QueueCommand.CLOSE
        else None,
    }
    if wants_fragment(request):
        return render(
            request, "queues/_command.html", context
        )  # htmx shows only what is answered with 200
    return render(request, "queues/command.html", context, status=status)


def _in_a_terminal(request: HttpRequest, name: str, verb: str) -> dict[str, str]:
    return copies(request, ["queue", verb, name], f"queues/{quote(name)}/{verb}/", {"reason": ""})


def _carry_out(request: HttpRequest, name: str, order: QueueCommand) -> HttpResponse:
    try:
        outcome = command_queue(
            name, order, by=actor(request), reason=request.POST.get("reason", "")
        )
    except Queue.DoesNotExist:
        return no_such_queue(request, name)
    except NotAllowed as refusal:
        return _show(request, name, order, {"refusal": refusal}, status=409)
    context: Context = {"done": outcome, "undo": _undo(outcome)}
    if wants_fragment(request):
        return _show(request, name, order, context)
    messages.add_message(
        request, messages.SUCCESS if outcome.changed else messages.INFO, outcome.message
    )
    return HttpResponseRedirect(next_url(request, reverse("queue", args=[name])))


def _undo_of_several(results: list[Context], order: QueueCommand) -> Context | None:
    """Where one command leads all that were changed back to where they were."""
    changed = [result for result in results if result["changes"]]
    verbs = {_verb_back(order, result["before"]) for result in changed}
    verb = None
    if len(verbs) == 1:
        verb = verbs.pop()
    if not verb:
        return None
    return {"verb": verb, "title": PROGRESS[verb], "names": [result["name"] for result in changed]}


_BACK = {"Open": "open", "Closing": "close", "Closed": "close", "Suspended": "suspend"}


def _verb_back(order: QueueCommand, before: str) -> str | None:
    if order is QueueCommand.SUSPEND and before == "Open":
        return "resume"
    return _BACK.get(before)


def _undo(outcome: CommandOutcome) -> Context | None:
    """The command that leads back to where the queue was, if there is one."""
    before = _before(outcome)
    verb = _verb_back(outcome.action, before)
    if not outcome.changed or not verb:
        return None
    return {
        "verb": verb,
        "title": PROGRESS[verb],
        "url": reverse("queue-command", args=[outcome.queue, verb]),
        "state": before,
    }


def _before(outcome: CommandOutcome) -> str:
    return next(
        (change["from"] for change in outcome.queues if change["name"] == outcome.queue), ""
    )


@require_http_methods(["GET", "HEAD", "POST"])
@page
def bulk(request: HttpRequest) -> HttpResponse:
    """The same for several queues: command=suspend&queue=a&queue=b. A refused one stops no other.

    The question is a POST too, since no address holds the names of a thousand queues. Only
    `confirmed` carries it out.
    """
    if request.method == "POST":
        data = request.POST
    else:
        data = request.GET
    is_confirmed = request.POST.get("confirmed") == "1"
    order, names = command_named(data.get("command", "")), sorted(set(data.getlist("queue")))
    if order is None or not names:
        messages.warning(
            request, "Nothing was done: tick at least one queue and choose what to do."
        )
        return HttpResponseRedirect(reverse("queues"))
    reason = request.POST.get("reason", "")
    orders = [QueueOrder(name, order, reason) for name in names]
    outcomes = command_queues(
        orders, by=actor(request), dry_run=not is_confirmed, needs_all_rights=True
    )
    results = [_result(name, outcome) for name, outcome in zip(names, outcomes, strict=True)]
    context = {
        "verb": order.verb,
        "title": PROGRESS[order.verb],
        "meaning": MEANING[order.verb],
        "names": names,
        "results": results,
        "able": sum(result["changes"] for result in results),
        "users": sorted({user for result in results for user in result["users"]}),
        "load": None if is_confirmed else _load(results),
        "done": is_confirmed,
        "next": next_url(request, reverse("queues")),
        "undo": _undo_of_several(results, order) if is_confirmed else None,
        "copies": together(_in_a_terminal(request, name, order.verb) for name in names),
    }
    return render(
        request, "queues/_bulk.html" if wants_fragment(request) else "queues/bulk.html", context
    )


def _load(results: list[Context]) -> Load:
    """What is in all queues that would change, each counted once.

    A queue may change with its parent and by itself.
    """
    felt = {
        change["name"] for result in results if result["changes"] for change in result["queues"]
    }
    loads = queue_loads(felt)
    return sum((loads.get(name, NO_LOAD) for name in felt), NO_LOAD)


def _result(name: str, outcome: CommandOutcome | Exception) -> Context:
    result: Context = {"name": name, "changes": False, "users": [], "warnings": [], "queues": []}
    if isinstance(outcome, Queue.DoesNotExist):
        return result | {"message": f"{name} is no longer there."}
    if isinstance(outcome, Exception):
        return result | {"message": str(outcome)}
    return result | {
        "before": _before(outcome),
        "changes": outcome.changed,
        "message": outcome.message,
        "users": outcome.users,
        "warnings": outcome.warnings,
        "queues": outcome.queues,
        "podgroups": outcome.podgroups,
        "pods": outcome.pods,
    }
