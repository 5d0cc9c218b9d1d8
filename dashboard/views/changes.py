"""Change sets: the list, one set with its differences, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.choices import problems_with
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, page
from dashboard.present.differences import differences, line_differences
from dashboard.present.terminal import copies
from dashboard.views.calendar import plan_of, plan_set, unplan_set, why_not_planned
from dashboard.views.common import actor, status_for
from dashboard.views.previews import preview_context, typed_documents, typed_minutes
from scheduler.admission.violations import Rejected, Violation
from scheduler.documents import DocumentError
from scheduler.domain.access import Permission
from scheduler.domain.change_sets import POLICY, POLICY_TEXT, QUEUE, ChangeItem, Crossed, SetState
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.plans import listed
from scheduler.domain.safe_windows import WindowState
from scheduler.models import ChangeSet, Occurrence, Preview
from scheduler.models.clock import database_now
from scheduler.selectors.change_sets.listing import visible_sets
from scheduler.selectors.change_sets.windows import (
    WindowStanding,
    standings_of,
    visible_windows,
    window_of_set,
)
from scheduler.selectors.records.feeds import page_by_number
from scheduler.services.accounts.actors import Actor
from scheduler.services.change_sets import drafts
from scheduler.services.change_sets.apply import apply_change_set, counts_in_words
from scheduler.services.change_sets.preview_jobs import TRIED
from scheduler.services.change_sets.preview_runs import cancel_preview, start_preview
from scheduler.services.change_sets.verdicts import SetVerdict, verdict_on
from scheduler.services.change_sets.wishes import remarks_on
from scheduler.services.files.versions import Stale

Context = dict[str, Any]
_STATES = {state.value.lower(): state.value for state in SetState}


@require_safe
@page
def change_sets(request: HttpRequest) -> HttpResponse:
    state = request.GET.get("state", "")
    problems = problems_with({"state": state}, {"state": tuple(_STATES)})
    found = visible_sets(access(request), request.user.get_username())
    if state in _STATES:
        found = found.filter(state=_STATES[state])
    before = request.GET.get("before", "")
    feed = page_by_number(found, whole_number(before))
    older = ""
    if feed.older:
        older = urlencode({"state": state, "before": feed.older})
    context = {
        "entries": [_entry(row) for row in feed.rows],
        "problems": problems,
        "state": state,
        "states": _STATES,
        "older": older,
        "is_first": not before,
        "may_collect": access(request).may_anywhere(Permission.OPERATE),
        "may_try": access(request).may_anywhere(Permission.SUBMIT),
        "windows": _open_windows(request),
    }
    return render(request, "change_sets/list.html", context, status=status_for(problems))


def _open_windows(request: HttpRequest) -> list[WindowStanding]:
    mine = visible_windows(access(request), request.user.get_username())
    return standings_of(mine.filter(state=WindowState.OPEN.value))


def _entry(row: ChangeSet) -> Context:
    return {"row": row, "counts": counts_in_words(row.changes)}


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new(request: HttpRequest) -> HttpResponse:
    if not access(request).may_anywhere(Permission.OPERATE):
        raise access(request).refusal(Permission.OPERATE, "root", "collect changes")
    context: Context = {"given": request.POST}
    if request.method != "POST":
        return render(request, "change_sets/new.html", context)
    try:
        documents = typed_documents(request)
        made = drafts.create_change_set(
            request.POST.get("name", ""),
            documents,
            by=actor(request),
            description=request.POST.get("description", ""),
        )
    except Rejected as refusal:
        context["violations"] = refusal.violations
        return render(request, "change_sets/new.html", context, status=400)
    except DocumentError as problem:
        context["problem"] = str(problem)
        return render(request, "change_sets/new.html", context, status=400)
    _warn(request, documents)
    return HttpResponseRedirect(reverse("change-set", args=[made.pk]))


@require_safe
@page
def change_set(request: HttpRequest, number: int) -> HttpResponse:
    row = visible_row(request, number)
    if row is None:
        return _no_such_set(request, number)
    return _render_set(request, row)


def visible_row(request: HttpRequest, number: int) -> ChangeSet | None:
    mine = visible_sets(access(request), request.user.get_username())
    return mine.select_related("reverts").filter(pk=number).first()


def _no_such_set(request: HttpRequest, number: int) -> HttpResponse:
    missing = f"There is no change set {number} that you may see."
    return render(request, "404.html", {"missing": missing}, status=404)


def _newest_preview(request: HttpRequest, row: ChangeSet) -> Context:
    """The reader's own, of the set as it is now."""
    mine = Preview.objects.filter(owner_id=request.user.pk, change_set=row, items=row.items)
    return preview_context(mine.order_by("-pk").first())


