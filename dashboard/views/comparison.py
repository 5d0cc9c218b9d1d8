"""/comparison/: what another scheduler did, beside what Fumarole would have done."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.forms.choices import checked_word
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, page, visibility_of
from dashboard.http.exports import all_rows
from dashboard.present.comparison import (
    agreement_words,
    comparisons_as_csv,
    present_comparison,
)
from scheduler.conf import is_shadow
from scheduler.domain.access import Permission
from scheduler.domain.comparison import DEFINITION, DIFFERENCES, TITLES, Verdict
from scheduler.models import Comparison, PodGroup
from scheduler.selectors.queues.objects import names_in_records
from scheduler.selectors.records.feeds import page_by_number
from scheduler.selectors.sessions.comparison import (
    DEFAULT_WINDOW,
    WINDOWS,
    comparisons_for,
    of_kind,
    summary_of,
    within_window,
)

Context = dict[str, Any]
ALL = "all"
_WINDOW_TITLES = {"1h": "Last hour", "24h": "Last 24 hours", "7d": "Last 7 days"}


@require_safe
@page
def comparison(request: HttpRequest) -> HttpResponseBase:
    access(request).require_anywhere(Permission.VIEW, "see the comparison")
    window = checked_word(request.GET, "window", WINDOWS) or DEFAULT_WINDOW
    kind = checked_word(request.GET, "kind", (ALL, *Verdict))
    queue = request.GET.get("queue", "").strip()[:253]
    rows = within_window(comparisons_for(access(request).visible), window)
    if queue:
        rows = rows.filter(queue_name__in=names_in_records(queue))
    chosen = of_kind(rows, _verdicts(kind))
    if request.GET.get("format") == "csv":
        return comparisons_as_csv(request, all_rows(chosen), visibility_of(request))
    filters = {"kind": kind, "queue": queue, "window": window}
    return _page(request, rows, chosen, filters)


def _page(
    request: HttpRequest,
    rows: QuerySet[Comparison],
    chosen: QuerySet[Comparison],
    filters: dict[str, str],
) -> HttpResponse:
    summary = summary_of(rows)
    before = request.GET.get("before", "")
    feed = page_by_number(chosen, whole_number(before))
    kinds = [(ALL, "Everything", sum(summary.counts.values()))]
    for verdict, title in TITLES.items():
        kinds.append((verdict.value, title, summary.counts[verdict]))
    given = {name: value for name, value in filters.items() if value}
    older = ""
    if feed.older:
        older = urlencode({**given, "before": feed.older})
    context = {
        "filters": filters,
        "is_filtered": bool(filters["kind"] or filters["queue"]),
        "kinds": kinds,
        "windows": _WINDOW_TITLES,
        "definition": DEFINITION,
        "is_shadow": is_shadow(),
        "has_any": bool(sum(summary.counts.values())),
        "starts": summary.starts,
        "start_rate": agreement_words(summary.starts),
        "evictions": summary.evictions,
        "eviction_rate": agreement_words(summary.evictions),
        "half": summary.counts[Verdict.HALF_STARTED],
        "waiting": summary.counts[Verdict.BOTH_WAIT],
        "not_seen": summary.counts[Verdict.NOT_SEEN],
        "differences": sum(summary.counts[verdict] for verdict in DIFFERENCES),
        "entries": _entries(request, feed.rows),
        "query": urlencode(given),
        "older": older,
        "is_first": not before,
    }
    return render(request, "sessions/comparison.html", context)


def _verdicts(kind: str) -> Collection[Verdict]:
    """The differences, unless something else is asked for."""
    if not kind:
        return DIFFERENCES
    if kind == ALL:
        return tuple(Verdict)
    return (Verdict(kind),)


def _entries(request: HttpRequest, rows: Iterable[Comparison]) -> list[Context]:
    found = list(rows)
    numbers = [row.podgroup_number for row in found]
    known = set(PodGroup.objects.filter(pk__in=numbers).values_list("pk", flat=True))
    now = timezone.now()
    visibility = visibility_of(request)
    entries = []
    for row in found:
        namespace, _, name = row.podgroup_name.partition("/")
        entries.append(
            {
                **present_comparison(row, visibility, now),
                "namespace": namespace,
                "name": name,
                "is_known": row.podgroup_number in known,
            }
        )
    return entries
