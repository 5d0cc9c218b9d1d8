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
from dashboard.http.access import (
    may_edit,
    may_operate,
    may_submit_to,
    no_such_queue,
    page,
    require_view,
)
from dashboard.present.terminal import copies, together
from dashboard.views.common import (
    actor,
    given_fields,
    next_url,
    render_page_or_part,
    show_result,
    wants_fragment,
)
from scheduler.admission.rules.queue_deletion import PROTECTED
from scheduler.admission.violations import Rejected
from scheduler.domain.lifecycle import NotAllowed, QueueCommand, command_named
from scheduler.domain.plans import NO_LOAD, Load
from scheduler.models import PlannedDeletion, Queue
from scheduler.selectors.accounts.preferences import preference_of
from scheduler.selectors.queues.loads import queue_loads
from scheduler.selectors.queues.page import command_obstacles
from scheduler.services.cluster.kubectl_lines import queue_command_line
from scheduler.services.cluster.mirrored import how_to_change
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
    takes_jobs = queue.state in TAKES_JOBS and not queue.children.exists()
    context = {
        "name": name,
        "next": request.GET.get("next", ""),
        "is_pinned": name in preference_of(request.user).pinned_queues,
        "entries": _entries(name),
        "how_to_change": how_to_change("Queue", name),
        "may_operate": may_operate(request, name),
        "may_edit": may_edit(request, name),
        "may_delete": may_edit(request, name) and name not in PROTECTED,
        "may_submit": takes_jobs and may_submit_to(request, name),
    }
    return render_page_or_part(request, "queues/actions.html", "queues/_actions.html", context)


def _entries(name: str) -> list[Context]:
    obstacles = command_obstacles(name)
    entries = []
    for order in QueueCommand:
        entry = _command_words(order)
        entry["why"] = obstacles[order]
        entry["url"] = reverse("queue-command", args=[name, order.verb])
        entries.append(entry)
    return entries


def _command_words(order: QueueCommand) -> Context:
    return {"verb": order.verb, "title": PROGRESS[order.verb], "meaning": MEANING[order.verb]}


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
    context |= _command_words(order)
    context |= {
        "name": name,
        "next": next_url(request, reverse("queue", args=[name])),
        "copies": _in_a_terminal(request, name, order.verb),
        "drops": None,
    }
    if order is not QueueCommand.CLOSE:
        context["drops"] = PlannedDeletion.objects.filter(queue__name=name).first()
    if wants_fragment(request):
        # A dialog shows only what is answered with 200.
        return render(request, "queues/_command.html", context)
    return render(request, "queues/command.html", context, status=status)


def _in_a_terminal(request: HttpRequest, name: str, verb: str) -> dict[str, str]:
    lines = copies(request, ["queue", verb, name], f"queues/{quote(name)}/{verb}/", {"reason": ""})
    return {**lines, "kubectl": queue_command_line(verb, name)}


def _carry_out(request: HttpRequest, name: str, order: QueueCommand) -> HttpResponse:
    reason = request.POST.get("reason", "")
    try:
        outcome = command_queue(name, order, by=actor(request), reason=reason)
    except Queue.DoesNotExist:
        return no_such_queue(request, name)
    except NotAllowed as refusal:
        return _show(request, name, order, {"refusal": refusal}, status=409)
    except Rejected as refusal:
        answer: Context = {"refusal": _not_allowed(name, refusal)}
        return _show(request, name, order, answer, status=409)
    context: Context = {"done": outcome, "undo": _undo(outcome)}
    if wants_fragment(request):
        return _show(request, name, order, context)
    show_result(request, outcome.message, changed=outcome.changed)
    return HttpResponseRedirect(next_url(request, reverse("queue", args=[name])))


def _not_allowed(name: str, refusal: Rejected) -> NotAllowed:
    """What a real cluster refuses, told as any other refusal of a command."""
    first = refusal.violations[0]
    return NotAllowed(str(refusal), rule_id=first.rule_id, queue=name, fix=first.fix)


def _undo_of_several(results: list[Context], order: QueueCommand) -> Context | None:
    """Where one command leads all that were changed back to where they were."""
    changed = [result for result in results if result["changes"]]
    verbs = set()
    for result in changed:
        verbs.add(_verb_back(order, result["before"]))
    if len(verbs) != 1:
        return None
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
    for change in outcome.queues:
        if change["name"] == outcome.queue:
            return str(change["from"])
    return ""


@require_http_methods(["GET", "HEAD", "POST"])
@page
def bulk(request: HttpRequest) -> HttpResponse:
    """The same for several queues: command=suspend&queue=a&queue=b. A refused one stops no other.

    The question is a POST too, since no address holds the names of a thousand queues. Only
    `confirmed` carries it out.
    """
    given = given_fields(request)
    is_confirmed = request.POST.get("confirmed") == "1"
    order = command_named(given.get("command", ""))
    names = sorted(set(given.getlist("queue")))
    if order is None or not names:
        words = "Nothing was done: tick at least one queue and choose what to do."
        messages.warning(request, words)
        return HttpResponseRedirect(reverse("queues"))
    reason = request.POST.get("reason", "")
    orders = [QueueOrder(name, order, reason) for name in names]
    outcomes = command_queues(
        orders, by=actor(request), dry_run=not is_confirmed, needs_all_rights=True
    )
    results = []
    for name, outcome in zip(names, outcomes, strict=True):
        results.append(_result(name, outcome))
    context = _command_words(order) | {
        "names": names,
        "results": results,
        "able": sum(result["changes"] for result in results),
        "users": _users_of(results),
        "load": None,
        "done": is_confirmed,
        "next": next_url(request, reverse("queues")),
        "undo": None,
        "copies": together(_in_a_terminal(request, name, order.verb) for name in names),
    }
    if is_confirmed:
        context["undo"] = _undo_of_several(results, order)
    else:
        context["load"] = _load(results)
    return render_page_or_part(request, "queues/bulk.html", "queues/_bulk.html", context)


def _users_of(results: list[Context]) -> list[str]:
    users: set[str] = set()
    for result in results:
        users.update(result["users"])
    return sorted(users)


def _load(results: list[Context]) -> Load:
    """What is in all queues that would change, each counted once.

    A queue may change with its parent and by itself.
    """
    names: set[str] = set()
    for result in results:
        if result["changes"]:
            names.update(change["name"] for change in result["queues"])
    loads = queue_loads(names)
    return sum((loads.get(name, NO_LOAD) for name in names), NO_LOAD)


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