def page_of(change_set: ChangeSet) -> str:
    """Whoever works in a safe window goes on there."""
    window = window_of_set(change_set)
    if window is not None and window.is_open:
        return reverse("window", args=[window.pk])
    return reverse("change-set", args=[change_set.pk])


def _render_set(
    request: HttpRequest, row: ChangeSet, status: int = 200, **more: Any
) -> HttpResponse:
    context = {**set_context(request, row), **more}
    return render(request, "change_sets/change_set.html", context, status=status)


def set_context(request: HttpRequest, row: ChangeSet) -> Context:
    """A set with its differences, what stands against it, and its newest preview."""
    verdict = SetVerdict()
    if row.is_draft:
        verdict = verdict_on(row.changes, by=actor(request))
    mine = access(request)
    may_change = row.author == request.user.get_username() or mine.is_cluster_admin
    return {
        "row": row,
        "window": window_of_set(row),
        "items": [shown_item(item) for item in row.changes],
        "counts": counts_in_words(row.changes),
        "verdict": verdict,
        "crossed": listed([crossing.item.name for crossing in verdict.crossings]),
        "may_apply": row.is_draft and bool(row.items) and verdict.may_be_applied,
        "may_change": row.is_draft and may_change and mine.may_anywhere(Permission.OPERATE),
        "may_collect": mine.may_anywhere(Permission.OPERATE),
        "may_preview": _may_be_tried(row, verdict) and mine.may_anywhere(Permission.OPERATE),
        "next_begin": _next_begin(row),
        **plan_of(request, row),
        **_newest_preview(request, row),
        "reverted_by": row.reverted_by.order_by("pk"),
        "cancel_url": reverse("change-set-command", args=[row.pk, "cancel"]),
        "copies": copies(request, ["changes", "apply", str(row.pk)], f"changes/{row.pk}/apply/"),
    }


def _may_be_tried(row: ChangeSet, verdict: SetVerdict) -> bool:
    """A planned set is tried out for its next begin, whatever the objects are now."""
    if row.state == SetState.PLANNED.value:
        return _next_begin(row) is not None
    return row.is_draft and bool(row.items) and not verdict.crossings


def shown_item(item: ChangeItem) -> Context:
    shown: Context = {
        "kind": item.kind,
        "name": item.name,
        "operation": item.operation.value,
        "is_queue": item.kind == QUEUE,
        "exists": item.base is not None,
        "changes": [],
        "lines": [],
    }
    if item.kind == POLICY:
        before = (item.base or {}).get(POLICY_TEXT, "")
        after = (item.wanted or {}).get(POLICY_TEXT, "")
        shown["lines"] = line_differences(before, after)
    else:
        shown["changes"] = differences(item.base, item.wanted)
    return shown


@require_http_methods(["GET", "HEAD", "POST"])
@page
def command(request: HttpRequest, number: int, verb: str) -> HttpResponse:
    """One deed, and back to the page of the set, or of the new one.

    A refusal is shown at this address. To read it anew leads to the page of the set.
    """
    row = visible_row(request, number)
    if row is None:
        return _no_such_set(request, number)
    if request.method != "POST":
        return HttpResponseRedirect(reverse("change-set", args=[row.pk]))
    try:
        shown = _DEEDS[verb](request, row, actor(request))
    except Rejected as refusal:
        more = {"violations": refusal.violations, "refused": True, **_typed(request, verb)}
        if verb == "plan":
            more |= why_not_planned(refusal)
        return _render_set(request, row, 400, **more)
    except DocumentError as problem:
        return _render_set(request, row, 400, problem=str(problem), **_typed(request, verb))
    except Crossed:
        return _render_set(request, row, 409, refused=True, not_applied=verb == "apply")
    except (NotPossible, Stale) as refusal:
        row.refresh_from_db()
        return _render_set(request, row, 409, problem=str(refusal))
    return HttpResponseRedirect(page_of(shown))


