"""/insights/loans/: who uses whose idle share, and how safe that is."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.forms.choices import UnknownWord, checked_word, refusal_of
from dashboard.http.access import access, page, require_view, visibility_of
from dashboard.http.exports import as_csv, streamed
from dashboard.present import loan_charts
from dashboard.present.amounts import resource_choices
from dashboard.present.ledger import SeenLedger, ledger_as_csv, seen_ledger
from dashboard.present.loan_page import present_ledger
from dashboard.present.queue_page import chosen_resource
from dashboard.present.queues import page_resources
from scheduler.conf import is_shadow
from scheduler.domain.access import Permission
from scheduler.models import ClusterState
from scheduler.selectors.queues.listing import QueueBoard, queue_rows
from scheduler.selectors.records.loan_history import (
    DEFAULT_WINDOW,
    WINDOWS,
    LoanHistory,
    loan_history,
)
from scheduler.services.queues.exposure import exposure_now
from scheduler.services.sessions.policies import gives_shares

_WINDOW_TITLES = {"1h": "Last hour", "24h": "Last 24 hours", "7d": "Last 7 days"}


@require_safe
@page
def loans(request: HttpRequest) -> HttpResponseBase:
    board = queue_rows()
    history = _history(request, board)
    seen = visibility_of(request)
    ledger = seen_ledger(board, history.resource, exposure_now(), seen, _queue(request))
    if request.GET.get("format") == "csv":
        return ledger_as_csv(request, ledger)
    context = _context(board, ledger, {"queue": _queue(request), "window": history.window})
    context["points"] = loan_charts.table(history, seen)
    return render(request, "insights/loans.html", context)


@require_safe
@page
def history_data(request: HttpRequest) -> HttpResponse:
    """The points of the chart: /insights/loans/history.json?resource=cpu&queue=NAME&window=1h"""
    return JsonResponse(loan_charts.chart(_history(request, queue_rows())))


@require_safe
@page
def history_csv(request: HttpRequest) -> HttpResponseBase:
    points = loan_charts.points(_history(request, queue_rows()), visibility_of(request))
    table = as_csv(points, loan_charts.HISTORY_COLUMNS)
    return streamed(request, table, "text/csv", "loans-over-time.csv")


def _history(request: HttpRequest, board: QueueBoard) -> LoanHistory:
    """Of the chosen queue, if the reader may see it, else of all loans together."""
    access(request).require_anywhere(Permission.VIEW, "see the loans")
    window = checked_word(request.GET, "window", WINDOWS) or DEFAULT_WINDOW
    queue = _queue(request)
    if queue:
        require_view(request, queue)
    return loan_history(queue, _resource(request, board), window)


def _queue(request: HttpRequest) -> str:
    return request.GET.get("queue", "").strip()[:253]


def _resource(request: HttpRequest, board: QueueBoard) -> str:
    """The chosen one, else the first that the cluster has. Raises `UnknownWord`."""
    wanted = request.GET.get("resource", "").strip()
    resources = page_resources(board)
    chosen = chosen_resource(wanted, resources)
    if wanted and not chosen:
        raise UnknownWord(refusal_of("resource", wanted, resources))
    return chosen or next(iter(resources), "")


def _context(board: QueueBoard, ledger: SeenLedger, given: dict[str, str]) -> dict[str, object]:
    filters = {"resource": ledger.resource, **given}
    state = ClusterState.objects.select_related("policy").get(pk=1)
    return {
        **present_ledger(ledger),
        "resource": ledger.resource,
        "resources": resource_choices(page_resources(board)),
        "filters": filters,
        "windows": _WINDOW_TITLES,
        "query": urlencode({name: value for name, value in filters.items() if value}),
        "no_shares": not gives_shares(state),
        "is_shadow": is_shadow(),
    }
