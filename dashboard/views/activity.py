"""/activity/: what happened, newest first. /audit/: who changed what and why; for export too."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.forms.choices import problems_with, stored_word
from dashboard.forms.typed import moment_of, whole_number
from dashboard.http.access import access, page
from dashboard.http.exports import all_rows, as_csv, as_json_list, streamed
from dashboard.present.differences import differences, line_differences
from dashboard.present.terminal import copies
from dashboard.views.common import actor, status_for
from scheduler.domain.access import Permission
from scheduler.domain.audit_actions import ACTIONS, KINDS, AuditArea, known_actions
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.queues import ROOT
from scheduler.models import AuditEntry
from scheduler.selectors.accounts.preferences import preference_of
from scheduler.selectors.change_sets.listing import set_of_entry
from scheduler.selectors.change_sets.reverts import inverse_of_entry
from scheduler.selectors.records.feeds import (
    EVENT_KINDS,
    EVERYTHING,
    Span,
    audit_for,
    deeds_alone,
    event_page,
    events_for,
    only_changes,
    page_by_number,
)
from scheduler.services.accounts.actors import Door
from scheduler.services.change_sets.drafts import revert_entry

Context = dict[str, Any]
_EVENT_FILTERS = ("kind", "type", "queue", "reason", "from", "until", "q")
_EVENT_WORDS = {"kind": (EVERYTHING, *EVENT_KINDS), "type": ("normal", "warning")}
_AUDIT_FILTERS = (
    "deeds",
    "actor",
    "action",
    "kind",
    "queue",
    "name",
    "door",
    "request",
    "since",
    "from",
    "until",
    "q",
)
_DEEDS = {
    "admin": "Admins’ deeds",
    "work": "Submits and jobs",
    "own": "Own settings",
    "all": "Everything",
}
_AUDIT_WORDS = {
    "deeds": tuple(_DEEDS),
    "action": known_actions(),
    "kind": KINDS,
    "door": tuple(door.value for door in Door),
}


def _given_filters(request: HttpRequest, names: Iterable[str]) -> dict[str, str]:
    given = {}
    for name in names:
        text = request.GET.get(name, "").strip()
        if text:
            given[name] = text[:253]
    return given


def _query_of_older(filters: Mapping[str, str], older: object) -> str:
    """The address of the next page; "" where this is the last one."""
    if not older:
        return ""
    return urlencode({**filters, "before": older})


@require_safe
@page
def activity(request: HttpRequest) -> HttpResponse:
    filters = _given_filters(request, _EVENT_FILTERS)
    span, problems = _span(request, filters)
    problems += problems_with(filters, _EVENT_WORDS)
    found = events_for(access(request).visible, _stored(filters, _EVENT_WORDS), span)
    if problems:
        found = found.none()
    feed = event_page(found, request.GET.get("before", ""))
    context = {
        "events": [{"row": event} for event in feed.rows],
        "filters": filters,
        "problems": problems,
        "kinds": EVENT_KINDS,
        "only_changes": only_changes(filters),
        "older": _query_of_older(filters, feed.older),
        "is_first": not request.GET.get("before"),
        "may_audit": _audited(request) != frozenset(),
    }
    return render(request, "records/activity.html", context, status=status_for(problems))


def _stored(filters: dict[str, str], known: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The filters with those of a fixed set as they are stored; others are left as they are."""
    stored = dict(filters)
    for name, choices in known.items():
        if name in filters:
            stored[name] = stored_word(filters[name], choices) or filters[name]
    return stored


def _span(request: HttpRequest, filters: dict[str, str]) -> tuple[Span, list[str]]:
    """From the start of one day to the end of another, in the reader's zone; and problems."""
    zone = ZoneInfo(preference_of(request.user).time_zone or "UTC")
    moments = {}
    problems = []
    for name in ("from", "until"):
        if name not in filters:
            continue
        moment = moment_of(filters[name], zone, end_of_day=name == "until")
        if moment is None:
            text = filters.pop(name)[:40]
            problems.append(f"“{text}” is not a date: write it as 2026-01-31.")
        else:
            moments[name] = moment
    return Span(moments.get("from"), moments.get("until")), problems


# The audit log


def _audited(request: HttpRequest) -> frozenset[str] | None:
    """The queues whose audit log the reader may see: those they administer; None for all."""
    mine = access(request)
    if mine.may(Permission.ADMINISTER, ROOT):
        return None
    return mine.where(Permission.ADMINISTER)


def _require_audited(request: HttpRequest) -> Collection[str] | None:
    access(request).require_anywhere(Permission.ADMINISTER, "read the audit log")
    return _audited(request)