def _typed(request: HttpRequest, verb: str) -> Context:
    """What stays in the form that was refused."""
    return {f"typed_to_{verb}": request.POST}


def _apply(request: HttpRequest, row: ChangeSet, by: Actor) -> ChangeSet:
    version = whole_number(request.POST.get("version", ""))
    applied = apply_change_set(row.pk, by=by, expected_version=version)
    messages.success(request, applied.message)
    for notice in applied.notices:
        messages.warning(request, notice.message)
    return applied.change_set


def _discard(request: HttpRequest, row: ChangeSet, by: Actor) -> ChangeSet:
    discarded = drafts.discard(row.pk, by=by)
    messages.success(request, f"Discarded “{row.name}”.")
    return discarded


def _revert(request: HttpRequest, row: ChangeSet, by: Actor) -> ChangeSet:
    made = drafts.revert(row.pk, by=by)
    messages.info(request, "Nothing is reverted yet. Look at this change set, then apply it.")
    return made


def _refresh(request: HttpRequest, row: ChangeSet, by: Actor) -> ChangeSet:
    renewed = drafts.bring_up_to_date(row.pk, by=by)
    messages.success(request, f"“{row.name}” is up to date. Look at it again before you apply it.")
    return renewed


def _rename(request: HttpRequest, row: ChangeSet, by: Actor) -> ChangeSet:
    name = request.POST.get("name", "")
    return drafts.rename(row.pk, name, request.POST.get("description", ""), by=by)


def _add(request: HttpRequest, row: ChangeSet, by: Actor) -> ChangeSet:
    documents = typed_documents(request)
    changed = drafts.add_documents(row.pk, documents, by=by)
    _warn(request, documents)
    return changed


def _warn(request: HttpRequest, documents: list[Any]) -> None:
    """Of fields that nobody knows."""
    if documents:
        for remark in remarks_on(documents):
            messages.warning(request, f"{remark.message}.")


def _remove(request: HttpRequest, row: ChangeSet, by: Actor) -> ChangeSet:
    kind = request.POST.get("kind", "")
    return drafts.take_out(row.pk, kind, request.POST.get("name", ""), by=by)


def _preview(request: HttpRequest, row: ChangeSet, by: Actor) -> ChangeSet:
    documents = typed_documents(request)
    _refuse_other_kinds(documents)
    start_preview(
        by=by,
        change_set=row,
        documents=documents,
        minutes=typed_minutes(request),
        begins_at=_next_begin(row),
    )
    return row


def _refuse_other_kinds(documents: list[Any]) -> None:
    """What is no job belongs into the set."""
    for document in documents:
        if not isinstance(document, dict) or document.get("kind") not in TRIED:
            message = "Only jobs can be tried out together with a change set."
            fix = "add other documents to the change set"
            raise Rejected([Violation("invalid_kind", "", "kind", message, fix)])


def _next_begin(row: ChangeSet) -> datetime | None:
    """Of a planned set; None for one that is applied now."""
    now = database_now()
    turns = Occurrence.objects.filter(plan__change_set=row, plan__state="Active")
    coming = turns.filter(state="Planned", begins_at__gt=now).order_by("begins_at")
    return coming.values_list("begins_at", flat=True).first()


def _cancel(request: HttpRequest, row: ChangeSet, _by: Actor) -> ChangeSet:
    for preview in Preview.objects.filter(owner_id=request.user.pk, change_set=row):
        if preview.is_open:
            cancel_preview(preview)
            messages.info(request, "The preview was cancelled.")
    return row


_DEEDS: dict[str, Callable[[HttpRequest, ChangeSet, Actor], ChangeSet]] = {
    "apply": _apply,
    "discard": _discard,
    "revert": _revert,
    "refresh": _refresh,
    "rename": _rename,
    "add": _add,
    "remove": _remove,
    "preview": _preview,
    "cancel": _cancel,
    "plan": plan_set,
    "unplan": unplan_set,
}
