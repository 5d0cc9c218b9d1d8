"""Safe windows: a subtree is suspended, changed and resumed, one step after the other.

The page shows how far it is, whoever opens it and whenever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.typed import whole_number
from dashboard.http.access import access, may_edit, may_operate, no_such_queue, page, require_view
from dashboard.present.change_sets import STEP_TITLES, step_marks
from dashboard.present.terminal import copies
from dashboard.views.changes import set_context, shown_item, visible_row
from dashboard.views.common import actor
from scheduler.admission.violations import Rejected
from scheduler.domain.access import Permission
from scheduler.domain.change_sets import ChangeItem, Crossed, SetState
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import NotAllowed
from scheduler.domain.safe_windows import way_back
from scheduler.models import Queue, SafeWindow
from scheduler.selectors.change_sets.windows import (
    WindowStanding,
    is_previewed,
    reversal_of,
    standing_of,
    visible_windows,
)
from scheduler.services.accounts.actors import Actor
from scheduler.services.change_sets import windows
from scheduler.services.change_sets.windows import WindowDeed
from scheduler.services.files.versions import Stale

Context = dict[str, Any]
_BEGINS_AT_A_QUEUE = (
    "A safe window is for one queue and all below it, and none is named here. Open the page of the "
    "queue and press “Safe window…”."
)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new(request: HttpRequest) -> HttpResponse:
    """The first step: what suspending the queue would mean, and then to do it."""
    given = request.POST if request.method == "POST" else request.GET
    name = given.get("queue", "")
    if not name:
        return render(request, "404.html", {"missing": _BEGINS_AT_A_QUEUE}, status=404)
    require_view(request, name)
    if not Queue.objects.filter(name=name).exists():
        return no_such_queue(request, name)
    context: Context = {
        "name": name,
        "given": given,
        "copies": copies(request, ["window", "begin", name], "windows/", {"queue": name}),
    }
    try:
        if request.method == "POST":
            return _begun(request, name)
        deed = windows.begin_window(name, by=actor(request), dry_run=True)
    except NotAllowed as refusal:
        context["problem"] = refusal.message
        return render(request, "change_sets/window_new.html", context, status=409)
    except Rejected as refusal:
        context |= {"violations": refusal.violations, "taken_by": _taken_by(request, name)}
        status = 409 if refusal.by_state else 400
        return render(request, "change_sets/window_new.html", context, status=status)
    context["deed"] = deed
    return render(request, "change_sets/window_new.html", context)


def _begun(request: HttpRequest, name: str) -> HttpResponse:
    by = actor(request)
    title = request.POST.get("name", "").strip()
    deed = windows.begin_window(name, by=by, name=title)
    messages.success(request, deed.message)
    return HttpResponseRedirect(reverse("window", args=[deed.window.pk]))


def _taken_by(request: HttpRequest, name: str) -> SafeWindow | None:
    return windows.window_in_the_way(name, by=actor(request))


@require_safe
@page
def window(request: HttpRequest, number: int) -> HttpResponse:
    row = _row(request, number)
    if row is None:
        return _no_such_window(request, number)
    return _render(request, row)


def _row(request: HttpRequest, number: int) -> SafeWindow | None:
    mine = visible_windows(access(request), request.user.get_username())
    return mine.filter(pk=number).first()


def _no_such_window(request: HttpRequest, number: int) -> HttpResponse:
    missing = f"There is no safe window {number} that you may see."
    return render(request, "404.html", {"missing": missing}, status=404)


def _render(
    request: HttpRequest, found: SafeWindow, status: int = 200, **more: Any
) -> HttpResponse:
    standing = standing_of(found)
    reversal = reversal_of(found.change_set)
    context: Context = {"row": None}
    row = visible_row(request, found.change_set_id)
    if row is not None:
        context = set_context(request, row)
    context |= {
        "window": found,
        "standing": standing,
        "marks": step_marks(
            standing,
            is_reverted=reversal is not None,
            is_previewed=is_previewed(found.change_set),
        ),
        "reversal": reversal,
        "titles": STEP_TITLES,
        "queues": _queues(request, standing),
        "is_draft": found.change_set.is_draft,
        "is_applied": found.change_set.state == SetState.APPLIED.value,
        "is_discarded": found.change_set.state == SetState.DISCARDED.value,
        "may_command": _may_command(request, found.queue),
        "gives_back": _gives_back(found),
        "copies": _in_a_terminal(request, standing),
        **more,
    }
    return render(request, "change_sets/window.html", context, status=status)


def _may_command(request: HttpRequest, queue: str) -> bool:
    """One whose queue is gone can be ended by whoever sees it."""
    if not Queue.objects.filter(name=queue).exists():
        return access(request).may_anywhere(Permission.OPERATE)
    return may_operate(request, queue) and may_edit(request, queue)


def _queues(request: HttpRequest, standing: WindowStanding) -> list[Context]:
    """Every queue that it holds or held: what it was, what it is, and whether it can be edited."""
    before = standing.window.states_before
    names = dict.fromkeys([*before, *standing.queues])
    states = dict(Queue.objects.filter(name__in=names).values_list("name", "state"))
    rows = []
    for name in names:
        rows.append(
            {
                "name": name,
                "before": before[name].state.value if name in before else "",
                "now": states.get(name, ""),
                "is_inside": name in standing.queues,
                "may_edit": name in standing.queues and may_edit(request, name),
            }
        )
    return rows


def _gives_back(found: SafeWindow) -> str:
    """The verb of the command that ends it; "" where the queue was suspended before."""
    command = way_back(found.requested_before)
    if command is None:
        return ""
    return command.verb


def _in_a_terminal(request: HttpRequest, standing: WindowStanding) -> dict[str, str]:
    number = str(standing.window.pk)
    verb = "resume"
    if standing.window.change_set.is_draft:
        verb = "apply"
    return copies(request, ["window", verb, number], f"windows/{number}/{verb}/")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def abandon(request: HttpRequest, number: int) -> HttpResponse:
    """Asks first: it shows what is reverted and resumed."""
    row = _row(request, number)
    if row is None:
        return _no_such_window(request, number)
    if request.method == "POST":
        return _carry_out(request, row, _abandon)
    context: Context = {
        "window": row,
        "copies": copies(request, ["window", "abandon", str(number)], f"windows/{number}/abandon/"),
    }
    try:
        deed = windows.abandon_window(number, by=actor(request), dry_run=True)
    except _REFUSALS as refusal:
        context["problem"] = _words(refusal)
    else:
        taken_back = [shown_item(item.reversed) for item in _taken_back(deed)]
        foreseen = _foreseen(deed, reverts=bool(taken_back))
        context |= {"deed": deed, "items": taken_back, "foreseen": foreseen}
    return render(request, "change_sets/window_abandon.html", context)


def _foreseen(deed: WindowDeed, *, reverts: bool) -> str:
    """The deed's own message is in the past tense, and nothing has happened yet."""
    if reverts:
        first = "The change set will be reverted, and"
    elif deed.window.change_set.state == SetState.DISCARDED.value:
        first = "The draft will be discarded, and"
    else:
        first = "The change set stays as it is, and"
    return f"{first} {_foreseen_queue(deed)}."


