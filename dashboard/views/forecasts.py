"""/insights/forecasts/: how often gangs started in the range that was foretold."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.forms.choices import checked_word
from dashboard.http.access import access, page
from dashboard.present.start_times import STATED, accuracies_as_csv, present_accuracy
from scheduler.conf import conf
from scheduler.domain.access import Permission
from scheduler.selectors.jobs.start_times import (
    DEFAULT_WINDOW,
    FEWEST,
    WINDOWS,
    accuracies_for,
    last_look,
)

_WINDOW_TITLES = {"24h": "Last 24 hours", "7d": "Last 7 days", "30d": "Last 30 days"}


@require_safe
@page
def forecasts(request: HttpRequest) -> HttpResponseBase:
    access(request).require_anywhere(Permission.VIEW, "see the forecasts")
    window = checked_word(request.GET, "window", WINDOWS) or DEFAULT_WINDOW
    queue = request.GET.get("queue", "").strip()[:253]
    found = accuracies_for(access(request).visible, window, queue)
    if request.GET.get("format") == "csv":
        return accuracies_as_csv(request, found.rows)
    filters = {"queue": queue, "window": window}
    context = {
        "filters": filters,
        "windows": _WINDOW_TITLES,
        "query": urlencode({name: value for name, value in filters.items() if value}),
        "whole": present_accuracy(found.whole),
        "entries": [present_accuracy(row) for row in found.rows],
        "look": last_look(),
        "stated": STATED,
        "fewest": FEWEST,
        "is_on": conf().forecast_share > 0,
        "share": round(conf().forecast_share * 100),
    }
    return render(request, "insights/forecasts.html", context)
