"""/activity/: what happened, newest first. /audit/: who changed what and why; for export too."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.forms.choices import problems_with, stored_word
from dashboard.forms.typed import moment_of, whole_number
from dashboard.http.access import access, page
from dashboard.http.exports import all_rows, as_csv, as_json_list, streamed
from dashboard.present.differences import differences, line_differences
from scheduler.domain.access import Forbidden, Permission
from scheduler.domain.audit_actions import ACTIONS, KINDS, AuditArea, known_actions
from scheduler.domain.queues import ROOT
from scheduler.models import AuditEntry
from scheduler.selectors.accounts.preferences import preference_of
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

Context = dict[str, Any]
_EVENT_FILTERS = ("kind", "type", "queue", "reason", "from", "until", "q")
_TYPES = ("normal", "warning")
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


def _given(request: HttpRequest, names: Iterable[str]) -> dict[str, str]:
    return {
        name: request.GET.get(name, "").strip()[:253]
        for name in names
        if request.GET.get(name, "").strip()
    }


@require_safe
@page
def activity(request: HttpRequest) -> HttpResponse:
    filters = _given(request, _EVENT_FILTERS)
    span, problems = _span(request, filters)
    problems += problems_with(filters, {"kind": (EVERYTHING, *EVENT_KINDS), "type": _TYPES})
    found = events_for(
        access(request).visible,
        _stored(filters, {"kind": (EVERYTHING, *EVENT_KINDS), "type": _TYPES}),
        span,
    )
    feed = event_page(found.none() if problems else found, request.GET.get("before", ""))
    context = {
        "events": [{"row": event} for event in feed.rows],
        "filters": filters,
        "problems": problems,
        "kinds": EVENT_KINDS,
        "only_changes": only_changes(filters),
        "older": urlencode({**filters, "before": feed.older}) if feed.older else "",
        "is_first": not request.GET.get("before"),
        "may_audit": _audited(request) != frozenset(),
    }
    return render(request, "records/activity.html", context, status=400 if problems else 200)


def _stored(filters: dict[str, str], known: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The filters with those of a fixed set as they are stored; others are left as they are."""
    words = {
        name: stored_word(filters[name], choices) or filters[name]
        for name, choices in known.items()
        if name in filters
    }
    return {**filters, **words}


def _span(request: HttpRequest, filters: dict[str, str]) -> tuple[Span, list[str]]:
    """From the start of one day to the end of another, in the reader's zone; and problems."""
    zone = ZoneInfo(preference_of(request.user).time_zone or "UTC")
    moments = {
        name: moment_of(filters[name], zone, end_of_day=name == "until")
        for name in ("from", "until")
        if name in filters
    }
    wrong = [name for name, moment in moments.items() if moment is None]
    span = Span(moments.get("from"), moments.get("until"))
    return span, [
        f"“{filters.pop(name)[:40]}” is not a date: write it as 2026-01-31." for name in wrong
    ]


# The audit log


def _audited(request: HttpRequest) -> frozenset[str] | None:
    """The queues whose audit log the reader may see: those they administer; None for all."""
    mine = access(request)
    if mine.may(Permission.ADMINISTER, ROOT):
        return None
    return mine.where(Permission.ADMINISTER)


def _require_audited(request: HttpRequest) -> Collection[str] | None:
    queues = _audited(request)
    if queues is not None and not queues:
        raise Forbidden(Permission.ADMINISTER, ROOT, "read the audit log")
    return queues


@require_safe
@page
def audit(request: HttpRequest) -> HttpResponseBase:
    """Admins' actions at first; submits and users' own settings are a click away.

    A search by name looks in all of them.
    """
    queues = _require_audited(request)
    filters = _given(request, _AUDIT_FILTERS)
    if "since" in filters:  # as older addresses have it
        filters.setdefault("from", filters.pop("since"))
    span, problems = _span(request, filters)
    problems += problems_with(filters, _AUDIT_WORDS)
    deeds = filters.get("deeds") or (
        "all" if filters.keys() & {"action", "kind", "name", "request"} else AuditArea.ADMIN.value
    )
    asked = _stored(filters, _AUDIT_WORDS) | {"deeds": "" if deeds == "all" else deeds}
    found = audit_for(queues, asked, span)
    if request.GET.get("format") in ("csv", "json") and not problems:
        return _export(request, found, request.GET["format"])
    before = request.GET.get("before", "")
    feed = page_by_number(
        found.none() if problems else deeds_alone(found, queues, asked), whole_number(before)
    )
    others = {name: value for name, value in filters.items() if name != "deeds"}
    context = {
        "entries": [_entry(entry) for entry in feed.rows],
        "filters": filters,
        "problems": problems,
        "deeds": deeds,
        "tabs": [
            {"key": key, "title": title, "query": urlencode({**others, "deeds": key})}
            for key, title in _DEEDS.items()
        ],
        "actions": ACTIONS,
        "query": urlencode({**others, "deeds": deeds}),
        "older": urlencode({**filters, "before": feed.older}) if feed.older else "",
        "is_first": not before,
        "limited": queues is not None,
    }
    return render(request, "records/audit_log.html", context, status=400 if problems else 200)


def _entry(entry: AuditEntry) -> Context:
    changed = differences(entry.before, entry.after)
    return {"row": entry, "changes": changed[:4], "more": max(0, len(changed) - 4)}


@require_safe
@page
def audit_entry(request: HttpRequest, number: int) -> HttpResponse:
    entry = audit_for(_require_audited(request), {}).filter(pk=number).first()
    if entry is None:
        return render(
            request,
            "404.html",
            {"missing": f"There is no entry {number} in the record that you may read."},
            status=404,
        )
    texts = [_text(entry.before), _text(entry.after)]
    is_text = all(text is not None for text in texts) and any(
        "\n" in (text or "") for text in texts
    )
    context = {
        "entry": entry,
        "changes": [] if is_text else differences(entry.before, entry.after),
        "lines": line_differences(texts[0] or "", texts[1] or "") if is_text else [],
    }
    return render(request, "records/audit_entry.html", context)


def _text(value: Any) -> str | None:
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
            request, as_csv(rows, [*_COLUMNS, "before", "after"]), "text/csv", "audit.csv"
        )
    return streamed(request, as_json_list(rows), "application/json", "audit.json")