def _foreseen_queue(deed: WindowDeed) -> str:
    queue = deed.window.queue
    if deed.outcome is not None:
        states = {change["name"]: change["to"] for change in deed.outcome.queues}
        if queue in states:
            return f"{queue} will be {states[queue]}"
    elif not Queue.objects.filter(name=queue).exists():
        return f"{queue} is gone, so it cannot be resumed"
    return f"{queue} stays as it is"


def _taken_back(deed: WindowDeed) -> tuple[ChangeItem, ...]:
    """What was applied and still holds: abandoning the window reverts it."""
    change_set = deed.window.change_set
    if change_set.state != SetState.APPLIED.value or reversal_of(change_set) is not None:
        return ()
    return change_set.changes


@require_http_methods(["GET", "HEAD", "POST"])
@page
def command(request: HttpRequest, number: int, verb: str) -> HttpResponse:
    """A refusal is shown at this address. To read it anew leads to the page of the window."""
    row = _row(request, number)
    if row is None:
        return _no_such_window(request, number)
    if request.method != "POST":
        return HttpResponseRedirect(reverse("window", args=[row.pk]))
    return _carry_out(request, row, _DEEDS[verb])


_Deed = Callable[[HttpRequest, int, Actor], WindowDeed]


def _carry_out(request: HttpRequest, row: SafeWindow, do: _Deed) -> HttpResponse:
    try:
        deed = do(request, row.pk, actor(request))
    except Rejected as refusal:
        status = 409 if refusal.by_state else 400
        return _render(request, row, status, violations=refusal.violations)
    except _REFUSALS as refusal:
        row.refresh_from_db()
        return _render(request, row, 409, problem=_words(refusal))
    messages.success(request, deed.message)
    for notice in deed.notices:
        messages.warning(request, notice.message)
    return HttpResponseRedirect(reverse("window", args=[row.pk]))


_REFUSALS = (NotAllowed, NotPossible, Crossed, Rejected, Stale)


def _words(refusal: Exception) -> str:
    words = str(refusal)
    if words.endswith("."):
        return words
    return f"{words}."


def _apply(request: HttpRequest, number: int, by: Actor) -> WindowDeed:
    version = whole_number(request.POST.get("version", ""))
    return windows.apply_window(number, by=by, expected_version=version)


def _revert(_request: HttpRequest, number: int, by: Actor) -> WindowDeed:
    return windows.revert_window(number, by=by)


def _resume(_request: HttpRequest, number: int, by: Actor) -> WindowDeed:
    return windows.resume_window(number, by=by)


def _suspend(_request: HttpRequest, number: int, by: Actor) -> WindowDeed:
    return windows.suspend_again(number, by=by)


def _abandon(_request: HttpRequest, number: int, by: Actor) -> WindowDeed:
    return windows.abandon_window(number, by=by)


def _collect(_request: HttpRequest, number: int, by: Actor) -> WindowDeed:
    return windows.new_draft(number, by=by)


_DEEDS: dict[str, _Deed] = {
    "apply": _apply,
    "revert": _revert,
    "resume": _resume,
    "suspend": _suspend,
    "collect": _collect,
}
