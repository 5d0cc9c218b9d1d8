"""/activity/: what happened, newest first. /audit/: who changed what, from what to what, and why; for export too."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, time
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.dateparse import parse_date
from django.views.decorators.http import require_safe

from dashboard.access import access, page
from dashboard.differences import differences, line_differences
from dashboard.exports import all_rows, as_csv, as_json_list, streamed
from dashboard.typed import whole_number
from scheduler.domain.access import Forbidden, Permission
from scheduler.domain.queues import ROOT
from scheduler.models import AuditEntry
from scheduler.selectors.events import EVENT_KINDS, audit_for, event_page, events_for, only_changes, page_by_number
from scheduler.selectors.personal import preference_of

Context = dict[str, Any]
_EVENT_FILTERS = ("kind", "type", "queue", "reason", "q")
_FIRST_YEAR = 1970
_AUDIT_FILTERS = ("actor", "action", "kind", "queue", "name", "door", "request", "since", "q")


def _given(request: HttpRequest, names: Iterable[str]) -> dict[str, str]:
    return {name: request.GET.get(name, "").strip()[:253] for name in names if request.GET.get(name, "").strip()}


@require_safe
@page
def activity(request: HttpRequest) -> HttpResponse:
    filters = _given(request, _EVENT_FILTERS)
    feed = event_page(events_for(access(request).visible, filters), request.GET.get("before", ""))
    context = {
        "events": [{"row": event} for event in feed.rows],
        "filters": filters,
        "kinds": EVENT_KINDS,
        "only_changes": only_changes(filters),
        "older": urlencode({**filters, "before": feed.older}) if feed.older else "",
        "is_first": not request.GET.get("before"),
        "may_audit": _audited(request) != frozenset(),
    }
    return render(request, "activity/list.html", context)


# The audit log


def _audited(request: HttpRequest) -> frozenset[str] | None:
    """The queues whose record the reader may see: those he administers; None for all."""
    mine = access(request)
    return None if mine.may(Permission.ADMINISTER, ROOT) else mine.where(Permission.ADMINISTER)


def _require_audited(request: HttpRequest) -> Collection[str] | None:
    queues = _audited(request)
    if queues is not None and not queues:
        raise Forbidden(Permission.ADMINISTER, ROOT, "read the audit log")
    return queues


@require_safe
@page
def audit(request: HttpRequest) -> HttpResponseBase:
    queues = _require_audited(request)
    filters = _given(request, _AUDIT_FILTERS)
    since, problem = _morning(request, filters.get("since", "")), ""
    if filters.get("since") and since is None:
        problem = f"“{filters.pop('since')}” is not a date: write it as 2026-01-31."
    found = audit_for(queues, filters, since)
    if request.GET.get("format") in ("csv", "json"):
        return _export(request, found, request.GET["format"])
    before = request.GET.get("before", "")
    feed = page_by_number(found, whole_number(before))
    context = {
        "entries": [_entry(entry) for entry in feed.rows],
        "filters": filters,
        "problem": problem,
        "query": urlencode(filters),
        "older": urlencode({**filters, "before": feed.older}) if feed.older else "",
        "is_first": not before,
        "limited": queues is not None,
    }
    return render(request, "audit/list.html", context)


def _morning(request: HttpRequest, text: str) -> datetime | None:
    """When that day began where the reader is; None where the text is no date, or one that nothing can be older than."""
    try:
        day = parse_date(text)
    except ValueError:
        return None
    zone = ZoneInfo(preference_of(request.user).time_zone or "UTC")
    return datetime.combine(day, time.min, zone) if day is not None and day.year >= _FIRST_YEAR else None


def _entry(entry: AuditEntry) -> Context:
    changed = differences(entry.before, entry.after)
    return {"row": entry, "changes": changed[:4], "more": max(0, len(changed) - 4)}


@require_safe
@page
def audit_entry(request: HttpRequest, number: int) -> HttpResponse:
    entry = audit_for(_require_audited(request), {}).filter(pk=number).first()
    if entry is None:
        return render(request, "404.html", {"missing": f"There is no entry {number} in the record that you may read."}, status=404)
    texts = [_text(entry.before), _text(entry.after)]
    is_text = all(text is not None for text in texts) and any("\n" in (text or "") for text in texts)
    context = {
        "entry": entry,
        "changes": [] if is_text else differences(entry.before, entry.after),
        "lines": line_differences(texts[0] or "", texts[1] or "") if is_text else [],
    }
    return render(request, "audit/entry.html", context)


def _text(value: Any) -> str | None:
    """A policy is kept as its text: shown line by line."""
    return value["policy"] if isinstance(value, dict) and isinstance(value.get("policy"), str) else None


_COLUMNS = ("id", "at", "actor", "door", "address", "request_id", "action", "kind", "namespace", "name", "queue_name", "reason", "message")


def _plain(entry: AuditEntry) -> Context:
    row = {name: getattr(entry, name) for name in _COLUMNS} | {"at": entry.at.isoformat()}
    return {**row, "before": entry.before, "after": entry.after}


def _export(request: HttpRequest, found: QuerySet[AuditEntry], kind: str) -> StreamingHttpResponse:
    """All of what the filters leave, however much that is."""
    rows = map(_plain, all_rows(found))
    if kind == "csv":
        return streamed(request, as_csv(rows, [*_COLUMNS, "before", "after"]), "text/csv", "audit.csv")
    return streamed(request, as_json_list(rows), "application/json", "audit.json")