@require_safe
@page
def audit(request: HttpRequest) -> HttpResponseBase:
    """Admins' actions at first; submits and users' own settings are a click away.

    A search by name looks in all of them.
    """
    queues = _require_audited(request)
    filters = _given_filters(request, _AUDIT_FILTERS)
    if "since" in filters:  # as older addresses have it
        filters.setdefault("from", filters.pop("since"))
    span, problems = _span(request, filters)
    problems += problems_with(filters, _AUDIT_WORDS)
    deeds = filters.get("deeds") or _usual_deeds(filters)
    asked = _stored(filters, _AUDIT_WORDS) | {"deeds": deeds}
    if deeds == "all":
        asked["deeds"] = ""
    found = audit_for(queues, asked, span)
    if request.GET.get("format") in ("csv", "json") and not problems:
        return _export(request, found, request.GET["format"])
    if problems:
        found = found.none()
    else:
        found = deeds_alone(found, queues, asked)
    before = request.GET.get("before", "")
    feed = page_by_number(found, whole_number(before))
    others = {}
    for name, value in filters.items():
        if name != "deeds":
            others[name] = value
    tabs = []
    for key, title in _DEEDS.items():
        tabs.append({"key": key, "title": title, "query": urlencode({**others, "deeds": key})})
    context = {
        "entries": [_entry(entry) for entry in feed.rows],
        "filters": filters,
        "problems": problems,
        "deeds": deeds,
        "tabs": tabs,
        "actions": ACTIONS,
        "query": urlencode({**others, "deeds": deeds}),
        "older": _query_of_older(filters, feed.older),
        "is_first": not before,
        "limited": queues is not None,
    }
    return render(request, "records/audit_log.html", context, status=status_for(problems))


def _usual_deeds(filters: Mapping[str, str]) -> str:
    """A search for one thing looks everywhere."""
    if filters.keys() & {"action", "kind", "name", "request"}:
        return "all"
    return AuditArea.ADMIN.value


def _entry(entry: AuditEntry) -> Context:
    changed = differences(entry.before, entry.after)
    return {"row": entry, "changes": changed[:4], "more": max(0, len(changed) - 4)}


def _readable_entry(request: HttpRequest, number: int) -> AuditEntry | None:
    return audit_for(_require_audited(request), {}).filter(pk=number).first()


def _no_such_entry(request: HttpRequest, number: int) -> HttpResponse:
    missing = f"There is no entry {number} in the record that you may read."
    return render(request, "404.html", {"missing": missing}, status=404)


@require_safe
@page
def audit_entry(request: HttpRequest, number: int) -> HttpResponse:
    entry = _readable_entry(request, number)
    if entry is None:
        return _no_such_entry(request, number)
    return _render_entry(request, entry)


@require_POST
@page
def revert(request: HttpRequest, number: int) -> HttpResponse:
    """The change that undoes an entry, as a new change set to look at."""
    entry = _readable_entry(request, number)
    if entry is None:
        return _no_such_entry(request, number)
    try:
        made = revert_entry(entry, by=actor(request))
    except NotPossible as refusal:
        return _render_entry(request, entry, 409, problem=str(refusal))
    messages.info(request, "Nothing is reverted yet. Look at this change set, then apply it.")
    return HttpResponseRedirect(reverse("change-set", args=[made.pk]))


def _render_entry(
    request: HttpRequest, entry: AuditEntry, status: int = 200, **more: Any
) -> HttpResponse:
    number = entry.pk
    before = _policy_text(entry.before)
    after = _policy_text(entry.after)
    context: Context = {
        "entry": entry,
        "changes": [],
        "lines": [],
        "change_set": set_of_entry(entry, access(request), request.user.get_username()),
        "may_collect": access(request).may_anywhere(Permission.OPERATE),
        "inverse": inverse_of_entry(entry),
        "copies": copies(request, ["changes", "undo", str(number)], f"audit/{number}/revert/"),
        **more,
    }
    if before is not None and after is not None and "\n" in before + after:
        context["lines"] = line_differences(before, after)
    else:
        context["changes"] = differences(entry.before, entry.after)
    return render(request, "records/audit_entry.html", context, status=status)


def _policy_text(value: Any) -> str | None:
    """A policy is kept as its text: shown line by line."""
    if not isinstance(value, dict):
        return None
    policy = value.get("policy")
    if isinstance(policy, str):
        return policy
    return None


_COLUMNS = (
    "id",
    "at",
    "actor",
    "door",
    "address",
    "request_id",
    "deeds",
    "action",
    "kind",
    "namespace",
    "name",
    "queue_name",
    "follows",
    "reason",
    "message",
)


def _plain(entry: AuditEntry) -> Context:
    row = {name: getattr(entry, name) for name in _COLUMNS} | {"at": entry.at.isoformat()}
    return {**row, "before": entry.before, "after": entry.after}


def _export(request: HttpRequest, found: QuerySet[AuditEntry], kind: str) -> StreamingHttpResponse:
    """All of what the filters leave, however much that is."""
    rows = map(_plain, all_rows(found))
    if kind == "csv":
        return streamed(
            request,
            as_csv(rows, [*_COLUMNS, "before", "after"]),
            "text/csv",
            "audit.csv",
        )
    return streamed(request, as_json_list(rows), "application/json", "audit.json")
